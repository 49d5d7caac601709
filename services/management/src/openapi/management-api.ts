/**
 * Builds the operations of the management API from the endpoint definitions, which also define the routes and validate requests. Every
 * operation lists every error code that it can return.
 */

import { type ProblemCode, PROBLEMS } from '@keyward/contract'
import type { ZodOpenApiOperationObject, ZodOpenApiResponsesObject } from 'zod-openapi'

import { acceptsIdempotencyKey, type Access, type DocumentedError, type Endpoint } from '../http/endpoint.ts'
import { type HeaderName, headerReferences, RATE_LIMIT_HEADERS } from './headers.ts'
import { problemResponses, PROTOCOL_CODES } from './problems.ts'
import type { SecurityScheme } from './security.ts'

/** Describes the credential that an endpoint requires. */
export function describeAccess(access: Access): string {
  switch (access.kind) {
    case 'operator':
      return 'Credential: the operator token.'
    case 'apiKey':
      return 'Credential: an API key of the organization.'
    case 'vendor':
      return access.permission === 'any'
        ? 'Credential: any management or personal access token.'
        : `Credential: a management or personal access token with the permission \`${access.permission}\`.`
    case 'person':
      return 'Credential: any management or personal access token, the operator token, or a session.'
    case 'anyone':
      return 'No credential.'
    default:
      return access satisfies never
  }
}

/** The security schemes for each kind of access. One scheme of a list suffices. */
const SCHEMES: Record<Access['kind'], readonly SecurityScheme[]> = {
  operator: ['operatorToken'],
  apiKey: ['apiKey'],
  vendor: ['vendorToken'],
  person: ['vendorToken', 'operatorToken'],
  anyone: [],
}

export function documented(error: ProblemCode | DocumentedError): DocumentedError {
  return typeof error === 'string' ? { code: error, status: PROBLEMS[error].status } : error
}

/** Returns every error that the endpoint can return. */
export function documentedErrors(endpoint: Endpoint): DocumentedError[] {
  const { definition, access } = endpoint
  const takesBody = definition.method !== 'get' && definition.method !== 'delete'
  const codes: ProblemCode[] = ['UNAUTHENTICATED', 'FORBIDDEN', 'NOT_FOUND', 'INVALID_REQUEST', 'RATE_LIMITED']
  if (takesBody) codes.push('MALFORMED_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE')
  if (acceptsIdempotencyKey(endpoint)) codes.push('IDEMPOTENCY_KEY_IN_USE', 'IDEMPOTENCY_KEY_REUSED')
  if (access.kind === 'vendor') codes.push('ORGANIZATION_SUSPENDED')
  codes.push('INTERNAL', 'UNAVAILABLE', ...PROTOCOL_CODES)
  return [...codes, ...(definition.errors ?? [])].map(documented)
}

function headerParameters(endpoint: Endpoint) {
  const parameter = (name: string, description: string) =>
    ({ in: 'header', name, required: false, description, schema: { type: 'string' } }) as const
  return [
    ...(acceptsIdempotencyKey(endpoint)
      ? [
          parameter(
            'Idempotency-Key',
            'A text that you choose for each request, such as an order number. If the same request is sent again within ' +
              '24 hours, it gets the first response, without secrets.',
          ),
        ]
      : []),
    ...(endpoint.definition.propagates === true
      ? [
          parameter(
            'Prefer',
            '`wait=5` delays the response until every live validator has applied the change, for 5 seconds at most. ' +
              'The maximum is 10 seconds.',
          ),
        ]
      : []),
  ]
}

function successOf(endpoint: Endpoint): ZodOpenApiResponsesObject {
  const { status, response, responseType = 'application/json', propagates, method } = endpoint.definition
  const isCreated = status === 201 && method === 'post'
  const names: HeaderName[] = [
    'x-request-id',
    ...(isCreated ? (['location'] as const) : []),
    ...(acceptsIdempotencyKey(endpoint) ? (['idempotency-replayed'] as const) : []),
    ...(propagates === true ? (['preference-applied', 'x-applied-by'] as const) : []),
    ...(responseType === 'text/plain' ? (['content-disposition'] as const) : []),
    ...RATE_LIMIT_HEADERS,
  ]
  const headers = headerReferences(names)
  if (!response) return { '204': { description: 'Success, without a body.', headers } }
  return { [`${status}`]: { description: 'Success.', headers, content: { [responseType]: { schema: response } } } }
}

export function managementOperation(endpoint: Endpoint): ZodOpenApiOperationObject {
  const { definition, access } = endpoint
  const { params, query } = definition
  const body = definition.documentedBody ?? definition.body
  return {
    operationId: definition.operationId,
    tags: [definition.tag.name],
    summary: definition.summary,
    description: [definition.description, describeAccess(access)].filter(Boolean).join('\n\n'),
    security: SCHEMES[access.kind].map((scheme) => ({ [scheme]: [] })),
    requestParams: { ...(params && { path: params }), ...(query && { query }) },
    parameters: headerParameters(endpoint),
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: { ...successOf(endpoint), ...problemResponses(documentedErrors(endpoint)) },
  }
}

/**
 * Builds the operations of the management API from the endpoints, which also define the routes and validate requests. Every
 * operation lists every error code that it can return.
 */

import { type ProblemCode, PROBLEMS } from '@keyward/contract'
import type { Needs } from '@keyward/contract/operations'
import type { z } from 'zod'
import type { ZodOpenApiOperationObject, ZodOpenApiResponsesObject } from 'zod-openapi'

import {
  acceptsIdempotencyKey,
  type DocumentedError,
  type Endpoint,
  isRead,
  needsNoCredential,
  permissionOf,
  returnsVersion,
  takesBody,
} from '../operations/implement.ts'
import { named } from './component-names.ts'
import { type HeaderName, headerReferences, RATE_LIMIT_HEADERS } from './headers.ts'
import { problemResponses, PROTOCOL_CODES } from './problems.ts'
import type { SecurityScheme } from './security.ts'

/** Describes the credential that an operation needs. */
export function describeNeeds(needs: Needs): string {
  if (needs === 'nothing') return 'No credential.'
  if (needs === 'signature') return 'Credential: the signature of the shop.'
  if (needs === 'operator') return 'Credential: the operator token.'
  if (needs === 'apiKey') return 'Credential: an API key of the organization.'
  if (needs === 'portal') return 'Credential: the cookie of the portal.'
  if (needs === 'token') return 'Credential: any management or personal access token.'
  if (needs === 'person')
    return 'Credential: any management or personal access token, the operator token, or a session.'
  return `Credential: a management or personal access token with the permission \`${needs}\`.`
}

/** Returns the security schemes of an operation. One of them suffices. */
function schemesOf(needs: Needs): readonly SecurityScheme[] {
  if (needs === 'nothing' || needs === 'signature' || needs === 'portal') return []
  if (needs === 'operator') return ['operatorToken']
  if (needs === 'apiKey') return ['apiKey']
  return needs === 'person' ? ['vendorToken', 'operatorToken'] : ['vendorToken']
}

export function documented(error: ProblemCode | DocumentedError): DocumentedError {
  return typeof error === 'string' ? { code: error, status: PROBLEMS[error].status } : error
}

/** Returns every error that the endpoint can return. */
export function documentedErrors(endpoint: Endpoint): DocumentedError[] {
  const { needs } = endpoint.operation
  const codes: ProblemCode[] = ['UNAUTHENTICATED', 'FORBIDDEN', 'NOT_FOUND', 'INVALID_REQUEST', 'RATE_LIMITED']
  if (takesBody(endpoint)) codes.push('MALFORMED_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE')
  if (acceptsIdempotencyKey(endpoint)) codes.push('IDEMPOTENCY_KEY_IN_USE', 'IDEMPOTENCY_KEY_REUSED')
  if (needs === 'token' || permissionOf(endpoint.operation) !== null) codes.push('ORGANIZATION_SUSPENDED')
  // Every change writes to the audit log, whose bytes count toward quotas.
  if (needs !== 'apiKey' && needs !== 'operator' && !needsNoCredential(endpoint.operation) && !isRead(endpoint))
    codes.push('QUOTA_EXCEEDED')
  if (endpoint.versioned) codes.push('VERSION_MISMATCH')
  codes.push('INTERNAL', 'UNAVAILABLE', ...PROTOCOL_CODES)
  return [...codes, ...(endpoint.errors ?? [])].map(documented)
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
    ...(endpoint.versioned
      ? [
          parameter(
            'If-Match',
            'The `ETag` of the resource when you read it. If the resource has changed since, the response is 412 with the current resource.',
          ),
        ]
      : []),
    ...(endpoint.operation.propagates
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

const json = (schema: z.ZodType) => ({ 'application/json': { schema } })

function successOf(endpoint: Endpoint): ZodOpenApiResponsesObject {
  const { returns, file, propagates } = endpoint.operation
  const names: HeaderName[] = [
    'x-request-id',
    ...(returnsVersion(endpoint.operation) ? (['etag'] as const) : []),
    ...(endpoint.operation.creates ? (['location'] as const) : []),
    ...(acceptsIdempotencyKey(endpoint) ? (['idempotency-replayed'] as const) : []),
    ...(propagates ? (['preference-applied', 'x-applied-by'] as const) : []),
    ...(file === 'text/plain' || file === 'text/csv' ? (['content-disposition'] as const) : []),
    ...RATE_LIMIT_HEADERS,
  ]
  const headers = headerReferences(names)
  if (!returns) return { '204': { description: 'Success, without a body.', headers } }
  const content =
    file === undefined || file === 'application/json'
      ? json(named(returns, endpoint.name, 'Response'))
      : { [file]: { schema: returns }, ...(file === 'text/csv' && { 'application/x-ndjson': { schema: returns } }) }
  return { [`${endpoint.status}`]: { description: 'Success.', headers, content } }
}

export function managementOperation(endpoint: Endpoint): ZodOpenApiOperationObject {
  const { name, tag, summary, description, params } = endpoint
  const { needs, query, body } = endpoint.operation
  return {
    operationId: name,
    tags: [tag.name],
    summary,
    description: [description, describeNeeds(needs)].filter(Boolean).join('\n\n'),
    security: schemesOf(needs).map((scheme) => ({ [scheme]: [] })),
    requestParams: { ...(params && { path: params }), ...(query && { query }) },
    parameters: headerParameters(endpoint),
    ...(body && { requestBody: { required: !body.isOptional(), content: json(named(body, name, 'Request')) } }),
    responses: { ...successOf(endpoint), ...problemResponses(documentedErrors(endpoint)) },
  }
}

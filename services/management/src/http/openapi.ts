/**
 * The OpenAPI document, made from the endpoint definitions of the routes and the schemas that validate requests. Every operation lists
 * every error code that it can return.
 */

import { problem, type ProblemCode, PROBLEMS } from '@keyward/contract'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponsesObject } from 'zod-openapi'

import { type Access, BASE_PATH, type DocumentedError, type Endpoint } from './endpoint.ts'

export type OpenApiDocument = ReturnType<typeof createDocument>

const DESCRIPTION = `Manages the licenses, access rules and credentials of a software vendor.

Authenticate with \`Authorization: Bearer <secret>\`, where the secret is a management token (\`kwm_…\`) or a personal access token
(\`kwp_…\`). Lists accept \`limit\` and \`cursor\` and are stable under inserts. A POST accepts \`Idempotency-Key\`: a second request
with the same key and body within 24 hours gets the response of the first, without secrets. Changes that validators apply accept
\`Prefer: wait=N\`. Errors are problems (RFC 9457) with a stable \`code\`. Every response has an \`x-request-id\`.`

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
        : `Permission: \`${access.permission}\`.`
    default:
      return access satisfies never
  }
}

export function documented(error: ProblemCode | DocumentedError): DocumentedError {
  return typeof error === 'string' ? { code: error, status: PROBLEMS[error].status } : error
}

/** Returns every error that the endpoint can return. */
export function documentedErrors({ definition, access }: Endpoint): DocumentedError[] {
  const takesBody = definition.method === 'post' || definition.method === 'patch'
  const codes: ProblemCode[] = ['UNAUTHENTICATED', 'FORBIDDEN', 'NOT_FOUND', 'INVALID_REQUEST', 'RATE_LIMITED']
  if (takesBody) codes.push('MALFORMED_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE')
  if (definition.method === 'post' && definition.readOnly !== true)
    codes.push('IDEMPOTENCY_KEY_IN_USE', 'IDEMPOTENCY_KEY_REUSED')
  if (access.kind === 'vendor') codes.push('ORGANIZATION_SUSPENDED')
  codes.push('INTERNAL', 'UNAVAILABLE')
  return [...codes, ...(definition.errors ?? [])].map(documented)
}

function responsesOf(endpoint: Endpoint): ZodOpenApiResponsesObject {
  const byStatus = Map.groupBy(documentedErrors(endpoint), ({ status }) => status)
  const responses: ZodOpenApiResponsesObject = {}
  for (const status of [...byStatus.keys()].toSorted((a, b) => a - b)) {
    const lines = (byStatus.get(status) ?? []).map(({ code }) => `\`${code}\`: ${PROBLEMS[code].title}`)
    responses[`${status}`] = {
      description: lines.join('\n\n'),
      content: { 'application/problem+json': { schema: problem } },
    }
  }
  return responses
}

function headerParameters({ definition }: Endpoint) {
  const parameter = (name: string, text: string, example: string) =>
    ({ in: 'header', name, required: false, description: text, schema: { type: 'string' }, example }) as const
  return [
    ...(definition.method === 'post' && definition.readOnly !== true
      ? [parameter('Idempotency-Key', 'Makes it safe to repeat the request within 24 hours.', 'order-1001')]
      : []),
    ...(definition.propagates === true
      ? [
          parameter(
            'Prefer',
            'Seconds to wait, at most 10, until every live validator has applied the change.',
            'wait=5',
          ),
        ]
      : []),
  ]
}

function successOf({ definition }: Endpoint): ZodOpenApiResponsesObject {
  const { status, response, responseType = 'application/json' } = definition
  if (!response) return { '204': { description: 'Success, without a body.' } }
  const headers =
    status === 201
      ? { location: { description: 'The path of the new resource.', schema: { type: 'string' as const } } }
      : {}
  return { [`${status}`]: { description: 'Success.', headers, content: { [responseType]: { schema: response } } } }
}

function operation(endpoint: Endpoint): ZodOpenApiOperationObject {
  const { definition, access } = endpoint
  const { params, query } = definition
  const body = definition.documentedBody ?? definition.body
  return {
    operationId: definition.operationId,
    tags: [definition.tag.name],
    summary: definition.summary,
    description: [definition.description, describeAccess(access)].filter(Boolean).join('\n\n'),
    security: [{ bearer: [] }],
    requestParams: { ...(params && { path: params }), ...(query && { query }) },
    parameters: headerParameters(endpoint),
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: { ...successOf(endpoint), ...responsesOf(endpoint) },
  }
}

export function createOpenApi(endpoints: readonly Endpoint[]): OpenApiDocument {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const endpoint of endpoints) {
    const { path, method } = endpoint.definition
    paths[BASE_PATH + path] = { ...paths[BASE_PATH + path], [method]: operation(endpoint) }
  }
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Keyward management API',
      version: '1.0.0',
      description: DESCRIPTION,
      license: { name: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This server' }],
    tags: [...new Map(endpoints.map(({ definition: { tag } }) => [tag.name, tag])).values()],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'A secret of the operator, a vendor or an app.' },
      },
    },
  })
}

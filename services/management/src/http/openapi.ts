/**
 * The OpenAPI document, made from the endpoint definitions that the routes are made from and the schemas that validate. Every
 * operation lists every code that it can answer.
 */
import { problem, type ProblemCode, PROBLEMS } from '@keyward/contract'
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponsesObject } from 'zod-openapi'

import type { Access, Documented, Endpoint } from './endpoint.ts'
import { basePath } from './paths.ts'
import { tags } from './tags.ts'

export type OpenApiDocument = ReturnType<typeof createDocument>

const description = `Licenses, access rules and credentials of a software vendor.

Send \`Authorization: Bearer <secret>\`: a management token (\`kwm_…\`) or a personal access token (\`kwp_…\`).
Lists take \`limit\` and \`cursor\` and are stable under inserts. A POST may carry \`Idempotency-Key\`: the same key and body
within 24 hours answer as the first time, without secrets. Changes that the validators act on take \`Prefer: wait=N\`.
Errors are problems (RFC 9457) with a stable \`code\`. Every answer has \`x-request-id\`.`

/** What the document says of who may call. */
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

export function documented(refusal: ProblemCode | Documented): Documented {
  return typeof refusal === 'string' ? { code: refusal, status: PROBLEMS[refusal].status } : refusal
}

/** Everything that this endpoint can refuse with. */
export function refusalsOf({ definition }: Endpoint): Documented[] {
  const takesBody = definition.method === 'post' || definition.method === 'patch'
  const codes: ProblemCode[] = ['UNAUTHENTICATED', 'FORBIDDEN', 'NOT_FOUND', 'INVALID_REQUEST', 'RATE_LIMITED']
  if (takesBody) codes.push('MALFORMED_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE')
  if (definition.method === 'post' && definition.readOnly !== true)
    codes.push('IDEMPOTENCY_KEY_IN_USE', 'IDEMPOTENCY_KEY_REUSED')
  codes.push('INTERNAL', 'UNAVAILABLE')
  return [...codes, ...(definition.errors ?? [])].map(documented)
}

function responsesOf(endpoint: Endpoint): ZodOpenApiResponsesObject {
  const byStatus = Map.groupBy(refusalsOf(endpoint), ({ status }) => status)
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
      ? [parameter('Idempotency-Key', 'Makes the request safe to repeat for 24 hours.', 'order-1001')]
      : []),
    ...(definition.propagates === true
      ? [
          parameter(
            'Prefer',
            'Answer when every live validator has applied the change, after at most 10 seconds.',
            'wait=5',
          ),
        ]
      : []),
  ]
}

function successOf({ definition }: Endpoint): ZodOpenApiResponsesObject {
  const { status, answer, answerType = 'application/json' } = definition
  if (!answer) return { '204': { description: 'Done.' } }
  const headers = status === 201 ? { location: { description: 'Its path.', schema: { type: 'string' as const } } } : {}
  return { [`${status}`]: { description: 'Done.', headers, content: { [answerType]: { schema: answer } } } }
}

function operation(endpoint: Endpoint): ZodOpenApiOperationObject {
  const { definition, access } = endpoint
  const { params, query } = definition
  const body = definition.documentedBody ?? definition.body
  return {
    operationId: definition.operationId,
    tags: [definition.tag],
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
    paths[basePath + path] = { ...paths[basePath + path], [method]: operation(endpoint) }
  }
  return createDocument({
    openapi: '3.1.0',
    info: { title: 'Keyward management API', version: '1.0.0', description, license: { name: 'Apache-2.0' } },
    servers: [{ url: '/', description: 'This server.' }],
    tags: Object.entries(tags).map(([name, text]) => ({ name, description: text })),
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'A token of the organization.' } },
    },
  })
}

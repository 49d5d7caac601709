/**
 * Defines endpoints. One definition yields the Express route and the OpenAPI operation, so the two always agree. A handler receives parsed
 * input and, for a write, a transaction.
 */

import { type Actor, describeIssue, type Permission, type ProblemCode, type PROBLEMS } from '@keyward/contract'
import { z } from 'zod'

import type { RequestBody } from './body.ts'
import type { CallerCredential, Db } from './context.ts'
import type { Dependencies } from './dependencies.ts'
import { ApiError, invalidRequest, quote, type ValidationError } from './problem.ts'
import type { RowsOf } from './rows.ts'
import type { Site } from './site.ts'
import type { Streamed } from './streamed.ts'
import { validationErrors } from './validation-errors.ts'

export { BASE_PATH } from '@keyward/contract/operations'

/**
 * The callers that an endpoint accepts. With the permission `any`, these are all management tokens and access tokens of an organization.
 * With the kind `person`, they are the operator and the credentials of vendors. The kind `anyone` requires no credential.
 */
export type Access =
  | { kind: 'operator' }
  | { kind: 'apiKey' }
  | { kind: 'vendor'; permission: Permission | 'any' }
  | { kind: 'person' }
  | { kind: 'anyone' }

/** The caller's address and country. Each is null when it is unknown. */
export interface RequestOrigin {
  ip: string | null
  country: string | null
}

/** The headers by which a handler recognizes a browser and its page. */
export interface BrowserHeaders {
  cookie: string | undefined
  origin: string | undefined
}

/** The input and the context of a handler. */
export interface Call<Params, Query, Body> {
  params: Params
  query: Query
  body: Body
  /** The pool for reads if the endpoint is a GET or read-only, the pool for changes if it is detached, and otherwise a transaction. */
  db: Db
  dependencies: Dependencies
  actor: Actor
  /** The headers of the response. The handler may add others. */
  headers: Record<string, string>
  /** Returns the site that the `Host` header names, or null when the header is missing or malformed. */
  site: () => Site | null
  /** The session that authenticated the request, or null when a secret did. */
  session: { id: string } | null
  origin(): RequestOrigin
  browser: BrowserHeaders
}

export interface VendorCall<Params, Query, Body> extends Call<Params, Query, Body> {
  organizationId: string
  permissions: ReadonlySet<Permission>
  credential: CallerCredential
}

/** A problem code with a status, which may differ from the code's default. */
export interface DocumentedError {
  code: ProblemCode
  status: (typeof PROBLEMS)[ProblemCode]['status']
}

/** A group of endpoints in `/openapi.json`. Groups appear in the order of their endpoints. */
export interface Tag {
  name: string
  description: string
}

export interface Definition<Params extends z.ZodObject, Query extends z.ZodObject, Body, Response> {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** The path in OpenAPI notation, such as `/products/{id}`. */
  path: string
  tag: Tag
  operationId: string
  summary: string
  description?: string
  params?: Params
  query?: Query
  body?: z.ZodType<Body>
  status: 200 | 201 | 204
  /** The schema of the response body, unless the status is 204. */
  response?: z.ZodType<Response>
  /** The media type of the response. Default: application/json. */
  responseType?: 'text/plain'
  /** Errors in addition to those that every endpoint of this kind can return. */
  errors?: readonly (ProblemCode | DocumentedError)[]
  /** Members of the response that are returned only once. The stored response, which a repeated request receives, lacks them. */
  secrets?: readonly string[]
  /** The definition of the rows of an import, which are parsed one by one. A definition with `rows` has no `body`. */
  rows?: RowsOf<Body>
  /** The schema of the body in `/openapi.json`, when `rows` parses the body. */
  documentedBody?: z.ZodType
  /** The maximum size of the body in bytes. */
  maxBodyBytes?: number
  /** Whether the handler returns a `Streamed` and sets the content type. `response` is the schema of a JSON body. */
  streams?: boolean
  /** Whether validators apply the change, so that `Prefer: wait` is accepted. */
  propagates?: boolean
  /** Whether a POST changes nothing. A read-only POST has no transaction and accepts no idempotency key. */
  readOnly?: boolean
  /** Whether the handler waits for other services or requests. It has no transaction, and enters a gate itself before it uses a connection. */
  detached?: boolean
}

/** The default maximum size of a body, in bytes. Every body that the schemas allow is smaller, except imports and bodies with metadata. */
export const MAX_BODY_BYTES = 64 * 1024
/** The maximum size in bytes of a body from an app, whose API key is public. A check has the same limit. */
export const MAX_APP_BODY_BYTES = 16 * 1024
export { MAX_METADATA_BODY_BYTES } from '@keyward/contract'

export interface RawInput {
  params: unknown
  query: unknown
  body: Pick<RequestBody, 'value' | 'split'>
}

type AnyCall = Omit<VendorCall<unknown, unknown, unknown>, 'params' | 'query' | 'body'>

/** An endpoint whose input and response types are erased. The router and the document at `/openapi.json` read it. */
export interface Endpoint {
  definition: Definition<z.ZodObject, z.ZodObject, unknown, unknown>
  access: Access
  /** Parses the input or throws an ApiError. The returned function runs the handler. */
  prepare(input: RawInput): Promise<(call: AnyCall) => Promise<unknown>>
}

/**
 * Returns whether the endpoint accepts an idempotency key. A key belongs to a credential, so endpoints that require no credential accept no
 * key.
 */
export function acceptsIdempotencyKey({ definition, access }: Endpoint): boolean {
  return definition.method === 'post' && definition.readOnly !== true && access.kind !== 'anyone'
}

const nothing = z.strictObject({})
/** The schema of a body without fields, which is absent or an empty object. */
const noBody = nothing.optional()

/**
 * Returns the schema, or `nothing` when the schema is undefined. A caller without a schema leaves `Schema` at its default, the type of
 * `nothing`.
 */
function orNothing<Schema extends z.ZodObject>(schema: Schema | undefined): Schema
function orNothing(schema: z.ZodObject | undefined): z.ZodObject {
  return schema ?? nothing
}

function orNoBody<Body>(schema: z.ZodType<Body> | undefined): z.ZodType<Body>
function orNoBody(schema: z.ZodType | undefined): z.ZodType {
  return schema ?? noBody
}

/** Returns the error for a malformed id. Its status is 404, as for an unknown id. */
function malformedId(error: z.ZodError, params: unknown): ApiError {
  const name = String(error.issues[0]?.path[0])
  const values = typeof params === 'object' && params !== null ? Object.entries(params) : []
  const value = String(values.find(([key]) => key === name)?.[1])
  return new ApiError('NOT_FOUND', `The id in the path must be a UUID; got ${quote(value)}.`)
}

/** Returns the parsed body, or its validation errors. Throws IMPORT_TOO_LARGE. */
async function parseBody<Params extends z.ZodObject, Query extends z.ZodObject, Body, Response>(
  definition: Definition<Params, Query, Body, Response>,
  { value, split }: RawInput['body'],
): Promise<{ data: Body } | { errors: ValidationError[]; count: number }> {
  if (definition.rows && split) return definition.rows.parse(split)
  const schema = definition.rows?.schema ?? orNoBody(definition.body)
  const parsed = schema.safeParse(value, { error: describeIssue })
  return parsed.success ? { data: parsed.data } : validationErrors('#', parsed.error)
}

async function parseInput<Params extends z.ZodObject, Query extends z.ZodObject, Body, Response>(
  definition: Definition<Params, Query, Body, Response>,
  input: RawInput,
): Promise<{ params: z.output<Params>; query: z.output<Query>; body: Body }> {
  const params = orNothing(definition.params).safeParse(input.params)
  if (!params.success) throw malformedId(params.error, input.params)
  const query = orNothing(definition.query).safeParse(input.query, { error: describeIssue })
  const inQuery = query.success ? { errors: [], count: 0 } : validationErrors('?', query.error)
  const body = await parseBody(definition, input.body)
  const inBody = 'errors' in body ? body : { errors: [], count: 0 }
  if (!query.success || 'errors' in body)
    throw invalidRequest([...inQuery.errors, ...inBody.errors], inQuery.count + inBody.count)
  return { params: params.data, query: query.data, body: body.data }
}

type Handler<CallType, Response> = (call: CallType) => Promise<Response>

/** Defines an endpoint for the credentials of an organization that have `permission`. */
export function vendorEndpoint<
  Params extends z.ZodObject = typeof nothing,
  Query extends z.ZodObject = typeof nothing,
  Body = unknown,
  Response = unknown,
>(
  permission: Permission | 'any',
  definition: Definition<Params, Query, Body, Response>,
  handle: Handler<VendorCall<z.output<Params>, z.output<Query>, Body>, NoInfer<Response> | Streamed>,
): Endpoint {
  return build({ kind: 'vendor', permission }, definition, handle)
}

/** Defines an endpoint for apps, which send an API key. */
export function appEndpoint<Body, Response>(
  definition: Definition<typeof nothing, typeof nothing, Body, Response>,
  handle: Handler<VendorCall<unknown, unknown, Body>, NoInfer<Response>>,
): Endpoint {
  return build({ kind: 'apiKey' }, { maxBodyBytes: MAX_APP_BODY_BYTES, ...definition }, handle)
}

/** Defines an endpoint for the operator of the installation. */
export function operatorEndpoint<
  Params extends z.ZodObject = typeof nothing,
  Query extends z.ZodObject = typeof nothing,
  Body = unknown,
  Response = unknown,
>(
  definition: Definition<Params, Query, Body, Response>,
  handle: Handler<Call<z.output<Params>, z.output<Query>, Body>, NoInfer<Response>>,
): Endpoint {
  return build({ kind: 'operator' }, definition, handle)
}

/** Defines an endpoint for the operator and for the credentials of an organization. `organizationId` is '' for the operator. */
export function personEndpoint<
  Params extends z.ZodObject = typeof nothing,
  Query extends z.ZodObject = typeof nothing,
  Body = unknown,
  Response = unknown,
>(
  definition: Definition<Params, Query, Body, Response>,
  handle: Handler<VendorCall<z.output<Params>, z.output<Query>, Body>, NoInfer<Response>>,
): Endpoint {
  return build({ kind: 'person' }, definition, handle)
}

/** Defines an endpoint that requires no credential. Its requests are limited by address and in total. */
export function publicEndpoint<Body, Response>(
  definition: Definition<typeof nothing, typeof nothing, Body, Response>,
  handle: Handler<Call<unknown, unknown, Body>, NoInfer<Response>>,
): Endpoint {
  return build({ kind: 'anyone' }, definition, handle)
}

export function build<Params extends z.ZodObject, Query extends z.ZodObject, Body, Response>(
  access: Access,
  definition: Definition<Params, Query, Body, Response>,
  handle: Handler<VendorCall<z.output<Params>, z.output<Query>, Body>, Response | Streamed>,
): Endpoint {
  return {
    access,
    definition,
    async prepare(input) {
      const parsed = await parseInput(definition, input)
      return (call) => handle({ ...call, ...parsed })
    },
  }
}

/**
 * One declarative definition for an endpoint: from it the Express route and the OpenAPI operation are both made, so that
 * they cannot drift. A handler sees parsed input only, and for a changing method a transaction that its audit entry shares.
 */
import { type Actor, describeIssue, type Permission, type ProblemCode, type PROBLEMS } from '@keyward/contract'
import { z } from 'zod'

import type { Db } from './context.ts'
import type { Services } from './context.ts'
import { invalidAll, notFound, Refusal } from './problem.ts'
import type { Tag } from './tags.ts'
import { faultsOf } from './validation-errors.ts'

/** `any`: every credential of an organization but API keys. */
export type Access = { kind: 'operator' } | { kind: 'apiKey' } | { kind: 'vendor'; permission: Permission | 'any' }

export interface Client {
  ip: string | null
  country: string | null
}

/** What every handler is given. */
export interface Call<Params, Query, Body> {
  params: Params
  query: Query
  body: Body
  /** A transaction for every method but GET. */
  db: Db
  services: Services
  actor: Actor
  /** Headers of the answer. */
  headers: Record<string, string>
  client(): Client
}

export interface VendorCall<Params, Query, Body> extends Call<Params, Query, Body> {
  organizationId: string
  permissions: ReadonlySet<Permission>
}

/** A code, and the status that it comes with: its own, or another. */
export interface Documented {
  code: ProblemCode
  status: (typeof PROBLEMS)[ProblemCode]['status']
}

export interface Definition<Params extends z.ZodObject, Query extends z.ZodObject, Body, Answer> {
  method: 'get' | 'post' | 'patch' | 'delete'
  /** As OpenAPI writes it: `/products/{id}`. */
  path: string
  tag: Tag
  operationId: string
  summary: string
  description?: string
  params?: Params
  query?: Query
  body?: z.ZodType<Body>
  status: 200 | 201 | 204
  /** Absent for 204. */
  answer?: z.ZodType<Answer>
  /** Default: application/json. */
  answerType?: 'text/plain'
  /** What this endpoint can refuse with beyond what every endpoint of its kind can. */
  errors?: readonly (ProblemCode | Documented)[]
  /** Members of the answer that are shown once and never stored, not even for a repeat. */
  secrets?: readonly string[]
  /** The member of the body that holds an import's rows. */
  importRows?: string
  /** The body for the document, where `body` takes it apart before it is judged. */
  documentedBody?: z.ZodType
  /** Validators act on the change, so `Prefer: wait` is honoured. */
  propagates?: boolean
  /** A POST that changes nothing: no transaction, no idempotency key. */
  readOnly?: boolean
}

export interface RawInput {
  params: unknown
  query: unknown
  body: unknown
}

type AnyCall = Omit<VendorCall<unknown, unknown, unknown>, 'params' | 'query' | 'body'>

/** A definition without its types, as the router and the document use it. */
export interface Endpoint {
  definition: Definition<z.ZodObject, z.ZodObject, unknown, unknown>
  access: Access
  /** Parses the input, or throws a Refusal; the result runs the handler. */
  prepare(input: RawInput): (call: AnyCall) => Promise<unknown>
}

const MAX_IMPORT_ROWS = 1_000
const nothing = z.strictObject({})
/** For a POST or PATCH without fields: no body or an empty object. */
const noBody = nothing.optional()

function refuseHugeImport(rowsName: string | undefined, body: unknown): void {
  if (rowsName === undefined || typeof body !== 'object' || body === null) return
  const rows: unknown = Object.entries(body).find(([name]) => name === rowsName)?.[1]
  if (Array.isArray(rows) && rows.length > MAX_IMPORT_ROWS)
    throw new Refusal(
      'IMPORT_TOO_LARGE',
      `#/${rowsName} has ${rows.length} rows; at most ${MAX_IMPORT_ROWS} are taken.`,
      {
        errors: [{ pointer: `#/${rowsName}`, detail: `has more than ${MAX_IMPORT_ROWS} rows` }],
      },
    )
}

/** Where a definition leaves a schema out, its type is the default's, so the default may stand for it. */
function orNothing<Schema extends z.ZodObject>(schema: Schema | undefined): Schema
function orNothing(schema: z.ZodObject | undefined): z.ZodObject {
  return schema ?? nothing
}

function orNoBody<Body>(schema: z.ZodType<Body> | undefined): z.ZodType<Body>
function orNoBody(schema: z.ZodType | undefined): z.ZodType {
  return schema ?? noBody
}

function parseInput<Params extends z.ZodObject, Query extends z.ZodObject, Body, Answer>(
  definition: Definition<Params, Query, Body, Answer>,
  input: RawInput,
): { params: z.output<Params>; query: z.output<Query>; body: Body } {
  // An id that is no id names nothing.
  const params = orNothing(definition.params).safeParse(input.params)
  if (!params.success) throw notFound('such thing')
  const plainly = { error: describeIssue }
  const query = orNothing(definition.query).safeParse(input.query, plainly)
  refuseHugeImport(definition.importRows, input.body)
  const body = orNoBody(definition.body).safeParse(input.body, plainly)
  const faults = [
    ...(query.success ? [] : faultsOf('?', query.error)),
    ...(body.success ? [] : faultsOf('#', body.error)),
  ]
  if (!query.success || !body.success) throw invalidAll(faults)
  return { params: params.data, query: query.data, body: body.data }
}

type Handler<CallType, Answer> = (call: CallType) => Promise<Answer>

/** An endpoint for the credentials of an organization that hold `permission`. */
export function vendorEndpoint<
  Params extends z.ZodObject = typeof nothing,
  Query extends z.ZodObject = typeof nothing,
  Body = unknown,
  Answer = unknown,
>(
  permission: Permission | 'any',
  definition: Definition<Params, Query, Body, Answer>,
  handle: Handler<VendorCall<z.output<Params>, z.output<Query>, Body>, NoInfer<Answer>>,
): Endpoint {
  return build({ kind: 'vendor', permission }, definition, handle)
}

/** An endpoint for customers' apps, which call it with an API key. */
export function appEndpoint<
  Params extends z.ZodObject = typeof nothing,
  Query extends z.ZodObject = typeof nothing,
  Body = unknown,
  Answer = unknown,
>(
  definition: Definition<Params, Query, Body, Answer>,
  handle: Handler<VendorCall<z.output<Params>, z.output<Query>, Body>, NoInfer<Answer>>,
): Endpoint {
  return build({ kind: 'apiKey' }, definition, handle)
}

/** An endpoint for the operator of the whole service. */
export function operatorEndpoint<
  Params extends z.ZodObject = typeof nothing,
  Query extends z.ZodObject = typeof nothing,
  Body = unknown,
  Answer = unknown,
>(
  definition: Definition<Params, Query, Body, Answer>,
  handle: Handler<Call<z.output<Params>, z.output<Query>, Body>, NoInfer<Answer>>,
): Endpoint {
  return build({ kind: 'operator' }, definition, handle)
}

function build<Params extends z.ZodObject, Query extends z.ZodObject, Body, Answer>(
  access: Access,
  definition: Definition<Params, Query, Body, Answer>,
  handle: Handler<VendorCall<z.output<Params>, z.output<Query>, Body>, Answer>,
): Endpoint {
  return {
    access,
    definition,
    prepare(input) {
      const parsed = parseInput(definition, input)
      return (call) => handle({ ...call, ...parsed })
    },
  }
}

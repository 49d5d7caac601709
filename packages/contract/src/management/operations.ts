/**
 * Defines the operations of the management API. One table per resource contains the facts that the service, the console and the CLI share.
 * The service adds texts and handlers (implement.ts), and serves `/openapi.json` from both.
 */

import { z } from 'zod'

import { id } from './common.ts'
import type { Permission } from './permissions.ts'

/**
 * The callers that an operation accepts: credentials of an organization with a permission or with any (`token`), the operator, apps, the
 * operator or a credential of an organization (`person`), the page of a customer (`portal`), a shop that signs the body (`signature`), or everyone (`nothing`).
 */
export type Needs = Permission | 'token' | 'operator' | 'apiKey' | 'person' | 'portal' | 'signature' | 'nothing'

/** The prefix of every path. */
export const BASE_PATH = '/api/v1'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type Method = (typeof METHODS)[number]
/** The method and the path below `BASE_PATH`, such as `POST /customers/{id}/merge`. */
export type Route = `${Method} /${string}`

/** The rows of an import, which are parsed one by one: `{[name]: [row, …]}`. */
interface ImportRows {
  name: string
  row: z.ZodType
  maxRowBytes: number
  maxRows?: number
  minRows?: number
  /** The schema of the members beside the list. */
  others?: z.ZodObject
}

export interface Operation {
  route: Route
  needs: Needs
  /** The schema of the path parameters. Default: an id for each parameter. */
  params?: z.ZodObject
  query?: z.ZodObject
  /** The schema of the body. An operation with `rows` has it for `/openapi.json` and for callers only. */
  body?: z.ZodType
  rows?: ImportRows
  maxBodyBytes?: number
  /** The schema of the response. Without it, the status is 204. */
  returns?: z.ZodType
  /** Whether the operation creates a resource with the status 201 and `Location`. */
  creates?: true
  /** Whether a job of the created resource does the work after the response, whose status is then 202. */
  continues?: true
  /** The media type of a response that callers receive as text, such as a file. Its handler may return a `Streamed`. */
  file?: 'text/plain' | 'application/json' | 'text/csv'
  /** Members of the response that are returned only once. */
  secrets?: readonly string[]
  /** Whether validators apply the change, so that `Prefer: wait` is accepted. */
  propagates?: true
  /** Whether a POST changes nothing. */
  readOnly?: true
}

/** Returns the table unchanged, with the exact types of its operations. */
export function operations<const Table extends Readonly<Record<string, Operation>>>(table: Table): Table {
  return table
}

type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never
/** The path parameters of an operation. */
export type ParamsOf<One extends Operation> = { [Name in NamesIn<One['route']>]: string }
type Schema<T, Otherwise> = T extends z.ZodType ? T : Otherwise
export type QueryOf<One extends Operation> = Schema<One['query'], z.ZodObject<{}>>
export type BodyOf<One extends Operation> = Schema<One['body'], z.ZodUndefined>
/** The result of a handler, which a caller receives: the response, the text of a file, or nothing. */
export type ResultOf<One extends Operation> = One['file'] extends string
  ? string
  : One['returns'] extends z.ZodType
    ? z.output<One['returns']>
    : void

type IfAny<Members, Field> = [keyof Members] extends [never] ? object : Field
/** The input of a call: `{ params, query, body }`, each only if the operation has it. */
export type InputOf<One extends Operation> = IfAny<ParamsOf<One>, { params: ParamsOf<One> }> &
  (One['query'] extends z.ZodType
    ? { query?: Partial<Record<keyof z.input<QueryOf<One>>, string | number | null | undefined>> }
    : object) &
  (One['body'] extends z.ZodType
    ? undefined extends z.input<BodyOf<One>>
      ? { body?: z.input<BodyOf<One>> }
      : { body: z.input<BodyOf<One>> }
    : object)

const PARAMETER = /\{(\w+)\}/g

export function methodOf({ route }: Operation): Method {
  return METHODS.find((method) => route.startsWith(`${method} `))!
}

/** Returns the path with its parameters in braces. */
export function pathOf({ route }: Operation): string {
  return route.slice(route.indexOf(' ') + 1)
}

/** Returns the schema of the path parameters, or undefined when the path has none. */
export function paramsOf(operation: Operation): z.ZodObject | undefined {
  const names = Array.from(pathOf(operation).matchAll(PARAMETER), ([, name]) => name!)
  if (operation.params || names.length === 0) return operation.params
  return z.strictObject(Object.fromEntries(names.map((name) => [name, id('The id of the resource.')])))
}

export interface AnyInput {
  params?: Readonly<Record<string, unknown>>
  query?: Readonly<Record<string, string | number | null | undefined>>
  body?: unknown
}

/** A path segment that a URL parser removes. `GET /customers/{id}` would list all customers with an empty id, for example. */
const LOST_SEGMENT = /^\.{0,2}$/

/**
 * Returns the URL of a call without its host, from the input's parameters and query. Members that are null or undefined are absent. An empty string is sent, so that
 * the service rejects it: an empty value never means "any".
 */
export function urlOf(operation: Operation, { params = {}, query = {} }: AnyInput): string {
  const path =
    BASE_PATH +
    pathOf(operation).replace(PARAMETER, (_, name: string) => {
      const value = String(params[name])
      if (LOST_SEGMENT.test(value)) throw new RangeError(`The parameter ${name} must not be ${JSON.stringify(value)}.`)
      return encodeURIComponent(value)
    })
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  const search = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return search === '' ? path : `${path}?${search}`
}

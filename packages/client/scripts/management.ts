/**
 * Builds `@keyward/client/management` from docs/openapi.json: a table of the operations for vendors and the operator, and declarations with
 * the types of their inputs and results.
 */

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const DOCUMENT = join(ROOT, 'docs/openapi.json')
const GENERATOR = join(ROOT, 'services/management/node_modules/openapi-typescript/bin/cli.js')

const DECLARATIONS = `import type { components, operations } from './management-api.js'
import type { ManagementOptions } from './management-caller.js'

export { ManagementError, type ManagementOptions } from './management-caller.js'

/** The types of resources, requests and responses, by name. */
export type Schemas = components['schemas']

type Json<Body> = Body extends { content: { 'application/json': infer Value } } ? Value
  : Body extends { content: { 'text/plain': infer Value } } ? Value : undefined
type Path<One> = One extends { parameters: { path: infer Value } } ? { path: Value } : {}
type Query<One> = One extends { parameters: { query?: infer Value } } ? [Value] extends [undefined] ? {} : { query?: Value } : {}
type Body<One> = One extends { requestBody: infer Value } ? { body: Json<Value> }
  : One extends { requestBody?: infer Value } ? [Value] extends [undefined] ? {} : { body?: Json<NonNullable<Value>> } : {}
type Repeated<One> = One extends { parameters: { header?: { 'Idempotency-Key'?: string } } } ? {
  /** A text that identifies this request. A repetition with the same key and body gets the first response. */
  idempotencyKey?: string
} : {}
type Waiting<One> = One extends { parameters: { header?: { Prefer?: string } } } ? {
  /** The seconds, at most 10, to wait until every validator has applied the change. */
  waitSeconds?: number
} : {}
type Input<One> = Path<One> & Query<One> & Body<One> & Repeated<One> & Waiting<One>
type Output<One> = One extends { responses: infer All }
  ? All extends { 200: infer Success } ? Json<Success> : All extends { 201: infer Success } ? Json<Success> : undefined : never
type Call<One> = {} extends Input<One> ? (input?: Input<One>) => Promise<Output<One>> : (input: Input<One>) => Promise<Output<One>>

/** A function for each operation. It resolves to the body of the response, and rejects with a ManagementError for an error response. */
export type Management = { readonly [Name in NAMES]: Call<operations[Name]> }

/** Returns the functions that call the management API. */
export declare function createManagement(options: ManagementOptions): Management
`

interface Document {
  paths: Record<string, Record<string, { operationId: string; security: Record<string, unknown>[] }>>
}

/** Writes the module and its declarations into the folder that contains the compiled `management-caller.js`. */
export function buildManagement(target: string): void {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a test of management compares the document with the server
  const { paths } = JSON.parse(readFileSync(DOCUMENT, 'utf8')) as Document
  const routes: Record<string, string> = {}
  for (const [path, item] of Object.entries(paths))
    for (const [method, { operationId, security }] of Object.entries(item))
      if (security.some((one) => !('apiKey' in one))) routes[operationId] = `${method.toUpperCase()} ${path}`
  const module = `import { createCaller } from './management-caller.js'
export { ManagementError } from './management-caller.js'
const ROUTES = ${JSON.stringify(routes, null, 2)}
export const createManagement = (options) => createCaller(ROUTES, options)
`
  const names = Object.keys(routes).map((name) => `'${name}'`)
  writeFileSync(join(target, 'management.js'), module)
  writeFileSync(join(target, 'management.d.ts'), DECLARATIONS.replace('NAMES', names.join(' | ')))
  const options = ['--output', join(target, 'management-api.d.ts'), '--default-non-nullable=false']
  execFileSync(process.execPath, [GENERATOR, DOCUMENT, ...options], { stdio: ['ignore', 'ignore', 'inherit'] })
}

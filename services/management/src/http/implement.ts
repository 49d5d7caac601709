/**
 * Implements the operations of the contract. An operation without a handler, and a handler without an operation, do not compile. Texts are
 * added here, so that the console does not contain them.
 */

import {
  type BodyOf,
  methodOf,
  type Needs,
  type Operation,
  paramsOf,
  type ParamsOf,
  pathOf,
  type QueryOf,
  type ResultOf,
  urlOf,
} from '@keyward/contract/operations'
import type { z } from 'zod'

import {
  type Access,
  build,
  type Call,
  type Definition,
  type Endpoint,
  MAX_APP_BODY_BYTES,
  type Tag,
  type VendorCall,
} from './endpoint.ts'
import { type Rows, rowsOf } from './rows.ts'
import type { Streamed } from './streamed.ts'

/** The body that a handler receives: the parsed body, or the rows of an import. */
type Received<One extends Operation> = One['rows'] extends { row: z.ZodType<infer Row> }
  ? Rows<Row, One['rows'] extends { others: infer Others extends z.ZodObject } ? z.output<Others> : unknown>
  : z.output<BodyOf<One>>

/** Calls of the operator and of anyone have no organization. */
type CallOf<One extends Operation> = One['needs'] extends 'operator' | 'nothing'
  ? Call<ParamsOf<One>, z.output<QueryOf<One>>, Received<One>>
  : VendorCall<ParamsOf<One>, z.output<QueryOf<One>>, Received<One>>

/** The part of an operation that only the service knows. */
export interface Implementation<One extends Operation> {
  summary: string
  description?: string
  /** Errors in addition to those that every operation of this kind can return. */
  errors?: Definition<z.ZodObject, z.ZodObject, unknown, unknown>['errors']
  /** Whether the handler waits for other services or requests. It has no transaction, and enters a gate itself before it uses a connection. */
  detached?: true
  handle(call: CallOf<One>): Promise<ResultOf<One> | Streamed>
}

type Implementations<Table> = {
  [Name in keyof Table]: Table[Name] extends Operation ? Implementation<Table[Name]> : never
}

const METHODS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const

function accessOf(needs: Needs): Access {
  if (needs === 'operator' || needs === 'apiKey' || needs === 'person') return { kind: needs }
  if (needs === 'nothing') return { kind: 'anyone' }
  return { kind: 'vendor', permission: needs === 'token' ? 'any' : needs }
}

function statusOf({ returns, creates }: Operation): 200 | 201 | 204 {
  if (returns === undefined) return 204
  return creates === true ? 201 : 200
}

function definitionOf(tag: Tag, operationId: string, operation: Operation, implementation: Implementation<Operation>) {
  const { rows, needs, returns, file, body, query, secrets, propagates, readOnly } = operation
  const { summary, description, errors, detached } = implementation
  const { maxBodyBytes = needs === 'apiKey' ? MAX_APP_BODY_BYTES : undefined } = operation
  const params = paramsOf(operation)
  return {
    tag,
    operationId,
    summary,
    ...(description !== undefined && { description }),
    ...(errors && { errors }),
    ...(detached && { detached }),
    ...(params && { params }),
    ...(query && { query }),
    ...(secrets && { secrets }),
    ...(propagates && { propagates }),
    ...(readOnly && { readOnly }),
    ...(maxBodyBytes !== undefined && { maxBodyBytes }),
    ...(rows ? { rows: rowsOf(rows.name, rows.row, rows), ...(body && { documentedBody: body }) } : body && { body }),
    method: METHODS[methodOf(operation)],
    path: pathOf(operation),
    status: statusOf(operation),
    ...(returns && { response: returns }),
    ...(file === 'text/plain' && { responseType: file }),
  } satisfies Definition<z.ZodObject, z.ZodObject, unknown, unknown>
}

export function implement<Table extends Readonly<Record<string, Operation>>>(
  tag: Tag,
  table: Table,
  implementations: Implementations<NoInfer<Table>>,
): Endpoint[]
export function implement(
  tag: Tag,
  table: Readonly<Record<string, Operation>>,
  implementations: Readonly<Record<string, Implementation<Operation>>>,
): Endpoint[] {
  const routes = new Set(Object.values(table).map(({ route }) => route.replaceAll(/\{\w+\}/g, '{}')))
  return Object.entries(table).map(([name, operation]) => {
    const implementation = implementations[name]!
    const isReadable = routes.has(`GET ${pathOf(operation).replaceAll(/\{\w+\}/g, '{}')}/{}`)
    return build(accessOf(operation.needs), definitionOf(tag, name, operation, implementation), async (call) => {
      const result: unknown = await implementation.handle(call)
      if (operation.creates && isReadable && typeof result === 'object' && result !== null && 'id' in result)
        call.headers['location'] = `${urlOf(operation, { params: call.params })}/${String(result.id)}`
      return result
    })
  })
}

/**
 * Implements the operations of the contract. An operation without a handler, and a handler without an operation, do not compile. Texts are
 * added here, so that the console does not contain them.
 */

import { ALL_PERMISSIONS, type Permission, type ProblemCode, type PROBLEMS } from '@keyward/contract'
import {
  type BodyOf,
  type Method,
  methodOf,
  type Operation,
  paramsOf,
  type ParamsOf,
  pathOf,
  type QueryOf,
  type ResultOf,
  urlOf,
} from '@keyward/contract/operations'
import { z } from 'zod'

import type { Streamed } from '../http/response.ts'
import { type Rows, type RowsOf, rowsOf } from '../http/upload-rows.ts'
import type { Call, PortalCall, VendorCall } from './call.ts'

/** The default maximum size of a body, in bytes. Every body that the schemas allow is smaller, except imports and bodies with metadata. */
const MAX_BODY_BYTES = 64 * 1024
/** The maximum size in bytes of a body from an app, whose API key is public. A check has the same limit. */
const MAX_APP_BODY_BYTES = 16 * 1024

/** The body that a handler receives: the parsed body, or the rows of an import. */
type Received<One extends Operation> = One['rows'] extends { row: z.ZodType<infer Row> }
  ? Rows<Row, One['rows'] extends { others: infer Others extends z.ZodObject } ? z.output<Others> : unknown>
  : z.output<BodyOf<One>>

/** Calls of the operator, of shops and of everyone have no organization. */
type CallOf<One extends Operation> = One['needs'] extends 'operator' | 'signature' | 'nothing'
  ? Call<ParamsOf<One>, z.output<QueryOf<One>>, Received<One>>
  : One['needs'] extends 'portal'
    ? PortalCall<ParamsOf<One>, z.output<QueryOf<One>>, Received<One>>
    : VendorCall<ParamsOf<One>, z.output<QueryOf<One>>, Received<One>>

/** A problem code with a status, which may differ from the code's default. */
export interface DocumentedError {
  code: ProblemCode
  status: (typeof PROBLEMS)[ProblemCode]['status']
}

/** A group of operations in `/openapi.json`. Groups appear in the order of their operations. */
export interface Tag {
  name: string
  description: string
}

/** The part of an operation that only the service knows. */
interface Implementation<One extends Operation> {
  summary: string
  description?: string
  /** Errors in addition to those that every operation of this kind can return. */
  errors?: readonly (ProblemCode | DocumentedError)[]
  /** Whether the handler waits for other services or requests. It has no transaction, and enters a gate itself before it uses a connection. */
  detached?: true
  /** Whether the quotas of bytes treat a request with this body like one that needs no body, for example because it deletes resources. */
  endsResources?(body: CallOf<One>['body']): boolean
  handle(call: CallOf<One>): Promise<ResultOf<One> | Streamed>
}

type Implementations<Table> = {
  [Name in keyof Table]: Table[Name] extends Operation ? Implementation<Table[Name]> : never
}

/** An operation with its implementation, whose types are erased. The router and the document at `/openapi.json` read it. */
export interface Endpoint extends Implementation<Operation> {
  /** The name of the operation, which is its `operationId`. */
  name: string
  tag: Tag
  operation: Operation
  method: Method
  path: string
  /** The status of a successful response. */
  status: 200 | 201 | 202 | 204
  /** Whether another operation reads the resource that this one creates. */
  isReadable: boolean
  /** The resource whose version the operation compares with `If-Match`, or null. */
  versioned: Versioned | null
  params: z.ZodObject | undefined
  rows: RowsOf<unknown> | null
  maxBodyBytes: number
}

/** The resource with a version that an operation changes. Its id is the path parameter `id`. */
export interface Versioned {
  /** The table with the row of the resource. */
  table: string
  /** Returns the representation of the resource. */
  read: (call: CallOf<Operation>) => Promise<unknown>
}

/** The tables whose name differs from the first part of the path of their resources. */
const TABLES: Readonly<Record<string, string>> = { templates: 'license_templates', commerce: 'commerce_connections' }

/** Returns whether the response contains a resource with a version. */
export function returnsVersion({ returns }: Operation): boolean {
  return returns instanceof z.ZodObject && 'updatedAt' in returns.shape
}

function statusOf({ returns, creates, continues }: Operation): Endpoint['status'] {
  if (returns === undefined) return 204
  if (continues) return 202
  return creates ? 201 : 200
}

const withoutNames = (route: string): string => route.replaceAll(/\{\w+\}/g, '{}')

type Given = Pick<Endpoint, 'tag' | 'name' | 'operation' | 'isReadable' | 'versioned'>

function endpointOf(given: Given, implementation: Implementation<Operation>): Endpoint {
  const { operation } = given
  const { rows, needs, maxBodyBytes = needs === 'apiKey' ? MAX_APP_BODY_BYTES : MAX_BODY_BYTES } = operation
  return {
    ...implementation,
    ...given,
    method: methodOf(operation),
    path: pathOf(operation),
    status: statusOf(operation),
    params: paramsOf(operation),
    rows: rows ? rowsOf(rows.name, rows.row, rows) : null,
    maxBodyBytes,
  }
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
  const routes = new Set(Object.values(table).map(({ route }) => withoutNames(route)))
  const isReadable = (operation: Operation) =>
    operation.creates === true && routes.has(`GET ${withoutNames(pathOf(operation))}/{}`)
  // A PATCH, a DELETE and the actions of a resource compare its version. The actions are the operations that return the same resource.
  const versionedBy = (operation: Operation): Versioned | null => {
    const [path, collection] = /^\/([\w-]+)\/\{id\}/.exec(pathOf(operation)) ?? []
    const [name, read] = Object.entries(table).find(([, one]) => one.route === `GET ${path}`) ?? []
    if (name === undefined || read === undefined || collection === undefined || !returnsVersion(read)) return null
    if (methodOf(operation) === 'GET' || (pathOf(operation) !== path && operation.returns !== read.returns)) return null
    return {
      table: TABLES[collection] ?? collection.replaceAll('-', '_'),
      read: (call) => implementations[name]!.handle(call),
    }
  }
  return Object.entries(table).map(([name, operation]) => {
    const given = { tag, name, operation, isReadable: isReadable(operation), versioned: versionedBy(operation) }
    return endpointOf(given, implementations[name]!)
  })
}

/** Returns the value of `Location` for a created resource, or null when no operation reads it. */
export function locationOf(
  { operation, isReadable }: Endpoint,
  params: Record<string, string>,
  created: unknown,
): string | null {
  if (!isReadable || typeof created !== 'object' || created === null || !('id' in created)) return null
  return `${urlOf(operation, { params })}/${String(created.id)}`
}

/** Returns the permission that the operation needs, or null when it needs none in particular. */
export function permissionOf({ needs }: Operation): Permission | null {
  return ALL_PERMISSIONS.find((permission) => permission === needs) ?? null
}

/** Returns whether callers may send a body. */
export function takesBody({ method }: Endpoint): boolean {
  return method !== 'GET' && method !== 'DELETE'
}

/** Returns whether the operation changes nothing. */
export function isRead({ method, operation }: Endpoint): boolean {
  return method === 'GET' || operation.readOnly === true
}

/** Returns whether the caller has no credential: everyone, or a shop that signs the body. */
export function needsNoCredential({ needs }: Operation): boolean {
  return needs === 'nothing' || needs === 'signature'
}

/**
 * Returns whether the operation accepts an idempotency key. A key belongs to a credential, so operations that need no credential accept no
 * key. The changes of customers can be repeated, and no file of theirs is stored.
 */
export function acceptsIdempotencyKey({ method, operation }: Endpoint): boolean {
  return (
    method === 'POST' && operation.readOnly !== true && operation.needs !== 'portal' && !needsNoCredential(operation)
  )
}

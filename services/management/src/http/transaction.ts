/**
 * Runs the handler of one request. A read uses the pool. A write runs in one transaction, which also contains its audit entry, its activity
 * and the response stored for a repeated request. After a deadlock or a serialization failure, the transaction is rolled back and retried.
 */

import { isRetryable } from '@keyward/database'
import { sql } from 'kysely'

import type { Caller } from './authentication.ts'
import type { Db } from './context.ts'
import type { Dependencies } from './dependencies.ts'
import type { BrowserHeaders, Endpoint, RequestOrigin } from './endpoint.ts'
import { runInside } from './fair-gate.ts'
import { shareOf } from './gates.ts'
import { findStoredResponse, type IdempotentRequest, storeResponse, type WireResponse } from './idempotency.ts'
import { ApiError, toProblem } from './problem.ts'
import { changingTransaction, thisTransaction } from './propagation.ts'
import type { Site } from './site.ts'
import { Streamed } from './streamed.ts'

const MAX_ATTEMPTS = 4

type Run = Awaited<ReturnType<Endpoint['prepare']>>

/** An authenticated and authorized request. */
export interface EndpointRequest {
  endpoint: Endpoint
  /** Parses the input or throws an ApiError. The returned function runs the handler. */
  prepare: () => Promise<Run>
  caller: Caller
  origin: () => RequestOrigin
  site: () => Site | null
  browser: BrowserHeaders
  path: string
  requestId: string
  idempotent: IdempotentRequest | null
  /** The number of seconds to wait for the validators, or null for no wait. */
  waitSeconds: number | null
}

interface Responses {
  sent: WireResponse
  /** The response that is stored for repeated requests: `sent` without its secrets. */
  stored: WireResponse
}

async function runHandler(dependencies: Dependencies, request: EndpointRequest, run: Run, db: Db): Promise<Responses> {
  const { definition } = request.endpoint
  const headers: Record<string, string> = {}
  const { kind: _kind, owner: _owner, isSuspended: _isSuspended, ...caller } = request.caller
  const { site, browser, origin } = request
  const result = await run({ ...caller, db, dependencies, headers, site, browser, origin })
  if (definition.status === 204) {
    const sent = { status: 204, headers, body: '' }
    return { sent, stored: sent }
  }
  if (result instanceof Streamed) {
    const sent = { status: definition.status, headers, body: '', stream: result }
    return { sent, stored: sent }
  }
  const type = definition.responseType ?? 'application/json'
  headers['content-type'] = `${type}; charset=utf-8`
  const serialize = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
  const sent = { status: definition.status, headers, body: serialize(result) }
  const { secrets } = definition
  if (!secrets || typeof result !== 'object' || result === null) return { sent, stored: sent }
  const withoutSecrets = Object.fromEntries(Object.entries(result).filter(([name]) => !secrets.includes(name)))
  return { sent, stored: { ...sent, body: serialize(withoutSecrets) } }
}

/** Returns the response for an error: a problem of RFC 9457. */
export function problemResponse(error: ApiError, path: string, requestId: string): WireResponse {
  return {
    status: error.status,
    headers: { 'content-type': 'application/problem+json; charset=utf-8', ...error.options.headers },
    body: JSON.stringify(toProblem(error, path, requestId)),
  }
}

/**
 * Returns whether the response to an error is stored. Validation errors are not stored, because a repeated request can be validated again
 * and the caller controls the length of their list.
 */
function isStored(error: ApiError): boolean {
  return error.status < 500 && error.status !== 422 && error.options.errors === undefined
}

/**
 * Runs the handler at most once for an idempotency key. An ApiError rolls back the handler's writes but not the transaction, which then
 * stores the response to the error (`isStored`).
 */
async function runOnce(
  dependencies: Dependencies,
  request: EndpointRequest,
  db: Db,
  idempotent: IdempotentRequest,
): Promise<WireResponse> {
  const before = await findStoredResponse(db, idempotent)
  if (before) return before
  await dependencies.storedBytes.requireSpace(db, idempotent)
  // The input is parsed after the lookup, so that a repeated request gets the stored response even if a time in the request's body has
  // passed since.
  const run = await request.prepare()
  await sql`savepoint handler`.execute(db)
  try {
    const { sent, stored } = await runHandler(dependencies, request, run, db)
    await storeResponse(db, idempotent, stored)
    return sent
  } catch (error) {
    if (!(error instanceof ApiError) || !isStored(error)) throw error
    await sql`rollback to savepoint handler`.execute(db)
    const response = problemResponse(error, request.path, request.requestId)
    await storeResponse(db, idempotent, response)
    return response
  }
}

type Action = (db: Db) => Promise<WireResponse>

/** Returns the function that the transaction runs. Without an idempotency key, the input is parsed before the transaction begins. */
async function actionOf(dependencies: Dependencies, request: EndpointRequest): Promise<Action> {
  const { idempotent } = request
  if (idempotent) return (db) => runOnce(dependencies, request, db, idempotent)
  const run = await request.prepare()
  return async (db) => (await runHandler(dependencies, request, run, db)).sent
}

interface Written {
  response: WireResponse
  /** The transaction that validators must have applied and the number of seconds to wait, or null when the response does not wait. */
  wait: { id: string | null; seconds: number } | null
}

async function write(dependencies: Dependencies, request: EndpointRequest, action: Action): Promise<Written> {
  return dependencies.db.transaction().execute(async (db) => {
    const response = await action(db)
    // A request with an error response changed nothing.
    if (request.waitSeconds === null || response.status >= 400) return { response, wait: null }
    // A replayed request changes nothing. It waits for the change that the first request committed.
    const isReplay = 'idempotency-replayed' in response.headers
    const id = await (isReplay ? thisTransaction(db) : changingTransaction(db))
    return { response, wait: { id, seconds: request.waitSeconds } }
  })
}

async function writeWithRetries(dependencies: Dependencies, request: EndpointRequest): Promise<Written> {
  const action = await actionOf(dependencies, request)
  for (let attempt = 1; ; attempt++) {
    try {
      return await write(dependencies, request, action)
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isRetryable(error)) throw error
    }
  }
}

/** Returns the response of the endpoint. The message of an error that is not an ApiError must not be sent to the caller. */
export async function handleRequest(dependencies: Dependencies, request: EndpointRequest): Promise<WireResponse> {
  const { definition } = request.endpoint
  const { reads, writes } = dependencies.gates
  const share = shareOf(request.caller)
  if (definition.detached === true) {
    const run = await request.prepare()
    return (await runHandler(dependencies, request, run, dependencies.db)).sent
  }
  if (definition.method === 'get' || definition.readOnly === true) {
    const run = await request.prepare()
    const response = await runInside(reads, share, () => runHandler(dependencies, request, run, dependencies.readDb))
    return response.sent
  }
  const { response, wait } = await runInside(writes, share, () => writeWithRetries(dependencies, request))
  if (wait === null) return response
  const applied = await dependencies.propagation.wait(request.caller.organizationId, wait.id, wait.seconds)
  return { ...response, headers: { ...response.headers, ...applied } }
}

/**
 * Serves one request in numbered steps, from its admission to its response. A read uses the pool of reads. A change runs in one transaction,
 * which also contains its audit entry, its activity and the response stored for a repeated request.
 */

import { isRetryable } from '@keyward/database'
import { discardLast, together } from '@keyward/database/kysely'
import type { Request, RequestHandler, Response } from 'express'
import { sql } from 'kysely'

import type { Admission } from './admission/admission.ts'
import { authorize, type Caller } from './admission/authentication.ts'
import { runInside } from './admission/fair-gate.ts'
import { shareOf } from './admission/gates.ts'
import type { Db } from './context.ts'
import { readBody, type RequestBody } from './http/body.ts'
import { findStoredResponse, type IdempotentRequest, idempotentRequest, storeResponse } from './http/idempotency.ts'
import { ApiError } from './http/problem.ts'
import { changingTransaction, parsePrefer, thisTransaction } from './http/propagation.ts'
import {
  NO_SHARE,
  problemResponse,
  requestIdOf,
  type Responder,
  setHeaders,
  Streamed,
  type WireResponse,
} from './http/response.ts'
import { siteOf } from './http/site.ts'
import type { RequestOrigin } from './operations/call.ts'
import type { Dependencies } from './operations/dependencies.ts'
import {
  acceptsIdempotencyKey,
  type Endpoint,
  isRead,
  locationOf,
  needsNoCredential,
  returnsVersion,
  takesBody,
} from './operations/implement.ts'
import { type Input, parseInput } from './operations/input.ts'
import { etagOf, requireVersion } from './operations/versions.ts'
import { requireBytes } from './quotas/quotas.ts'

const MAX_ATTEMPTS = 4

export interface PipelineOptions {
  dependencies: Dependencies
  admission: Admission
  responder: Responder
  /** Called for every authenticated request, except those with the operator token. Receives the id of the credential or session. */
  onCredentialUse: (credentialId: string) => void
}

/** The state of one request, which its steps share. */
interface RequestState {
  endpoint: Endpoint
  request: Request
  response: Response
  /** Determines the caller's address and country when they are first needed. */
  origin: () => RequestOrigin
  /** The share of the caller, or `NO_SHARE` until the caller is known. */
  share: string
}

/** An admitted request whose body has been read. */
interface Work extends Omit<RequestState, 'share'> {
  dependencies: Dependencies
  caller: Caller
  idempotent: IdempotentRequest | null
  /** The bytes of the body of a signed request. */
  bytes: Uint8Array
  /** Returns the parsed input, which is parsed once. Throws INVALID_REQUEST, NOT_FOUND and IMPORT_TOO_LARGE. */
  parse: () => Promise<Input>
}

/** Returns a function that creates the Express handler of an endpoint. */
export function createPipeline(options: PipelineOptions): (endpoint: Endpoint) => RequestHandler {
  const { admission, responder } = options
  return (endpoint) => (request, response) => {
    const origin = originOf(options.dependencies, request)
    const state: RequestState = { endpoint, request, response, origin, share: NO_SHARE }
    serve(options, state).then(
      (served) => responder.send(response, served),
      (error: unknown) => {
        if (needsNoCredential(endpoint.operation)) admission.noteFailure(error, origin().ip)
        responder.sendError(request, response, error, state.share)
      },
    )
  }
}

function originOf({ resolver }: Dependencies, request: Request): () => RequestOrigin {
  let origin: RequestOrigin | undefined
  return () => (origin ??= resolver.resolveText(request.socket.remoteAddress, (name) => headerOf(request, name) ?? ''))
}

function headerOf({ headers }: Request, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(',') : value
}

async function serve(options: PipelineOptions, state: RequestState): Promise<WireResponse> {
  const { dependencies, admission } = options
  const { endpoint, request, response } = state
  const { gates, propagation } = dependencies

  // 1. Authenticate the caller, and count the request. No byte of the body has been read.
  const { caller, headers } = await admission.admit(endpoint.operation.needs, request, state.origin().ip)
  const share = shareOf(caller)
  state.share = share
  setHeaders(response, headers)
  if (caller.kind === 'vendor' || caller.kind === 'apiKey' || caller.session) options.onCredentialUse(caller.owner)

  // 2. Authorize the caller.
  authorize(endpoint.operation.needs, caller)

  let served: Served
  const leave: (() => void)[] = []
  try {
    // 3. Read the body. An import takes its place among all imports only when its body has arrived, so that slow bodies occupy none.
    const { rows } = endpoint
    const isSigned = endpoint.operation.needs === 'signature'
    const { take, release } = gates[isSigned ? 'signedBytes' : 'importBytes'].hold()
    leave.push(release)
    if (rows) leave.push(await gates.uploads.enter(share))
    const key = acceptsIdempotencyKey(endpoint) ? headerOf(request, 'idempotency-key') : undefined
    const limits = { maxBytes: endpoint.maxBodyBytes, isHashed: key !== undefined }
    const body = takesBody(endpoint)
      ? await readBody(
          request,
          rows ? { ...limits, rows: rows.splitter, take } : isSigned ? { ...limits, isSigned, take } : limits,
        )
      : NO_BODY
    if (rows) leave.push(await gates.imports.enter(share))
    const idempotent = idempotentRequest(caller, key, {
      method: request.method,
      path: request.path,
      bodyHash: body.hash,
    })

    // 4. Parse the input. With an idempotency key, it is parsed after the stored response was looked up, so that a repeated request gets
    // that response even if a time in its body has passed since.
    let input: Promise<Input> | undefined
    const parse = () => (input ??= parseInput(endpoint, { params: request.params, query: request.query, body }))
    const work: Work = { ...state, dependencies, caller, idempotent, bytes: body.bytes, parse }
    if (!idempotent) await parse()

    // 5. Run the handler. A detached handler shares connections itself. A read has its own pool.
    // 6. A change runs in one transaction, which also stores the response for a repeated request.
    if (endpoint.detached) served = await read(work, dependencies.db)
    else if (isRead(endpoint)) served = await runInside(gates.reads, share, () => read(work, dependencies.readDb))
    else served = await runInside(gates.writes, share, () => change(work))
  } finally {
    for (const each of leave) each()
  }

  // 7. Wait until the validators have applied the change. The places of the request are free meanwhile.
  const { transaction, waitSeconds } = served
  if (waitSeconds !== null)
    Object.assign(served.response.headers, await propagation.wait(caller.organizationId, transaction, waitSeconds))

  // 8. Respond. The length counts toward the limits of the caller.
  admission.countResponse(caller, served.response.body)
  return served.response
}

const NO_BODY: RequestBody = { value: undefined, split: null, hash: null, bytes: new Uint8Array() }

interface Served {
  response: WireResponse
  /** The transaction that validators must have applied, or null when the request has logged no change for them. */
  transaction: string | null
  /** The number of seconds to wait for the validators, or null when the response does not wait. */
  waitSeconds: number | null
}

async function read(work: Work, db: Db): Promise<Served> {
  return { response: (await run(work, db)).sent, transaction: null, waitSeconds: null }
}

/** Runs the handler in a transaction. After a deadlock or a serialization failure, the transaction is rolled back and retried. */
async function change(work: Work): Promise<Served> {
  const { endpoint, request, dependencies, idempotent } = work
  const preferred = endpoint.operation.propagates ? parsePrefer(headerOf(request, 'prefer')) : null
  for (let attempt = 1; ; attempt++) {
    try {
      return await dependencies.transaction(async (db): Promise<Served> => {
        const response = idempotent ? await runOnce(work, db, idempotent) : (await run(work, db)).sent
        // A request with an error response changed nothing.
        if (preferred === null || response.status >= 400) return { response, transaction: null, waitSeconds: null }
        // A replayed request changes nothing. It waits for the change that the first request committed.
        const isReplay = 'idempotency-replayed' in response.headers
        const transaction = await (isReplay ? thisTransaction(db) : changingTransaction(db))
        return { response, transaction, waitSeconds: preferred }
      })
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isRetryable(error)) throw error
    }
  }
}

/**
 * Returns whether the response to an error is stored. Validation errors are not stored, because a repeated request can be validated again
 * and the caller controls the length of their list. A version mismatch is not stored, because the caller repeats the request with another
 * version.
 */
function isStored(error: ApiError): boolean {
  return error.status < 500 && error.status !== 422 && error.status !== 412 && error.options.errors === undefined
}

/**
 * Runs the handler at most once for an idempotency key. An ApiError rolls back the handler's writes but not the transaction, which then
 * stores the response to the error (`isStored`).
 */
async function runOnce(work: Work, db: Db, idempotent: IdempotentRequest): Promise<WireResponse> {
  const before = await findStoredResponse(db, idempotent)
  if (before) return before
  await work.dependencies.storedBytes.requireSpace(db, idempotent)
  await work.parse()
  await sql`savepoint handler`.execute(db)
  try {
    const { sent, stored } = await run(work, db)
    await storeResponse(db, idempotent, stored)
    return sent
  } catch (error) {
    if (!(error instanceof ApiError) || !isStored(error)) throw error
    discardLast(db)
    await sql`rollback to savepoint handler`.execute(db)
    const response = problemResponse(error, work.request.path, requestIdOf(work.response))
    await storeResponse(db, idempotent, response)
    return response
  }
}

interface Responses {
  sent: WireResponse
  /** The response that is stored for repeated requests: `sent` without its secrets. */
  stored: WireResponse
}

/** The conditions of RFC 9110 that no change supports. A change that ignores one could overwrite a later change. */
const UNSUPPORTED_CONDITIONS = ['If-None-Match', 'If-Unmodified-Since'] as const

function requireSupportedConditions(request: Request): void {
  const found = UNSUPPORTED_CONDITIONS.find((name) => headerOf(request, name.toLowerCase()) !== undefined)
  if (found) throw new ApiError('INVALID_REQUEST', `The header ${found} is not supported for changes. Omit it.`)
}

/** Runs the handler, and returns its result as a response. */
async function run(
  { endpoint, request, dependencies, caller, origin, bytes, parse }: Work,
  db: Db,
): Promise<Responses> {
  const { status } = endpoint
  const { file, secrets } = endpoint.operation
  const headers: Record<string, string> = {}
  const input = await parse()
  const site = () => siteOf(request.headers.host)
  const browser = { cookie: request.headers.cookie, origin: request.headers.origin }
  const { organizationId, permissions, actor, credential, session, portal } = caller
  const known = { organizationId, permissions, actor, credential, session, portal }
  const isHead = request.method === 'HEAD'
  const received = { bytes, header: (name: string) => headerOf(request, name) }
  const context = { ...known, db, dependencies, headers, site, browser, origin, isHead, received }
  if (!isRead(endpoint)) requireSupportedConditions(request)
  const ifMatch = isRead(endpoint) ? undefined : headerOf(request, 'if-match')
  if (ifMatch !== undefined) {
    const { versioned } = endpoint
    if (!versioned) throw new ApiError('INVALID_REQUEST', 'The header If-Match is not supported here. Omit it.')
    const { id = '' } = input.params
    const readCurrent = () => versioned.read({ ...context, params: { id }, query: {}, body: undefined })
    await requireVersion(versioned, { db, organizationId, id }, ifMatch, readCurrent)
  }
  const hasBody = endpoint.operation.body?.isOptional() === false || endpoint.rows !== null
  const needsBody = hasBody && endpoint.endsResources?.(input.body) !== true
  const isCounted = (caller.kind === 'vendor' || caller.kind === 'customer') && !isRead(endpoint)
  const allowed = isCounted ? requireBytes({ db, organizationId }, needsBody) : Promise.resolve()
  // The transaction of a handler that is not detached is rolled back when its organization has no bytes left.
  if (endpoint.detached) await allowed
  const handled: Promise<unknown> = endpoint.handle({ ...input, ...context })
  const [result] = await together(handled, allowed)
  const etag = returnsVersion(endpoint.operation) ? etagOf(result) : null
  if (etag !== null) headers['etag'] = etag
  const location = locationOf(endpoint, input.params, result)
  if (location !== null) headers['location'] = location
  if (status === 204) return unchanged({ status, headers, body: '' })
  if (result instanceof Streamed) return unchanged({ status, headers, body: '', stream: result })
  headers['content-type'] = `${file === 'text/plain' ? file : 'application/json'}; charset=utf-8`
  const sent = { status, headers, body: serialize(result) }
  if (!secrets || typeof result !== 'object' || result === null) return unchanged(sent)
  const withoutSecrets = Object.fromEntries(Object.entries(result).filter(([name]) => !secrets.includes(name)))
  return { sent, stored: { ...sent, body: serialize(withoutSecrets) } }
}

function unchanged(sent: WireResponse): Responses {
  return { sent, stored: sent }
}

function serialize(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

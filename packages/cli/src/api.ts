/**
 * Calls operations of the management API. A problem is converted to a Failure with its code and validation errors. Only calls with `retry`
 * are retried.
 */

import { createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import { problem } from '@keyward/contract'
import {
  type AnyInput,
  type InputOf,
  methodOf,
  type Operation,
  type ResultOf,
  urlOf,
} from '@keyward/contract/operations'
import { z } from 'zod'

import type { Connection } from './connection.ts'
import { EXIT, Failure } from './failure.ts'

export interface CallOptions {
  /** Retries the call while the service is unavailable or limits the rate. If the call changes data, it must have an idempotency key. */
  retry?: { idempotencyKey?: string; attempts?: number }
  /** The maximum time, in seconds, to wait until all live validators have applied the change. */
  waitS?: number
  /** The version that the resource must still have (docs/api.md#m18). */
  version?: string
}

export interface ApiResponse<T> {
  data: T
  /**
   * The number of live validators that have applied the change, and the number of all live ones, such as `3/3`. Null unless `waitS` was
   * given.
   */
  appliedBy: string | null
  /** Whether the response is the stored one of an earlier request with the same idempotency key. */
  isReplayed: boolean
}

export interface Api {
  readonly baseUrl: string
  /** Calls an operation. Throws Failure for errors and for responses that do not match the schema. */
  call<One extends Operation>(
    operation: One,
    input: InputOf<One>,
    options?: CallOptions,
  ): Promise<ApiResponse<ResultOf<One>>>
  /**
   * Writes the response of an operation to a file, which exists only when the response was complete. Returns its number of bytes. Throws
   * Failure.
   */
  download(operation: Operation, input: AnyInput, path: string): Promise<number>
}

/** A validation error of the service: a JSON pointer or query parameter of the request, and a description. */
export interface FieldError {
  pointer: string
  detail: string
}

/** The failure of a request that the service rejected with validation errors. */
export class ValidationFailure extends Failure {
  readonly errors: readonly FieldError[]

  /** `nameOf` converts a pointer of `errors` to the name that the message shows. */
  constructor(code: string, errors: readonly FieldError[], nameOf = fieldName) {
    const details = errors.map(({ pointer, detail }) => `${nameOf(pointer)} ${detail}`)
    super(EXIT.apiError, 'The service rejected the request', { code, details })
    this.errors = errors
  }
}

const TIMEOUT_MS = 60_000
/** The time after which the service ends an export. */
const EXPORT_TIMEOUT_MS = 15 * 60_000
const MAX_ATTEMPTS = 8
const MAX_PAUSE_MS = 15_000
const RETRIED_STATUS: ReadonlySet<number> = new Set([429, 502, 503, 504])

export function createApi(connection: Connection): Api {
  function call<One extends Operation>(
    operation: One,
    input: InputOf<One>,
    options?: CallOptions,
  ): Promise<ApiResponse<ResultOf<One>>>
  async function call(operation: Operation, input: AnyInput, options: CallOptions = {}): Promise<ApiResponse<unknown>> {
    const response = await send(requestOf(connection, operation, input, options), connection.baseUrl, options.retry)
    const body = await response.text()
    if (!response.ok) throw failureOf(response.status, body)
    const { file, returns = z.undefined() } = operation
    const parsed = file === undefined ? returns.safeParse(parseJson(body)) : z.string().safeParse(body)
    if (!parsed.success)
      throw new Failure(
        EXIT.unreachable,
        `The response of ${connection.baseUrl} does not have the format of Keyward. Check --url`,
        {
          details: parsed.error.issues.slice(0, 5).map((issue) => `${issue.path.join('.')}: ${issue.message}`),
        },
      )
    const isReplayed = response.headers.has('idempotency-replayed')
    return { data: parsed.data, appliedBy: response.headers.get('x-applied-by'), isReplayed }
  }
  async function download(operation: Operation, input: AnyInput, path: string): Promise<number> {
    const request = requestOf(connection, operation, input, {})
    const response = await send(request, connection.baseUrl, { attempts: 3 }, EXPORT_TIMEOUT_MS)
    if (!response.ok || response.body === null) throw failureOf(response.status, await response.text())
    const part = `${path}.part`
    try {
      await pipeline(Readable.from(response.body), createWriteStream(part))
      await rename(part, path)
    } catch (error) {
      await rm(part, { force: true })
      throw new Failure(EXIT.unreachable, `The export is incomplete (${reasonOf(error)}). ${path} was not written`)
    }
    return (await stat(path)).size
  }
  return { baseUrl: connection.baseUrl, call, download }
}

/** Returns the request of a call without its time-out. The credential follows from the operation. */
function requestOf(
  connection: Connection,
  operation: Operation,
  input: AnyInput,
  { retry, waitS, version }: CallOptions,
): [url: string, init: RequestInit] {
  const token = operation.needs === 'operator' ? connection.operatorToken() : connection.token()
  const headers: Record<string, string> = { authorization: `Bearer ${token}` }
  if (input.body !== undefined) headers['content-type'] = 'application/json'
  if (retry?.idempotencyKey !== undefined) headers['idempotency-key'] = retry.idempotencyKey
  if (version !== undefined) headers['if-match'] = `"${version}"`
  if (waitS !== undefined) headers['prefer'] = `wait=${waitS}`
  const init: RequestInit = { method: methodOf(operation), headers }
  if (input.body !== undefined) init.body = JSON.stringify(input.body)
  return [connection.baseUrl + pathFor(operation, input), init]
}

function pathFor(operation: Operation, input: AnyInput): string {
  try {
    return urlOf(operation, input)
  } catch (error) {
    throw error instanceof RangeError ? new Failure(EXIT.usage, error.message.replace(/\.$/, '')) : error
  }
}

async function send(
  [url, init]: [string, RequestInit],
  baseUrl: string,
  retry: CallOptions['retry'],
  timeoutMs = TIMEOUT_MS,
): Promise<Response> {
  const attempts = retry?.attempts ?? (retry === undefined ? 1 : MAX_ATTEMPTS)
  for (let attempt = 1; ; attempt++) {
    const pauseMs = Math.min(250 * 2 ** attempt, MAX_PAUSE_MS)
    const last = attempt >= attempts
    try {
      const response = await fetch(url, { ...init, signal: AbortSignal.timeout(timeoutMs) })
      if (last || !RETRIED_STATUS.has(response.status)) return response
      await response.body?.cancel()
      const after = Number(response.headers.get('retry-after') ?? 0) * 1_000
      await sleep(Math.min(Math.max(after, response.status === 429 ? 0 : pauseMs), MAX_PAUSE_MS))
    } catch (error) {
      if (last) throw new Unreachable(baseUrl, error)
      await sleep(pauseMs)
    }
  }
}

/** The error of a request that got no response. The service may have received the request. */
class Unreachable extends Error {
  constructor(baseUrl: string, cause: unknown) {
    super(`${baseUrl} cannot be reached (${reasonOf(cause)})`, { cause })
  }
}

/**
 * Returns the code or message of the innermost cause. `fetch` throws "fetch failed", and only the cause of this error is specific, such as
 * ECONNREFUSED.
 */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return reasonOf(error.cause)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}

/** Converts `Unreachable` to a Failure. Returns any other error unchanged. */
export function asFailure(error: unknown): unknown {
  return error instanceof Unreachable ? new Failure(EXIT.unreachable, error.message) : error
}

function failureOf(status: number, body: string): Failure {
  const parsed = problem.safeParse(parseJson(body))
  if (!parsed.success)
    return new Failure(
      EXIT.unreachable,
      `The service responded with status ${status} without a description of the error`,
    )
  const { code, detail, title, errors } = parsed.data
  const message = (detail === '' ? title : detail).replace(/\.$/, '')
  if (errors !== undefined && errors.length > 0) return new ValidationFailure(code, errors)
  return new Failure(status === 503 || status === 429 ? EXIT.unreachable : EXIT.apiError, message, { code })
}

/** Converts a JSON pointer or query parameter to the name of a field: `#/policy/expiresAt` becomes `policy.expiresAt`. */
function fieldName(pointer: string): string {
  const name = pointer.replace(/^(?:#\/|\?)/, '').replaceAll('/', '.')
  return name === '' || name === '#' ? 'The body' : name
}

function parseJson(body: string): unknown {
  try {
    const value: unknown = JSON.parse(body)
    return value
  } catch {
    return undefined
  }
}

/**
 * Calls of the management API. What comes back is parsed with the contract's schemas; a problem becomes a Failure that
 * names its code and every place that is wrong. Only calls that may be repeated are: reads, and what `retry` marks.
 */
import { setTimeout as sleep } from 'node:timers/promises'

import { problem } from '@keyward/contract'
import type { z } from 'zod'

import type { Connection } from './connection.ts'
import { EXIT, Failure } from './failure.ts'

export interface Call {
  method: 'GET' | 'POST' | 'DELETE'
  /** Below `/api/v1`. */
  path: string
  body?: object
  as?: 'operator'
  /** Tries again while the service cannot answer. With an idempotency key, so that nothing is done twice. */
  retry?: { idempotencyKey?: string; attempts?: number }
  /** Seconds to wait until every live validator has applied the change. */
  waitS?: number
}

export interface Answer<T> {
  data: T
  /** `3/3`: how many validators have applied the change; null unless `waitS` was given. */
  appliedBy: string | null
}

export interface Api {
  readonly baseUrl: string
  call<T>(call: Call, schema: z.ZodType<T>): Promise<Answer<T>>
}

/** A place in the request that the service refused. */
export class RefusedPlaces extends Failure {
  readonly places: readonly { pointer: string; detail: string }[]

  constructor(message: string, code: string, places: readonly { pointer: string; detail: string }[]) {
    super(EXIT.refused, message, { code, details: places.map(({ pointer, detail }) => `${pointer} ${detail}`) })
    this.places = places
  }
}

const TIMEOUT_MS = 60_000
const LONGEST_PAUSE_MS = 15_000
const RETRIED_STATUS: ReadonlySet<number> = new Set([429, 502, 503, 504])

export function createApi(connection: Connection): Api {
  return {
    baseUrl: connection.baseUrl,
    async call(call, schema) {
      const response = await send(connection, call)
      const body = await response.text()
      if (!response.ok) throw failureOf(response.status, body)
      const parsed = schema.safeParse(parseJson(body))
      if (!parsed.success)
        throw new Failure(EXIT.unreachable, `${connection.baseUrl} answered something else than Keyward does`, {
          details: parsed.error.issues.slice(0, 5).map((issue) => `${issue.path.join('.')}: ${issue.message}`),
        })
      return { data: parsed.data, appliedBy: response.headers.get('x-applied-by') }
    },
  }
}

async function send(connection: Connection, call: Call): Promise<Response> {
  const attempts = call.retry?.attempts ?? (call.retry === undefined ? 1 : 8)
  for (let attempt = 1; ; attempt++) {
    const pauseMs = Math.min(250 * 2 ** attempt, LONGEST_PAUSE_MS)
    const last = attempt >= attempts
    try {
      const response = await sendOnce(connection, call)
      if (last || !RETRIED_STATUS.has(response.status)) return response
      await response.body?.cancel()
      const after = Number(response.headers.get('retry-after') ?? 0) * 1_000
      await sleep(Math.min(Math.max(after, response.status === 429 ? 0 : pauseMs), LONGEST_PAUSE_MS))
    } catch (error) {
      if (error instanceof Failure || last) throw error
      await sleep(pauseMs)
    }
  }
}

async function sendOnce(connection: Connection, call: Call): Promise<Response> {
  const token = call.as === 'operator' ? connection.operatorToken() : connection.token()
  const headers: Record<string, string> = { authorization: `Bearer ${token}` }
  if (call.body !== undefined) headers['content-type'] = 'application/json'
  if (call.retry?.idempotencyKey !== undefined) headers['idempotency-key'] = call.retry.idempotencyKey
  if (call.waitS !== undefined) headers['prefer'] = `wait=${call.waitS}`
  const init: RequestInit = { method: call.method, headers, signal: AbortSignal.timeout(TIMEOUT_MS) }
  if (call.body !== undefined) init.body = JSON.stringify(call.body)
  try {
    return await fetch(`${connection.baseUrl}/api/v1${call.path}`, init)
  } catch (error) {
    throw new Unreachable(connection.baseUrl, error)
  }
}

/** The call may or may not have arrived. */
class Unreachable extends Error {
  constructor(baseUrl: string, cause: unknown) {
    super(`${baseUrl} cannot be reached (${reasonOf(cause)})`, { cause })
  }
}

/** Fetch says "fetch failed" and keeps the reason, such as ECONNREFUSED or a certificate's, in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return reasonOf(error.cause)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}

export function asFailure(error: unknown): unknown {
  return error instanceof Unreachable ? new Failure(EXIT.unreachable, error.message) : error
}

function failureOf(status: number, body: string): Failure {
  const parsed = problem.safeParse(parseJson(body))
  if (!parsed.success) return new Failure(EXIT.unreachable, `The service answered ${status}, and no reason of its own`)
  const { code, detail, title, errors } = parsed.data
  const message = detail === '' ? title : detail
  if (errors !== undefined && errors.length > 0) return new RefusedPlaces(message, code, errors)
  return new Failure(status === 503 || status === 429 ? EXIT.unreachable : EXIT.refused, message, { code })
}

function parseJson(body: string): unknown {
  try {
    const value: unknown = JSON.parse(body)
    return value
  } catch {
    return undefined
  }
}

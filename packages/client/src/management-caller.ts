/**
 * Calls operations of the management API. `scripts/management.ts` adds the table of operations and their types, which it takes from
 * docs/openapi.json, when the package is built.
 */

import { parseObject } from './json.ts'

export interface ManagementOptions {
  /** The address of the service, such as `https://licenses.example.com`. */
  url: string
  /** A management token, a personal access token, or the operator token. */
  token: string
  /** The time in milliseconds after which a call is abandoned. Default: 30,000. */
  timeoutMs?: number
}

export interface CallInput {
  path?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, string | number | boolean | undefined>>
  body?: unknown
  /** A text that identifies this request. A repetition with the same key and body gets the first response. */
  idempotencyKey?: string
  /** The seconds, at most 10, to wait until every validator has applied the change. */
  waitSeconds?: number
}

/** An error response of the service. `code` is stable, and `message` is a sentence for people. */
export class ManagementError extends Error {
  override readonly name = 'ManagementError'
  readonly status: number
  readonly code: string
  /** The whole response, an object as RFC 9457 defines it. For a response that is not from Keyward, the object is empty. */
  readonly problem: Readonly<Record<string, unknown>>

  constructor(status: number, problem: Readonly<Record<string, unknown>>) {
    const { code, detail } = problem
    super(typeof detail === 'string' ? detail : `The service responded with status ${status}.`)
    this.status = status
    this.code = typeof code === 'string' ? code : ''
    this.problem = problem
  }
}

const DEFAULT_TIMEOUT_MS = 30_000
/** Path segments that a URL parser removes. `DELETE /licenses/` with an empty id would be another operation. */
const LOST_SEGMENT = /^\.{0,2}$/

/** Returns a function for each route, such as `POST /api/v1/licenses/{id}/renew`, by the name of its operation. */
export function createCaller(
  routes: Readonly<Record<string, string>>,
  options: ManagementOptions,
): Record<string, (input?: CallInput) => Promise<unknown>> {
  return Object.fromEntries(
    Object.entries(routes).map(([name, route]) => [name, (input = {}) => call(options, route, input)]),
  )
}

async function call({ url, token, timeoutMs }: ManagementOptions, route: string, input: CallInput): Promise<unknown> {
  const [method = '', path = ''] = route.split(' ')
  const { body, idempotencyKey, waitSeconds } = input
  const response = await fetch(url.replace(/\/$/, '') + fillIn(path, input), {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
      ...(waitSeconds !== undefined && { prefer: `wait=${waitSeconds}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs ?? DEFAULT_TIMEOUT_MS),
  })
  const text = await response.text()
  if (!response.ok) throw new ManagementError(response.status, parseObject(text) ?? {})
  if (response.status === 204) return undefined
  return response.headers.get('content-type')?.startsWith('application/json') === true ? JSON.parse(text) : text
}

/** Returns the path with its parameters and the query. */
function fillIn(path: string, { path: parameters = {}, query = {} }: CallInput): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = parameters[name]
    if (value === undefined || LOST_SEGMENT.test(value))
      throw new TypeError(`path.${name} must be an id; got "${value}".`)
    return encodeURIComponent(value)
  })
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) if (value !== undefined) search.set(key, String(value))
  return search.size === 0 ? filled : `${filled}?${search.toString()}`
}

// One HTTP request, and what its answer means before anybody reads the body: an answer of the service, a mistake in the
// app's set-up, or an outage. Nothing here throws.

import { parseObject, readMessage } from '../json.ts'
import type { Settings } from '../options.ts'
import type { ConfigurationReason, OutageCause } from '../results.ts'
import { TooLate, within } from '../timeout.ts'

/** The service could not be reached. `retryAfterMs`: when it asked to be called again. */
export interface Outage {
  kind: 'outage'
  cause: OutageCause
  retryAfterMs: number
}

/** A 4xx that is no verdict, and not 408. */
export interface Misconfiguration {
  kind: 'misconfiguration'
  reason: ConfigurationReason
  status: number
  message: string
}

/** What an endpoint answered. `dateMs`: the service's clock, where it told it. */
export interface Answer<Value> {
  kind: 'answer'
  value: Value
  dateMs: number | null
}

export type Reply<Value> = Answer<Value> | Misconfiguration | Outage

/** One endpoint: which statuses are its answers, and how their bodies are read (null: the service never says that). */
export interface Endpoint<Value> {
  path: string
  body: Readonly<Record<string, string | undefined>>
  statuses: readonly number[]
  read(status: number, body: string): Value | null
}

// A verdict has a few hundred bytes, a file a few thousand.
const MAX_BODY_BYTES = 64 * 1024

/** Calls an endpoint once, within `timeoutMs` for the whole answer. Redirects are not followed. */
export async function request<Value>(
  settings: Settings,
  endpoint: Endpoint<Value>,
  timeoutMs: number,
): Promise<Reply<Value>> {
  const abandoned = new AbortController()
  try {
    // The signal alone would not do: an app's own `fetch` may not know of signals.
    return await within(timeoutMs, exchange(settings, endpoint, abandoned.signal))
  } catch (error) {
    abandoned.abort()
    return outage(error instanceof TooLate ? 'TIMEOUT' : 'NETWORK_ERROR')
  }
}

async function exchange<Value>(
  settings: Settings,
  endpoint: Endpoint<Value>,
  signal: AbortSignal,
): Promise<Reply<Value>> {
  const response = await settings.fetch(new URL(endpoint.path, settings.baseUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${settings.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(endpoint.body),
    // A redirect is never the service's; following one would also carry the API key elsewhere.
    redirect: 'error',
    credentials: 'omit',
    signal,
  })
  return classify(endpoint, response, await readBody(response))
}

function classify<Value>(endpoint: Endpoint<Value>, response: Response, body: string): Reply<Value> {
  const { status, headers } = response
  if (endpoint.statuses.includes(status)) {
    const value = endpoint.read(status, body)
    return value === null
      ? outage('UNEXPECTED_ANSWER')
      : { kind: 'answer', value, dateMs: readDate(headers.get('date')) }
  }
  // The request came too slowly: of all 4xx the one that is the network's fault.
  if (status === 408) return outage('TIMEOUT')
  if (status >= 500) return outage('SERVER_ERROR', readRetryAfter(headers.get('retry-after')))
  if (status < 400) return outage('UNEXPECTED_ANSWER')
  const message = readMessage(parseObject(body) ?? {}) ?? `The service answered ${status}.`
  return { kind: 'misconfiguration', reason: configurationReason(status), status, message }
}

function configurationReason(status: number): ConfigurationReason {
  switch (status) {
    case 401:
      return 'UNAUTHORIZED'
    case 403:
      return 'FORBIDDEN'
    case 404:
    case 405:
      return 'WRONG_ADDRESS'
    case 400:
    case 413:
    case 415:
    case 422:
      return 'INVALID_REQUEST'
    case 429:
      return 'RATE_LIMITED'
    default:
      return 'UNEXPECTED_STATUS'
  }
}

/** The body as text. Throws for one that is cut short, too long or not UTF-8; the caller takes that for an outage. */
async function readBody(response: Response): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = response.body?.getReader()
  let text = ''
  let bytes = 0
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
    bytes += part.value.length
    if (bytes > MAX_BODY_BYTES) {
      await reader?.cancel()
      throw new RangeError('The answer is too long.')
    }
    text += decoder.decode(part.value, { stream: true })
  }
  return text + decoder.decode()
}

function readDate(header: string | null): number | null {
  const ms = header === null ? Number.NaN : Date.parse(header)
  return Number.isNaN(ms) ? null : ms
}

function readRetryAfter(header: string | null): number {
  const seconds = Number(header)
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0
}

function outage(cause: OutageCause, retryAfterMs = 0): Outage {
  return { kind: 'outage', cause, retryAfterMs }
}

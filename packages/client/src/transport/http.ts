/**
 * Sends one HTTP request and classifies its outcome as a response of the service, a mistake in the app's configuration, or an
 * outage. `request` never throws.
 */

import { encodeBase64Url, type VerificationKey, verifyAnswer } from '@keyward/license-file'

import { parseObject, readMessage } from '../json.ts'
import type { Settings } from '../options.ts'
import type { ConfigurationReason, OutageCause } from '../results.ts'
import { TimeoutError, withTimeout } from '../timeout.ts'
import { describeFailure } from './failure.ts'

/** The service could not be reached. `retryAfterMs` is the pause before a retry that the service requests, or 0. */
export interface Outage {
  kind: 'outage'
  cause: OutageCause
  /** A description for the developer. */
  detail: string
  retryAfterMs: number
}

/** The service responded with a 4xx that the endpoint does not define, other than 408. */
export interface Misconfiguration {
  kind: 'misconfiguration'
  reason: ConfigurationReason
  status: number
  message: string
}

/** A response of an endpoint. Times are in milliseconds since 1970. */
export interface ServiceResponse<Value> {
  kind: 'response'
  value: Value
  /** The time in the header `Date`, or null without the header. */
  dateMs: number | null
  /** The time in the signature, or null if the client requires no signature. */
  signedMs: number | null
}

export type CallOutcome<Value> = ServiceResponse<Value> | Misconfiguration | Outage

/** One endpoint of the service. */
export interface Endpoint<Value> {
  path: string
  /** Whether the service signs the responses of this endpoint (docs/api.md#g1). */
  isSigned: boolean
  body: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The statuses that the endpoint defines. Any other status is an error. */
  statuses: readonly number[]
  /** Parses the body of a response. Returns null for a body that the service never sends. */
  read(status: number, body: string): Value | null
}

// The maximum size of the body of a response. A verdict has a few hundred bytes, and a file a few thousand.
const MAX_BODY_BYTES = 64 * 1024

/** One attempt to call an endpoint. */
export interface Attempt {
  timeoutMs: number
  /** The public key under which the response shall be signed, or null for a response that need not be signed. */
  signedBy: VerificationKey | null
  /** The time of the latest signed response, in milliseconds since 1970, or 0. */
  latestSignedMs: number
  /** Ends the attempt as after a timeout. */
  signal: AbortSignal | undefined
}

/** Calls an endpoint once, with `timeoutMs` for the whole response. Does not follow redirects. */
export async function request<Value>(
  settings: Settings,
  endpoint: Endpoint<Value>,
  attempt: Attempt,
): Promise<CallOutcome<Value>> {
  const abandoned = new AbortController()
  try {
    // A timeout is needed in addition to the signal, because the `fetch` of an app may ignore the signal.
    return await withTimeout(attempt.timeoutMs, exchange(settings, endpoint, attempt, abandoned.signal), attempt.signal)
  } catch (error) {
    abandoned.abort()
    return error instanceof TimeoutError
      ? outage('TIMEOUT', `No response from ${settings.baseUrl.origin} in time.`)
      : outage('NETWORK_ERROR', describeFailure(settings.baseUrl.origin, error))
  }
}

async function exchange<Value>(
  settings: Settings,
  endpoint: Endpoint<Value>,
  { signedBy, latestSignedMs }: Attempt,
  signal: AbortSignal,
): Promise<CallOutcome<Value>> {
  const signature = signedBy === null ? {} : { nonce: newNonce(), kid: signedBy.keyId }
  const sent = JSON.stringify({ ...endpoint.body, ...signature })
  const response = await settings.fetch(new URL(endpoint.path, settings.baseUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${settings.apiKey}`, 'content-type': 'application/json' },
    body: sent,
    // The service never redirects. Following a redirect could send the license key to another host.
    redirect: 'error',
    credentials: 'omit',
    signal,
  })
  const received = await readBody(response)
  if (signedBy === null) return classify(endpoint, response, received, null)
  const { status, headers } = response
  const verified = await verifyAnswer({
    signature: headers.get('keyward-signature'),
    path: `/${endpoint.path}`,
    status,
    apiKey: settings.apiKey,
    request: utf8(sent),
    response: utf8(received),
    key: signedBy,
    latestSignedMs,
  })
  if (verified.ok) return classify(endpoint, response, received, verified.timeMs)
  const unsigned = classify(endpoint, response, received, null)
  return unsigned.kind === 'outage'
    ? unsigned
    : outage(
        'UNEXPECTED_ANSWER',
        `The response with status ${status} is not signed for this request: ${verified.reason}.`,
      )
}

function newNonce(): string {
  return encodeBase64Url(crypto.getRandomValues(new Uint8Array(16)))
}

/** Returns the bytes that were decoded as this text. `readBody` accepts only UTF-8 and keeps a byte order mark. */
function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function classify<Value>(
  endpoint: Endpoint<Value>,
  response: Response,
  body: string,
  signedMs: number | null,
): CallOutcome<Value> {
  const { status, headers } = response
  if (endpoint.statuses.includes(status)) {
    const value = endpoint.read(status, body)
    return value === null
      ? outage('UNEXPECTED_ANSWER', `The response with status ${status} does not have the format of Keyward.`)
      : { kind: 'response', value, dateMs: readDate(headers.get('date')), signedMs }
  }
  // A 408 counts as an outage, unlike any other 4xx, because a slow network can cause it.
  if (status === 408) return outage('TIMEOUT', 'The service received the request too slowly (status 408).')
  if (status >= 500)
    return outage(
      'SERVER_ERROR',
      `The service responded with status ${status}.`,
      readRetryAfter(headers.get('retry-after')),
    )
  if (status < 400)
    return outage('UNEXPECTED_ANSWER', `The status ${status} is not a status of this endpoint of Keyward.`)
  const message = readMessage(parseObject(body) ?? {}) ?? `The service responded with status ${status}.`
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

/** Reads the body as text. Throws for a truncated, oversized or non-UTF-8 body, which the caller handles as an outage. */
async function readBody(response: Response): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = response.body?.getReader()
  let text = ''
  let bytes = 0
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
    bytes += part.value.length
    if (bytes > MAX_BODY_BYTES) {
      await reader?.cancel()
      throw new RangeError(`The body of the response has more than ${MAX_BODY_BYTES} bytes.`)
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

function outage(cause: OutageCause, detail: string, retryAfterMs = 0): Outage {
  return { kind: 'outage', cause, detail, retryAfterMs }
}

/**
 * Makes the attempts of deliveries. An attempt follows no redirect, reads at most 2 KiB of the response, and ends after at most 15 seconds.
 */

import { Agent, request } from 'undici'

import { BlockedAddress, createConnector, createResolve, type Resolve } from './connector.ts'
import { urlError, type WebhookNetwork } from './network.ts'

const TIMEOUT_MS = 15_000
const MAX_RESPONSE_BYTES = 2_048
/**
 * The time for which an idle connection stays open. It is longer than the time between two events of a busy vendor, and shorter than the
 * time for which receivers usually keep idle connections open.
 */
const KEEP_ALIVE_MS = 4_000
const MAX_ERROR_LENGTH = 300

export interface Attempt {
  at: Date
  durationMs: number
  /** The status code of the response, or null when there was no response. */
  status: number | null
  /** The error message, or null when the attempt succeeded. */
  error: string | null
  /** The beginning of the response body, at most 2 KiB, or null when there was no response. */
  response: string | null
  /** The number of seconds that `Retry-After` requests, or null. */
  retryAfterSeconds: number | null
}

export interface Sender {
  /** Makes one attempt. Never rejects. */
  send(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<Attempt>
  close(): Promise<void>
}

/** Returns the seconds of a `Retry-After` header, which contains a number of seconds or a date. */
export function retryAfterSeconds(value: unknown, nowMs: number): number | null {
  if (typeof value !== 'string') return null
  if (/^\d{1,9}$/.test(value)) return Number(value)
  const seconds = Math.ceil((Date.parse(value) - nowMs) / 1_000)
  return seconds > 0 ? seconds : null
}

/** Returns the beginning of a body as text that Postgres can store. The text ends where the body times out or the connection breaks. */
async function readStart(body: AsyncIterable<unknown>): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of body) {
      if (!(chunk instanceof Uint8Array)) break
      chunks.push(chunk)
      length += chunk.length
      if (length >= MAX_RESPONSE_BYTES) break
    }
  } catch {
    // Only the status determines the outcome, so an incomplete body is not an error.
  }
  return Buffer.concat(chunks).subarray(0, MAX_RESPONSE_BYTES).toString('utf8').replaceAll('\u0000', '\uFFFD')
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return 'The request failed.'
  if (error.name === 'TimeoutError') return `There was no response within ${TIMEOUT_MS / 1_000} s.`
  const { cause } = error
  return (cause instanceof BlockedAddress ? cause : error).message.slice(0, MAX_ERROR_LENGTH)
}

function errorOf(status: number): string | null {
  if (status >= 200 && status <= 299) return null
  if (status >= 300 && status <= 399) return `The response has the status ${status}. Redirects are not followed.`
  return `The response has the status ${status}.`
}

/** Creates a sender. Tests pass their own `resolve`. */
export function createSender(
  network: WebhookNetwork,
  resolve: Resolve = createResolve(network.allowedNetworks.length > 0),
  timeoutMs = TIMEOUT_MS,
): Sender {
  const agent = new Agent({
    connect: createConnector(network, resolve),
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    pipelining: 1,
  })
  return {
    async send(url, headers, body) {
      const at = new Date()
      const startMs = performance.now()
      const attempt = (rest: Partial<Attempt>): Attempt => ({
        at,
        durationMs: Math.round(performance.now() - startMs),
        status: null,
        error: null,
        response: null,
        retryAfterSeconds: null,
        ...rest,
      })
      // The operator may have changed the allowed networks since the endpoint was created.
      const wrong = urlError(url, network)
      if (wrong !== null) return attempt({ error: `The URL ${wrong}.` })
      try {
        const signal = AbortSignal.timeout(timeoutMs)
        const sent = await request(url, { method: 'POST', headers, body, dispatcher: agent, signal })
        // Destroying a partly read body emits an error on it, although the attempt has not failed.
        sent.body.on('error', () => undefined)
        const response = await readStart(sent.body)
        sent.body.destroy()
        const retryAfter = retryAfterSeconds(sent.headers['retry-after'], Date.now())
        return attempt({
          status: sent.statusCode,
          error: errorOf(sent.statusCode),
          response,
          retryAfterSeconds: retryAfter,
        })
      } catch (error) {
        return attempt({ error: messageOf(error) })
      }
    },
    close: () => agent.destroy(),
  }
}

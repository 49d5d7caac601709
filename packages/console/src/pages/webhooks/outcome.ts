/** Explains the outcome of a delivery's attempt in one sentence, with the next step for the person. */

import type { Delivery } from '@keyward/contract/management/webhooks'

import { text } from '../../text.ts'

export type Attempt = Delivery['attempts'][number]

function explainStatus(status: number): string {
  if (status >= 300 && status <= 399)
    return `The endpoint responded with ${status}, a redirect. Keyward follows no redirects: enter the final URL.`
  if (status === 401 || status === 403)
    return `The endpoint rejected the request with ${status}. Check that it verifies the signature with the current secret.`
  if (status === 404) return `Nothing exists at this URL (${status}). Check the path of the URL.`
  if (status === 405) return `The endpoint does not accept POST requests at this URL (${status}).`
  if (status === 410) return 'The endpoint responded with 410 Gone, which disables it.'
  if (status === 429 || status === 503) return `The endpoint asked Keyward to wait (${status}).`
  return status >= 500
    ? `The endpoint failed with ${status}. The log of the receiver contains the reason.`
    : `The endpoint rejected the request with ${status}. Its response below may contain the reason.`
}

/** Maps error messages of attempts without a response to explanations. */
const WITHOUT_RESPONSE: readonly [RegExp, string][] = [
  [/ECONNREFUSED/, 'Nothing accepts connections at this address and port. Check that the receiver is running.'],
  [
    /no response within|timeout|ETIMEDOUT/i,
    'The endpoint did not respond within 15 seconds. Let it respond first, and process the event afterwards.',
  ],
  [
    /certificate|self-signed|altnames|CERT_/i,
    'The TLS certificate of the endpoint is not valid for this URL, or has expired.',
  ],
  [
    /has no address|ENOTFOUND|EAI_AGAIN/,
    'The host name of the URL has no address. Check its spelling, and its DNS record.',
  ],
  [/may not be sent/, 'The host name leads to a private or reserved address. Keyward sends only to public addresses.'],
  [/other side closed|ECONNRESET|socket hang up|EPIPE/i, 'The endpoint closed the connection before it responded.'],
]

/** Returns the outcome of an attempt in one sentence. An unknown error is returned as the service recorded it. */
export function explain({ status, error, durationMs }: Attempt): string {
  if (status !== null)
    return error === null ? `The endpoint responded with ${status} in ${text.took(durationMs)}.` : explainStatus(status)
  const known = WITHOUT_RESPONSE.find(([pattern]) => pattern.test(error ?? ''))
  return known?.[1] ?? error ?? 'The action failed'
}

/** Returns the outcome of the last attempt. Before the first attempt, returns when it follows. */
export function explainDelivery({ attempts }: Delivery): string {
  const last = attempts.at(-1)
  return last === undefined ? text.notSent : explain(last)
}

/** Explains the outcome of a delivery's attempt in one sentence, with the next step for the person. */

import type { Delivery } from '@keyward/contract/management/webhooks'

import { text } from '../../text.ts'

const t = text.deliveries
const f = t.failures

export type Attempt = Delivery['attempts'][number]

function explainStatus(status: number): string {
  if (status >= 300 && status <= 399) return f.redirect(status)
  if (status === 401 || status === 403) return f.credentials(status)
  if (status === 404) return f.missing(status)
  if (status === 405) return f.method(status)
  if (status === 410) return f.gone
  if (status === 429 || status === 503) return f.busy(status)
  return status >= 500 ? f.server(status) : f.invalid(status)
}

/** Maps error messages of attempts without a response to explanations. */
const WITHOUT_RESPONSE: readonly [RegExp, string][] = [
  [/ECONNREFUSED/, f.refused],
  [/no response within|timeout|ETIMEDOUT/i, f.timeout],
  [/certificate|self-signed|altnames|CERT_/i, f.certificate],
  [/has no address|ENOTFOUND|EAI_AGAIN/, f.unknownHost],
  [/may not be sent/, f.blocked],
  [/other side closed|ECONNRESET|socket hang up|EPIPE/i, f.closed],
]

/** Returns the outcome of an attempt in one sentence. An unknown error is returned as the service recorded it. */
export function explain({ status, error, durationMs }: Attempt): string {
  if (status !== null) return error === null ? t.delivered(status, t.took(durationMs)) : explainStatus(status)
  const known = WITHOUT_RESPONSE.find(([pattern]) => pattern.test(error ?? ''))
  return known?.[1] ?? error ?? text.failed
}

/** Returns the outcome of the last attempt. Before the first attempt, returns when it follows. */
export function explainDelivery({ attempts }: Delivery): string {
  const last = attempts.at(-1)
  return last === undefined ? t.notSent : explain(last)
}

/**
 * Retries a call within one time budget. Only outages are retried, because a response of the service is final. Invariant: the
 * call ends within the budget for any behavior of the service.
 */

import type { Settings } from '../options.ts'
import { withTimeout } from '../timeout.ts'
import { type CallOutcome, type Endpoint, request } from './http.ts'

const MAX_ATTEMPTS = 3
const FIRST_PAUSE_MS = 200
// The minimum share of the budget for another attempt. An attempt with less time would probably time out.
const MIN_SHARE = 1 / 8

/**
 * Calls an endpoint up to three times. An attempt may use half of the remaining time, and the last attempt all of it. So a dead connection
 * does not consume the whole budget. The pauses between attempts are random, first up to 200 ms and then up to 400 ms, so that apps do not
 * retry in unison after an outage. A `Retry-After` of the service is added to the pause. Each attempt asks for a signature under the next public
 * key, because the service does not sign under a withdrawn one.
 */
export async function call<Value>(
  settings: Settings,
  endpoint: Endpoint<Value>,
  latestSignedMs = 0,
  signal?: AbortSignal,
): Promise<CallOutcome<Value>> {
  const deadlineMs = performance.now() + settings.timeoutMs
  const { keys } = settings
  const isSigned = settings.requireSignature && endpoint.isSigned
  for (let attempt = 1; ; attempt++) {
    const leftMs = deadlineMs - performance.now()
    const timeoutMs = attempt === MAX_ATTEMPTS ? leftMs : leftMs / 2
    const signedBy = isSigned ? keys[(attempt - 1) % keys.length]! : null
    const outcome = await request(settings, endpoint, { timeoutMs, signedBy, latestSignedMs, signal })
    if (outcome.kind !== 'outage' || attempt === MAX_ATTEMPTS || signal?.aborted === true) return outcome
    const pauseMs = outcome.retryAfterMs + Math.random() * FIRST_PAUSE_MS * attempt
    if (deadlineMs - performance.now() - pauseMs < settings.timeoutMs * MIN_SHARE) return outcome
    await withTimeout(pauseMs, new Promise(() => undefined), signal).catch(() => undefined)
  }
}

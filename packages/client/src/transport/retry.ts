// Several attempts at one call inside one time budget. Only outages are repeated: every answer is an answer.
// Invariant: the call ends within the budget, whatever the service does.

import type { Settings } from '../options.ts'
import { type Endpoint, type Reply, request } from './http.ts'

const MAX_ATTEMPTS = 3
const FIRST_PAUSE_MS = 200
// With less of the budget than this, an attempt could only time out.
const LEAST_SHARE = 1 / 8

/**
 * Calls an endpoint, up to three times. An attempt may take half of the time that is left, the last one all of it, so
 * that a dead connection does not use up the budget. Between attempts: a random pause of up to 200 ms, then up to
 * 400 ms, so that apps do not come back in step after an outage, and never before the `Retry-After` of the service.
 */
export async function call<Value>(settings: Settings, endpoint: Endpoint<Value>): Promise<Reply<Value>> {
  const deadlineMs = performance.now() + settings.timeoutMs
  for (let attempt = 1; ; attempt++) {
    const leftMs = deadlineMs - performance.now()
    const reply = await request(settings, endpoint, attempt === MAX_ATTEMPTS ? leftMs : leftMs / 2)
    if (reply.kind !== 'outage' || attempt === MAX_ATTEMPTS) return reply
    const pauseMs = reply.retryAfterMs + Math.random() * FIRST_PAUSE_MS * attempt
    if (deadlineMs - performance.now() - pauseMs < settings.timeoutMs * LEAST_SHARE) return reply
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

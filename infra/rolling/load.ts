/**
 * Sends checks at a fixed rate through the balancer and compares every response with the expected verdict. A latency is
 * measured from the time at which the check was due, so a pause counts for all checks that it delays.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { z } from 'zod'

import type { HttpsClient } from '../shared/https-client.ts'
import type { CheckCase, Fixture } from './fixture.ts'

export interface LoadReport {
  checks: number
  /** The number of checks that got no response, or a response without a verdict. */
  failed: number
  /** The number of checks with an unexpected verdict. */
  wrong: number
  /** Descriptions of the first failed and wrong checks, at most 20. */
  examples: string[]
  p50Ms: number
  p99Ms: number
  longestMs: number
}

export interface Load {
  /** Stops sending and waits for the outstanding responses. */
  stop: () => Promise<LoadReport>
  /** Returns the number of completed checks. */
  completed: () => number
}

const verdictSchema = z.object({ valid: z.boolean(), code: z.string() })
const MAX_EXAMPLES = 20

/** Starts the load. `next` returns a random number of at least 0 and less than 1. */
export function startLoad(client: HttpsClient, fixture: Fixture, perSecond: number, next: () => number): Load {
  const cases = fixture.cases.flatMap((one) => Array.from({ length: one.weight }, () => one))
  const latencies: number[] = []
  const examples: string[] = []
  const counts = { failed: 0, wrong: 0 }
  const inFlight = new Set<Promise<void>>()
  const stopping = new AbortController()

  async function check(one: CheckCase, turn: number, dueMs: number): Promise<void> {
    const record = (kind: 'failed' | 'wrong', detail: string): void => {
      counts[kind]++
      if (examples.length < MAX_EXAMPLES) examples.push(`${kind}: ${one.expected}: ${detail}`)
    }
    try {
      const response = await client.send('POST', '/api/v2/license/validate', fixture.apiKey, one.body(turn))
      const parsed = verdictSchema.safeParse(response.body)
      if (!parsed.success) record('failed', `${response.status} ${JSON.stringify(response.body)}`)
      else if (parsed.data.code !== one.expected) record('wrong', parsed.data.code)
    } catch (error) {
      record('failed', String(error))
    }
    latencies.push(performance.now() - dueMs)
  }

  async function send(): Promise<void> {
    const startMs = performance.now()
    for (let turn = 0; !stopping.signal.aborted; turn++) {
      const dueMs = startMs + (turn * 1_000) / perSecond
      const waitMs = dueMs - performance.now()
      if (waitMs > 1) await sleep(waitMs)
      const one = cases[Math.floor(next() * cases.length)]
      if (!one) return
      const running = check(one, turn, dueMs).finally(() => inFlight.delete(running))
      inFlight.add(running)
    }
  }

  const sending = send()
  return {
    completed: () => latencies.length,
    stop: async () => {
      stopping.abort()
      await sending
      await Promise.all(inFlight)
      const sorted = latencies.toSorted((a, b) => a - b)
      const at = (quantile: number): number =>
        sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))] ?? 0
      return { checks: sorted.length, ...counts, examples, p50Ms: at(0.5), p99Ms: at(0.99), longestMs: at(1) }
    },
  }
}

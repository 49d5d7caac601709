/**
 * Checks at a fixed rate through the balancer. Every latency counts from the moment at which its check was due, so that a
 * pause cannot hide the checks that had to wait; every answer is compared with the verdict that it must be.
 */
import { setTimeout as sleep } from 'node:timers/promises'

import { z } from 'zod'

import type { Client } from './client.ts'
import type { CheckCase, World } from './world.ts'

export interface LoadReport {
  checks: number
  /** No answer, or one that is no verdict. */
  failed: number
  /** A verdict, but not the one it must be. */
  wrong: number
  /** What failed or was wrong, the first few. */
  examples: string[]
  p50Ms: number
  p99Ms: number
  longestMs: number
}

export interface Load {
  /** Ends sending, waits for the last answers. */
  stop: () => Promise<LoadReport>
  /** How many were answered so far. */
  answered: () => number
}

const verdict = z.object({ valid: z.boolean(), code: z.string() })
const MOST_EXAMPLES = 20

/** `next` gives numbers of at least 0 and less than 1. */
export function startLoad(client: Client, world: World, perSecond: number, next: () => number): Load {
  const cases = world.cases.flatMap((one) => Array.from({ length: one.weight }, () => one))
  const latencies: number[] = []
  const examples: string[] = []
  const counts = { failed: 0, wrong: 0 }
  const inFlight = new Set<Promise<void>>()
  const stopping = new AbortController()

  async function check(one: CheckCase, turn: number, dueMs: number): Promise<void> {
    const complain = (kind: 'failed' | 'wrong', what: string): void => {
      counts[kind]++
      if (examples.length < MOST_EXAMPLES) examples.push(`${kind}: ${one.expected}: ${what}`)
    }
    try {
      const answer = await client.send('POST', '/api/v2/license/validate', world.apiKey, one.body(turn))
      const parsed = verdict.safeParse(answer.body)
      if (!parsed.success) complain('failed', `${answer.status} ${JSON.stringify(answer.body)}`)
      else if (parsed.data.code !== one.expected) complain('wrong', parsed.data.code)
    } catch (error) {
      complain('failed', String(error))
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
    answered: () => latencies.length,
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

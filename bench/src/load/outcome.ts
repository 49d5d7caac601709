/** Defines the outcome of a load run in one form for all generators. */

import type { LatencySummary } from './histogram.ts'
import type { Interval } from './timeline.ts'

export interface LoadOutcome {
  generator: 'as-fast-as-possible' | 'fixed-rate' | 'wrk'
  requests: number
  durationMs: number
  perSecond: number
  latency: LatencySummary
  /** The number of responses by HTTP status. */
  statuses: Record<string, number>
  /** The number of responses by the `code` in their body, or null if the generator does not read bodies. */
  codes: Record<string, number> | null
  /** The number of failures without a response (refused, reset, timed out or never sent), by message. */
  errors: Record<string, number>
  /** The rate in requests a second, the mean rate of a ramp, or null if the generator sends as fast as possible. */
  targetPerSecond: number | null
  /** The rate at the end of a ramp. */
  rampToPerSecond?: number
  intervals?: Interval[]
}

/** Counts events by name. */
export class Tally {
  readonly #counts = new Map<string, number>()

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  /** Returns the counts, the highest first. */
  toObject(): Record<string, number> {
    return Object.fromEntries([...this.#counts].toSorted((a, b) => b[1] - a[1]))
  }
}

/** Returns the `code` of a response without parsing the JSON, or '(none)'. The response to a check contains one code. */
export function codeOf(body: string): string {
  const start = body.indexOf('"code":"')
  if (start < 0) return '(none)'
  return body.slice(start + 8, body.indexOf('"', start + 8))
}

/** The outcome of a run of load, for every generator. */

import type { LatencySummary } from './histogram.ts'

export type Generator = 'autocannon' | 'fixed-rate' | 'wrk'

export interface LoadOutcome {
  generator: Generator
  requests: number
  durationMs: number
  perSecond: number
  latency: LatencySummary
  /** Responses by HTTP status. */
  statuses: Record<string, number>
  /** Responses by the `code` in their body; null where the generator does not read bodies. */
  codes: Record<string, number> | null
  /** Failures below HTTP (refused, reset, timed out), by message. */
  errors: Record<string, number>
  /** The rate in requests a second; null without a fixed rate. */
  targetPerSecond: number | null
}

/** Counts by name. */
export class Tally {
  readonly #counts = new Map<string, number>()

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  /** Most frequent first. */
  toObject(): Record<string, number> {
    return Object.fromEntries([...this.#counts].toSorted((a, b) => b[1] - a[1]))
  }
}

/** Returns the `code` of a response without parsing it: every body of the validator contains it once. */
export function codeOf(body: string): string {
  const start = body.indexOf('"code":"')
  if (start < 0) return '(none)'
  return body.slice(start + 8, body.indexOf('"', start + 8))
}

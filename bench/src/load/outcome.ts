// What a run of load comes to, whichever generator made it.
import type { LatencySummary } from './histogram.ts'

export type Generator = 'autocannon' | 'fixed-rate' | 'wrk'

export interface LoadOutcome {
  generator: Generator
  requests: number
  durationMs: number
  perSecond: number
  latency: LatencySummary
  /** Answers by HTTP status. */
  statuses: Record<string, number>
  /** Answers by the `code` in their body; null where the generator does not read bodies. */
  codes: Record<string, number> | null
  /** Failures below HTTP (refused, reset, timed out), by message. */
  errors: Record<string, number>
  /** Requests a second that were asked for; null when it ran as fast as the answers came. */
  targetPerSecond: number | null
}

/** Counts of things by name. */
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

/** The `code` of an answer's body without parsing it: every body of the validator holds it once. */
export function codeOf(body: string): string {
  const start = body.indexOf('"code":"')
  if (start < 0) return '(none)'
  return body.slice(start + 8, body.indexOf('"', start + 8))
}

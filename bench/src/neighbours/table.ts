/** Computes the rows of the table from the measurements of the quiet organization and the responses to the attackers. */

import { type Kind, KINDS, type Measured } from './victim.ts'

export interface Row {
  quiet: Measured[]
  attacked: Measured[]
  responses: Record<string, number>[]
}

interface Figures {
  p50: number
  p99: number
  /** The lowest 99th percentile of all rounds. Disturbances of the machine affect it least. */
  bestP99: number
}

interface KindSummary {
  count: number
  quiet: Figures
  attacked: Figures
  /** The 99th percentile under attack divided by the quiet one. */
  ratio: number
  /** The lowest 99th percentile under attack divided by the lowest quiet one. */
  bestRatio: number
}

export interface Summary {
  kinds: Record<Kind, KindSummary>
  errors: { quiet: number; attacked: number; kinds: Record<string, number> }
  /**
   * The number of responses to the attackers, by status. Status 0 is a broken connection or a timeout, and 1 is a connection that was
   * opened without waiting for a response.
   */
  responses: Record<string, number>
}

/** Returns the median of each figure over the rounds, so that a disturbed round has little effect. */
function figuresOf(rounds: readonly Measured[], kind: Kind): Figures {
  const sortedRounds = rounds.map(({ durations }) => durations[kind].toSorted((a, b) => a - b))
  const at = (share: number): number[] => {
    const values = sortedRounds.flatMap((sorted) => sorted[Math.floor((sorted.length - 1) * share)] ?? [])
    return values.toSorted((a, b) => a - b).map(round)
  }
  const median = (values: readonly number[]): number => values[Math.floor((values.length - 1) / 2)] ?? 0
  return { p50: median(at(0.5)), p99: median(at(0.99)), bestP99: at(0.99)[0] ?? 0 }
}

export function summaryOf({ quiet, attacked, responses }: Row): Summary {
  const kindOf = (kind: Kind): KindSummary => {
    const [before, during] = [figuresOf(quiet, kind), figuresOf(attacked, kind)]
    const count = attacked.reduce((all, { durations }) => all + durations[kind].length, 0)
    const over = (a: number, b: number): number => round(a / Math.max(b, 0.1))
    const ratio = over(during.p99, before.p99)
    return { count, quiet: before, attacked: during, ratio, bestRatio: over(during.bestP99, before.bestP99) }
  }
  const kinds = {
    check: kindOf('check'),
    claim: kindOf('claim'),
    release: kindOf('release'),
    read: kindOf('read'),
    write: kindOf('write'),
    evaluate: kindOf('evaluate'),
    file: kindOf('file'),
  }
  const errors = sum(attacked.map((measured) => measured.errors))
  const counts = { quiet: total(sum(quiet.map((measured) => measured.errors))), attacked: total(errors) }
  return { kinds, errors: { ...counts, kinds: errors }, responses: sum(responses) }
}

/**
 * Returns the row as text. For each kind of request, it contains the 99th percentiles before and under attack, and the ratio of the best
 * rounds. `!` marks a 99th percentile under attack of more than twice the one before.
 */
export function line(name: string, row: Row): string {
  const { kinds, errors, responses } = summaryOf(row)
  const cells = KINDS.map((kind) => {
    const { quiet, attacked, ratio, bestRatio } = kinds[kind]
    return `${kind} ${quiet.p99}→${attacked.p99}${ratio > 2 ? '!' : ''} (${bestRatio})`
  })
  const received = Object.entries(responses).map(([status, count]) => `${status}×${count}`)
  const wrong = `errors ${errors.quiet}→${errors.attacked}`
  const which = errors.attacked === 0 ? '' : ` ${JSON.stringify(errors.kinds)}`
  return `${name} | ${cells.join(' | ')} | ${wrong}${which} | ${received.join(' ')}`
}

function sum(counts: readonly Record<string, number>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const one of counts) for (const [name, count] of Object.entries(one)) sums[name] = (sums[name] ?? 0) + count
  return sums
}

function total(counts: Record<string, number>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0)
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

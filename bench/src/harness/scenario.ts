/**
 * Defines the interface between scenarios and the program that runs them. Before it returns, a scenario stops the servers that it has
 * started.
 */

import type { Chart } from '../report/chart.ts'
import type { CorePlan } from './cores.ts'
import type { GoalOutcome } from './goals.ts'
import type { BenchPostgres } from './postgres.ts'

export interface Bench {
  plan: CorePlan
  postgres: BenchPostgres
  /** Whether to run short rounds over small data, which only test that everything works. */
  quick: boolean
  /** The length of one contender's turn. */
  roundMs: number
  rounds: number
  connections: number
  signal: AbortSignal
  log: (line: string) => void
}

/** A result for readers who see only the top of the report. */
export interface Headline {
  /** A number, with its unit if it has one, such as `95,000` or `1.2 ms`. */
  figure: string
  /** The continuation of the sentence that begins with the figure. */
  text: string
}

export interface Outcome {
  title: string
  /** The question that the figures answer, in one sentence. */
  question: string
  /** The results at the top of the report. */
  headlines?: Headline[]
  goals: GoalOutcome[]
  charts: Chart[]
  /** The conditions of the measurement. */
  notes: string[]
  /** All measured figures as a JSON value. */
  figures: unknown
}

export interface Scenario {
  name: string
  summary: string
  run: (bench: Bench) => Promise<Outcome>
}

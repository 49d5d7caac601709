/**
 * The interface between scenarios and the program that runs them. A scenario owns the servers that it starts, and stops
 * them before it returns.
 */

import type { Chart } from '../report/chart.ts'
import type { CorePlan } from './cores.ts'
import type { GoalOutcome } from './goals.ts'
import type { BenchPostgres } from './postgres.ts'

export interface Bench {
  plan: CorePlan
  postgres: BenchPostgres
  /** Short rounds over small data, which show that everything works. */
  quick: boolean
  /** Length of one contender's turn. */
  roundMs: number
  rounds: number
  connections: number
  signal: AbortSignal
  log: (line: string) => void
}

export interface Outcome {
  title: string
  /** The question that the scenario answers, in one sentence. */
  question: string
  goals: GoalOutcome[]
  charts: Chart[]
  /** Conditions under which the figures hold. */
  notes: string[]
  /** Everything that was measured. */
  figures: unknown
}

export interface Scenario {
  name: string
  summary: string
  run: (bench: Bench) => Promise<Outcome>
}

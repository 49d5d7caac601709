/** Defines the interface between scenarios and the program that runs them. A scenario stops the servers that it has started. */

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

export interface Outcome {
  goals: GoalOutcome[]
  /** All measured figures as a JSON value. */
  figures: unknown
}

export interface Scenario {
  name: string
  summary: string
  run: (bench: Bench) => Promise<Outcome>
}

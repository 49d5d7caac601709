import type { Chart } from '../report/chart.ts'
// What every scenario is given and what it gives back. A scenario owns the servers it starts and stops them before it returns.
import type { CorePlan } from './cores.ts'
import type { GoalOutcome } from './goals.ts'
import type { BenchPostgres } from './postgres.ts'

export interface Bench {
  plan: CorePlan
  postgres: BenchPostgres
  /** Short rounds, to see that it works. Its figures mean little. */
  quick: boolean
  /** Of one contender in one round. */
  roundMs: number
  rounds: number
  connections: number
  signal: AbortSignal
  say: (line: string) => void
}

export interface Outcome {
  title: string
  /** The question that it answers, in a sentence. */
  question: string
  goals: GoalOutcome[]
  charts: Chart[]
  /** What a reader must know to read the figures right. */
  notes: string[]
  /** Everything that was measured. */
  figures: unknown
}

export interface Scenario {
  name: string
  summary: string
  run: (bench: Bench) => Promise<Outcome>
}

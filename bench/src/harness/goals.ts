/** Defines the performance goals of Keyward. The median of the rounds decides whether a goal is reached. */

import { summarize, type Summary } from './stats.ts'

interface Goal {
  text: string
  direction: 'at least' | 'at most'
  value: number
  unit: string
}

const GOALS = {
  knownSmall: atMost('processor time of a known machine against the ceiling, 1 k licenses, 10 rules', 1.35, 'x'),
  knownUnaddressed: atMost('the same with 1 M licenses, 100 k rules and no address rules', 1.6, 'x'),
  knownTrusted: atMost('the same with address rules and TRUSTED_PROXIES=all', 1.6, 'x'),
  knownPeer: atMost('the same with address rules and a peer lookup', 1.6, 'x'),
  batch: atLeast('checks a second of processor time, batches of 100, 1 M licenses, 100 k rules', 500_000, 'checks/s'),
  embedded: atMost('time of a check in the process of a Node program, 1 M licenses, 100 k rules', 1.5, 'us'),
  againstNginx: atLeast('checks a second against nginx with LuaJIT and shared dictionaries', 1, 'x'),
  againstRedis: atLeast('checks a second against Fastify + Redis, all on one core', 1, 'x'),
  againstExpress: atLeast('checks a second against Express + Postgres, all on one core', 1, 'x'),
  growth: atLeast('checks a second, 3 M licenses + 1 M rules against 1 k + 10', 0.85, 'x'),
  headers: atMost('processor time of a known machine with 12 headers against the ceiling, 1 M licenses', 1.8, 'x'),
  bytesPerLicense: atMost('process memory per license with 3 machines, 100 k rules included', 200, 'bytes'),
  start: atMost('1 M licenses + 3 M machines + 100 k rules from start to ready', 8, 's'),
  signed: atLeast('checks a second with signed responses against the same checks without, one core', 0.6, 'x'),
  p99: atMost('p99 at half of the peak rate, against the ceiling', 1.5, 'x'),
  p99Changing: atMost('p99 while 100 rules a second change and five files are requested, against quiet', 1.2, 'x'),
} as const satisfies Record<string, Goal>

export type GoalName = keyof typeof GOALS

export interface GoalOutcome extends Goal {
  name: GoalName
  reached: boolean
  measured: Summary
}

/** Compares the median of the values, one per round, with the goal. */
export function judge(name: GoalName, values: readonly number[]): GoalOutcome {
  const goal = GOALS[name]
  const measured = summarize(values)
  const reached = goal.direction === 'at least' ? measured.median >= goal.value : measured.median <= goal.value
  return { ...goal, name, reached, measured }
}

function atLeast(text: string, value: number, unit: string): Goal {
  return { text, direction: 'at least', value, unit }
}

function atMost(text: string, value: number, unit: string): Goal {
  return { text, direction: 'at most', value, unit }
}

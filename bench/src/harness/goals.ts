/** Defines the performance goals of Keyward. The median of the rounds decides whether a goal is reached. */

import type { Summary } from './stats.ts'

export interface Goal {
  text: string
  direction: 'at least' | 'at most'
  value: number
  unit: string
}

export const GOALS = {
  knownSmall: atMost(
    'processor time of a known machine against the ceiling, 1,000 licenses, 10 rules, no address rules',
    1.35,
    'x',
  ),
  knownUnaddressed: atMost('the same with 1 M licenses and 100 k rules', 1.6, 'x'),
  knownTrusted: atMost('the same with address rules and TRUSTED_PROXIES=all', 1.6, 'x'),
  knownPeer: atMost('the same with address rules and a peer lookup', 1.6, 'x'),
  batch: atLeast('checks a second of processor time, batches of 100, 1 M licenses, 100 k rules', 500_000, 'checks/s'),
  againstSql: atLeast('checks a second against Fastify + SQL, all on one core', 25, 'x'),
  againstNginx: atLeast('checks a second against nginx with LuaJIT and shared dictionaries', 1, 'x'),
  againstRedis: atLeast('checks a second against Fastify + Redis, all on one core', 1, 'x'),
  againstExpress: atLeast('checks a second against Express + Postgres, all on one core', 1, 'x'),
  growth: atLeast('3 M licenses + 1 M rules against 1 k + 10', 0.85, 'x'),
  recording: atLeast('recording on, against off, 1,000 machines', 0.95, 'x'),
  recordingWide: atLeast('recording on, against off, 200,000 machines', 0.95, 'x'),
  p99: atMost('p99 at half of the peak rate, against the ceiling', 1.5, 'x'),
  p99Changing: atMost('p99 while 100 rules a second change and five files are requested, against quiet', 1.2, 'x'),
  verdict: atMost('verdict in the engine alone, worst kind of check, 1 M rules', 500, 'ns'),
  covers: atMost('trie, all covers of an address among 1 M prefixes', 500, 'ns'),
  blockList: atLeast('trie, all covers, 1 M prefixes, against net.BlockList at 10,000', 100, 'x'),
  bytesPerLicense: atMost('process memory per license with 3 machines, rules included', 200, 'bytes'),
  workerTime: atMost('processor time of a check with two workers on one core, against one worker', 1.176, 'x'),
  workerMemory: atMost('memory of a second worker', 40, 'MB'),
  start: atMost('1 M licenses + 3 M machines + 100 k rules from start to ready', 8, 's'),
  restart: atMost('the same from an index file', 2, 's'),
  reloadMemory: atMost('memory of the process during a reload of the same data, against before', 1.2, 'x'),
  pause: atMost('longest garbage-collection pause, 3 M licenses, load and changes', 10, 'ms'),
} as const satisfies Record<string, Goal>

export type GoalName = keyof typeof GOALS

export interface GoalOutcome extends Goal {
  name: GoalName
  reached: boolean
  measured: Summary
}

export function judge(name: GoalName, measured: Summary): GoalOutcome {
  const goal = GOALS[name]
  const reached = goal.direction === 'at least' ? measured.median >= goal.value : measured.median <= goal.value
  return { ...goal, name, reached, measured }
}

function atLeast(text: string, value: number, unit: string): Goal {
  return { text, direction: 'at least', value, unit }
}

function atMost(text: string, value: number, unit: string): Goal {
  return { text, direction: 'at most', value, unit }
}

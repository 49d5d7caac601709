/**
 * Plans the events of a run as data, so that a run can be repeated exactly, and shrunk by omitting steps. Each step chooses its
 * rows with a separate seed, so the choice does not depend on other steps.
 */

import { type Random, random } from '@keyward/testkit'

import { FILE_STATES, type FileState } from './files.ts'
import type { WatchedCheck } from './verdicts.ts'
import {
  ADDRESSES,
  COUNTRIES,
  MACHINES,
  MAX_LICENSES,
  type Operation,
  OPERATION_NAMES,
  type OperationName,
  organizationOfKey,
} from './world.ts'

export const FAULTS = [
  'cut', // connections break
  'refuse', // connections break and are refused for a while
  'stall', // no message arrives for a while
  'mute', // notifications are lost for a while
  'crash', // Postgres crashes and loses the latest commits and all open transactions
  'fail over', // another server without the latest commits takes over
  'restore', // the server is replaced by an older copy of itself
  'dump', // an older dump is restored on a new server
  'standby', // connections reach a standby for a while
  'prune', // the change log loses the entries that were visible a while ago
  'void', // an operator requests a reload
] as const
export type FaultName = (typeof FAULTS)[number]

interface Timed {
  readonly atMs: number
  /** The duration of the transaction or fault. */
  readonly lastsMs: number
  /** The seed of the step's choices. */
  readonly pick: number
}

export type Step = Timed &
  (
    | {
        readonly kind: 'transaction'
        /** The operations, or the names of random operations. */
        readonly operations: readonly (OperationName | Operation)[]
        readonly isRolledBack: boolean
      }
    | {
        readonly kind: 'fault'
        readonly fault: FaultName
        /** The number of versions that are lost. */ readonly lost: number
      }
    | {
        readonly kind: 'check' | 'deactivate'
        /** The number of the license key. */ readonly license: number
        readonly machine: string
      }
    | {
        /** The validator stops, and another one starts `lastsMs` later. */
        readonly kind: 'restart'
        readonly isGraceful: boolean
        /** The state of the index file at the start. */
        readonly file: FileState
      }
  )

export interface Plan {
  readonly seed: number
  readonly steps: readonly Step[]
  readonly checks: readonly WatchedCheck[]
  /** The time from the first step until all faults end, in milliseconds. */
  readonly lastsMs: number
  /** The maximum time that a page of a load takes to arrive. */
  readonly pageMs: number
  /** The maximum number of changes that a read of the log returns. A long read returns up to ten times as many. */
  readonly maxChanges: number
  /** The number of changes above which a read of the log exceeds its timeout, unless its limit is at most 3,000 changes. */
  readonly slowAbove: number
  /** The interval at which the validator writes its index file. It is null when the validator has no file. */
  readonly fileIntervalMs: number | null
  /** `STALE_LIMIT`: the maximum age of the index at which checks are decided. */
  readonly staleLimitMs: number
}

export interface PlanOptions {
  readonly faults?: readonly FaultName[]
  /** The values from which the plan chooses `maxChanges`. */
  readonly maxChanges?: readonly number[]
  /** The values from which the plan chooses `pageMs`. */
  readonly pageMs?: readonly number[]
  /**
   * Whether the plan may contain restarts, index files and slow reads. False yields the plans that revealed the defects of
   * FORMER_FAILURES.
   */
  readonly hasFiles?: boolean
}

const RUN_MS = 4_000
/** The faults that most often precede a start from the index file. */
const BEFORE_START = ['refuse', 'refuse', 'crash', 'fail over', 'prune'] as const

export function planOf(seed: number, options: PlanOptions = {}): Plan {
  const from = random(seed)
  const faults = options.faults ?? FAULTS
  const steps: Step[] = []
  for (let i = 5 + from.int(25); i > 0; i--) steps.push(randomTransaction(from))
  for (let i = from.int(10); i > 0; i--) steps.push(randomRequest(from))
  if (faults.length > 0)
    for (let i = from.int(5); i > 0; i--)
      steps.push({
        ...timed(from, 1_500),
        kind: 'fault',
        fault: from.pick(faults),
        lost: from.pick([0, 0, 1, 2, 3, 8]),
      })
  const plan = {
    seed,
    steps: steps.toSorted((a, b) => a.atMs - b.atMs),
    checks: randomChecks(from),
    lastsMs: RUN_MS,
    pageMs: from.pick(options.pageMs ?? [2, 20, 900]),
    maxChanges: from.pick(options.maxChanges ?? [4, 20_000, 20_000]),
    slowAbove: Infinity,
    fileIntervalMs: null,
    staleLimitMs: Infinity,
  }
  if (options.hasFiles === false) return plan
  const withRestarts = from.chance(0.5) ? plan : withFiles(plan, faults, from)
  return { ...withRestarts, slowAbove: from.chance(0.2) ? from.pick([1, 3, 8]) : Infinity }
}

/** Adds an index file and restarts to a plan. Most restarts are close to a fault. */
function withFiles(plan: Plan, faults: readonly FaultName[], from: Random): Plan {
  const steps = [...plan.steps]
  for (let i = 1 + from.int(3); i > 0; i--) {
    const restart = timed(from, 2_000)
    const [isGraceful, file] = [from.chance(0.5), from.pick(['latest', 'latest', ...FILE_STATES] as const)]
    steps.push({ ...restart, kind: 'restart', isGraceful, file })
    if (faults.length === 0 || from.chance(0.4)) continue
    const fault = { ...timed(from, 1_500), fault: from.pick([...faults, ...BEFORE_START]), lost: from.pick([0, 1, 2]) }
    steps.push({
      ...fault,
      kind: 'fault',
      atMs: restart.atMs + from.int(300),
      lastsMs: fault.lastsMs + from.int(1_500),
    })
  }
  return {
    ...plan,
    steps: steps.toSorted((a, b) => a.atMs - b.atMs),
    fileIntervalMs: from.pick([300, 1_000, 2_500]),
    staleLimitMs: from.pick([Infinity, 2_000]),
  }
}

function timed(from: Random, longestMs: number): Timed {
  // Half of the steps are close to the middle of the run, so that they overlap.
  const atMs = from.chance(0.5) ? from.int(RUN_MS) : RUN_MS / 2 + from.int(300)
  return { atMs, lastsMs: Math.floor(from.next() ** 3 * longestMs), pick: from.int(2 ** 31) }
}

/** Returns a transaction of one to three random operations. */
export function randomTransaction(from: Random): Step {
  const operations = Array.from({ length: from.pick([1, 1, 1, 2, 3]) }, () => from.pick(OPERATION_NAMES))
  return { ...timed(from, 3_000), kind: 'transaction', operations, isRolledBack: from.chance(0.1) }
}

function randomRequest(from: Random): Step {
  const kind = from.chance(0.75) ? 'check' : 'deactivate'
  return { ...timed(from, 0), kind, license: 1 + from.int(4), machine: from.pick(MACHINES) }
}

function randomChecks(from: Random): WatchedCheck[] {
  const checks: WatchedCheck[] = []
  for (let license = 1; license <= MAX_LICENSES; license++)
    checks.push({
      organization: organizationOfKey(license),
      license,
      machine: from.pick(MACHINES),
      address: from.pick(ADDRESSES),
      country: from.pick(COUNTRIES),
    })
  return checks
}

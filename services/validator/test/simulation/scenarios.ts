/**
 * Defines scenarios: histories that have revealed a defect, in Keyward or in a system of a similar design, and dangerous starts
 * from an index file, which have revealed none. Each scenario explains its defect, or the rule that it tests.
 */

import type { FileState } from './files.ts'
import type { FaultName, Plan, Step } from './plan.ts'
import type { WatchedCheck } from './verdicts.ts'
import { type License, machineName, MAX_LICENSES, type Operation, type Rule, organizationOfKey } from './world.ts'

export interface Scenario {
  readonly name: string
  /** The step that failed and the time window of the failure, or the rule that the scenario tests. */
  readonly explanation: string
  readonly steps: readonly Step[]
  /** The maximum time that a page of a load takes to arrive. */
  readonly pageMs?: number
  /** The maximum number of changes that a read of the log returns. A long read returns up to ten times as many. */
  readonly maxChanges?: number
  /** The interval at which the validator writes its index file. If it is undefined, the validator has no file. */
  readonly fileIntervalMs?: number
  /** `STALE_LIMIT`. If it is undefined, checks are decided at any age of the index. */
  readonly staleLimitMs?: number
  /** The maximum number of loads in a run. */
  readonly maxLoads?: number
  /** Whether the validator must stay ready from its first load on. */
  readonly isAlwaysReady?: boolean
}

const MUTED = 900

function transact(atMs: number, ...operations: Operation[]): Step {
  return { atMs, lastsMs: 0, pick: 1, kind: 'transaction', operations, isRolledBack: false }
}

/** Returns a transaction that stays open for `lastsMs` before it commits. */
function open(atMs: number, lastsMs: number, ...operations: Operation[]): Step {
  return { ...transact(atMs, ...operations), lastsMs }
}

function fail(atMs: number, fault: FaultName, { lastsMs = 0, lost = 0 } = {}): Step {
  return { atMs, lastsMs, pick: 1, kind: 'fault', fault, lost }
}

function request(atMs: number, kind: 'check' | 'deactivate', license: number, machine: string): Step {
  return { atMs, lastsMs: 0, pick: 1, kind, license, machine }
}

function restart(atMs: number, file: FileState, lastsMs: number): Step {
  return { atMs, lastsMs, pick: 1, kind: 'restart', isGraceful: false, file }
}

const update =
  (number: number, values: Partial<License>): Operation =>
  (draft) => {
    draft.license.set(number, { ...draft.license.get(number)!, ...values })
    return `sets ${JSON.stringify(values)} of license ${number}`
  }

const blacklist =
  (number: number, values: Partial<Rule>): Operation =>
  (draft) => {
    const everywhere = { type: 'IP', value: '10.0.0.0/8', scope: 'ORGANIZATION', scopeId: null } as const
    const rule = {
      organization: 2,
      kind: 'BLACKLIST',
      ...everywhere,
      allowSuspendedOrExpired: false,
      ...values,
    } as const
    draft.rule.set(number, rule)
    return `sets rule ${number}: ${rule.kind} of ${rule.type} ${rule.value}`
  }

const remove =
  (table: 'rule' | 'license' | 'customer', number: number): Operation =>
  (draft) => {
    draft[table].delete(number)
    return `deletes ${table} ${number}`
  }

const hold =
  (license: number, machine: string): Operation =>
  (draft) => {
    draft.machine.set(machineName(license, machine), { license, machine })
    return `claims a slot of license ${license} for ${machine} through another validator`
  }

const OF_LICENSE_3 = { scope: 'LICENSE', scopeId: 3 } as const

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'a license is reinstated and blocked at once while the change log is pruned',
    explanation:
      'During a reload, the license was written before its access rules. Between the two write sections the license was active and ' +
      'its rule was unknown. A check that both states reject was VALID.',
    steps: [
      transact(500, update(3, { status: 'suspended' })),
      fail(1_990, 'mute', { lastsMs: MUTED }),
      transact(2_000, update(3, { status: 'active' }), blacklist(1, OF_LICENSE_3)),
      fail(2_010, 'prune'),
    ],
  },
  {
    name: 'a blacklist replaces an exclusion while the change log is pruned',
    explanation:
      'A reload wrote added rules at once, but removed deleted rules at its end. The two changes of one transaction ' +
      'therefore took effect at different times.',
    steps: [
      transact(500, blacklist(1, { ...OF_LICENSE_3, kind: 'EXCLUSION', allowSuspendedOrExpired: true })),
      fail(1_990, 'mute', { lastsMs: MUTED }),
      transact(2_000, remove('rule', 1), blacklist(2, {})),
      fail(2_010, 'prune'),
    ],
  },
  {
    name: 'a failover loses a transaction of two changes',
    explanation:
      'The reload wrote the rows of the older state one table after the other. Between two write sections, one change of ' +
      'the lost transaction was undone and the other was still in force.',
    steps: [
      transact(
        1_000,
        update(3, { status: 'suspended' }),
        update(4, { status: 'suspended' }),
        blacklist(1, { scope: 'PRODUCT', scopeId: 22 }),
      ),
      fail(2_000, 'fail over', { lost: 1, lastsMs: 50 }),
    ],
  },
  {
    name: 'a read finds more changes than it may return',
    explanation:
      'The validator reloaded all rows in place when one read could not return all changes. Meanwhile the index showed ' +
      'mixed states, and later changes were not enforced.',
    maxChanges: 3,
    steps: [
      transact(500, update(3, { status: 'suspended' }), update(4, { status: 'suspended' })),
      transact(
        2_000,
        update(3, { status: 'active' }),
        update(4, { status: 'active' }),
        blacklist(1, OF_LICENSE_3),
        blacklist(2, {}),
      ),
    ],
  },
  {
    name: 'a license is revoked during a reload',
    explanation:
      'The log was not read before the end of a reload, which may take minutes. The validator stayed ready, but enforced ' +
      'the revocation only after the reload.',
    pageMs: 1_500,
    steps: [
      ...['m1', 'm2', 'm3'].map((machine) => transact(300, hold(2, machine))),
      fail(500, 'crash', { lastsMs: 20 }),
      transact(1_000, update(3, { status: 'revoked' })),
      transact(1_500, update(1, { status: 'suspended' })),
    ],
  },
  {
    name: 'changes are committed during a long first load',
    explanation:
      'A validator was ready as soon as its first load ended, but read the changes committed during the load later.',
    pageMs: 1_500,
    steps: [
      ...['m1', 'm2', 'm3'].map((machine) => transact(0, hold(2, machine))),
      transact(100, update(3, { status: 'revoked' })),
      transact(1_000, update(1, { status: 'suspended' })),
    ],
  },
  {
    name: 'transaction numbers are used again after a crash',
    explanation:
      'The heartbeat continued to publish the snapshot from before the crash, which contains the numbers of lost ' +
      'transactions. New transactions with these numbers counted as applied (x-applied-by) before they were read.',
    pageMs: 900,
    steps: [
      ...[1_000, 1_020, 1_040].map((atMs) => transact(atMs, update(4, { max: atMs }))),
      fail(1_800, 'crash', { lost: 3, lastsMs: 30 }),
      ...[1_900, 1_950, 2_000].map((atMs) => transact(atMs, update(3, { max: atMs }))),
      transact(2_050, update(3, { status: 'revoked' })),
    ],
  },
  {
    name: 'SpiceDB: overlapping transactions make a watch repeat or skip changes',
    explanation:
      'A transaction commits after others with greater numbers. If a position is one number, a watch either skips this ' +
      'transaction or returns the others repeatedly. If a position is a snapshot, a watch does neither.',
    maxLoads: 1,
    steps: [
      open(300, 2_500, update(1, { status: 'revoked' })),
      open(400, 1_500, blacklist(1, {})),
      ...[0, 1, 2, 3, 4, 5].map((i) => open(500 + 200 * i, 150 * i, update(3, { max: i + 1 }))),
    ],
  },
  {
    name: 'SpiceDB: foreign transactions do not move the watermark',
    explanation:
      'Transactions without relevance for validators produce no entries. A position that advances only with entries falls ' +
      'behind them, and pruning then forces a load.',
    maxLoads: 1,
    steps: [
      ...Array.from({ length: 30 }, (_, i) => open(300 + 50 * i, 10)),
      fail(2_000, 'prune', { lastsMs: 1_200 }),
      transact(3_500, update(3, { status: 'suspended' })),
    ],
  },
  {
    name: 'SpiceDB: transaction numbers start again after a dump is restored',
    explanation:
      'On a new server, transaction numbers start again. A validator must not compare its position or its own claims, which ' +
      'contain old numbers, with the new numbers.',
    pageMs: 20,
    steps: [
      request(600, 'check', 1, 'm1'),
      request(1_990, 'check', 1, 'm2'),
      request(1_995, 'check', 3, 'm1'),
      fail(2_000, 'dump', { lost: 1, lastsMs: 100 }),
      ...[2_200, 2_300, 2_400].map((atMs) => transact(atMs, update(4, { max: atMs }))),
      request(3_000, 'deactivate', 1, 'm1'),
      request(3_100, 'check', 1, 'm3'),
    ],
  },
  {
    name: 'SpiceDB: connections reach a replica',
    explanation:
      'A replica lags, and its snapshots lack open transactions. A position from a replica therefore loses changes, so a ' +
      'validator must not follow a replica.',
    steps: [
      open(1_000, 1_200, update(3, { status: 'revoked' })),
      fail(1_500, 'standby', { lastsMs: 1_000 }),
      transact(2_000, update(1, { status: 'suspended' })),
    ],
  },
  {
    name: 'a license is revoked during a requested reload',
    explanation:
      'A request for a reload voided the log, so changes waited for the end of the reload. Now the log is kept, and changes ' +
      'are followed while the rows are compared.',
    pageMs: 900,
    isAlwaysReady: true,
    steps: [
      ...['m1', 'm2', 'm3'].map((machine) => transact(300, hold(2, machine))),
      fail(500, 'void'),
      transact(1_000, update(3, { status: 'revoked' })),
      fail(1_200, 'void'),
      transact(1_500, update(1, { status: 'suspended' })),
      fail(3_000, 'void'),
    ],
  },
  {
    name: 'the change log is pruned before a large change is read separately',
    explanation:
      'The large change was read by a later statement on another connection. The log had lost entries by then, which the ' +
      'validator did not detect.',
    maxChanges: 3,
    steps: [
      transact(
        2_000,
        update(3, { status: 'suspended' }),
        update(4, { status: 'suspended' }),
        blacklist(1, OF_LICENSE_3),
        blacklist(2, {}),
      ),
      fail(2_035, 'prune'),
    ],
  },
  {
    name: 'a large change ends before the other organizations have been read up to its snapshot',
    explanation:
      'The feed continued from the snapshot of the large change for all organizations. The last read of the other ' +
      'organizations was older, so their changes in between were lost.',
    maxChanges: 3,
    pageMs: 2,
    steps: [
      transact(
        2_000,
        update(3, { status: 'suspended' }),
        update(4, { status: 'suspended' }),
        blacklist(1, OF_LICENSE_3),
        blacklist(2, {}),
      ),
      fail(2_027, 'stall', { lastsMs: 600 }),
      transact(2_300, update(1, { status: 'suspended' })),
    ],
  },
  {
    name: 'index file: Postgres is unreachable, and the file becomes older than STALE_LIMIT',
    explanation:
      'The age of the index counts from the last contact before the file was written, not from the start. Otherwise each ' +
      'restart would extend the time in which a revoked license is VALID.',
    fileIntervalMs: 300,
    staleLimitMs: 2_000,
    steps: [
      fail(1_000, 'refuse', { lastsMs: 3_000 }),
      restart(1_000, 'latest', 1_500),
      transact(1_100, update(3, { status: 'revoked' })),
    ],
  },
  {
    name: 'index file: the file belongs to another database, and Postgres is unreachable',
    explanation:
      'A file of another database must never decide checks, even if nothing can be compared with Postgres at the start.',
    fileIntervalMs: 300,
    steps: [
      restart(1_000, 'foreign', 500),
      fail(1_000, 'refuse', { lastsMs: 1_500 }),
      transact(1_100, update(3, { status: 'revoked' })),
    ],
  },
  {
    name: 'index file: a failover loses a transaction that the file contains',
    explanation:
      'The file is newer than the log of the new server, which uses the lost transaction numbers again. A validator that ' +
      'followed from the position of the file would keep the lost change.',
    fileIntervalMs: 300,
    pageMs: 900,
    steps: [
      transact(1_000, update(3, { status: 'revoked' })),
      restart(1_990, 'latest', 400),
      fail(2_000, 'fail over', { lost: 1, lastsMs: 50 }),
      ...Array.from({ length: 12 }, (_, i) => 2_070 + 25 * i).map((atMs) => transact(atMs, update(4, { max: atMs }))),
    ],
  },
  {
    name: 'index file: the change log is pruned past the position of the file',
    explanation: 'The log no longer contains the changes since the file. The validator must compare all rows first.',
    fileIntervalMs: 300,
    steps: [
      restart(1_000, 'latest', 900),
      transact(1_100, update(3, { status: 'revoked' }), blacklist(1, {})),
      fail(1_200, 'prune'),
    ],
  },
  {
    name: 'index file: a change is acknowledged after the last file, and Postgres is unreachable after a kill',
    explanation:
      'The validator had published a snapshot with the revocation, and its client had been told so. After a kill, the next validator restored ' +
      'the older file, and the revoked license was VALID again.',
    fileIntervalMs: 1_900,
    steps: [
      transact(1_600, update(3, { status: 'revoked' }), blacklist(1, { scope: 'PRODUCT', scopeId: 22 })),
      restart(1_800, 'latest', 100),
      fail(1_800, 'refuse', { lastsMs: 1_500 }),
    ],
  },
  {
    name: 'index file: the file is torn, older, or missing after several kills',
    explanation:
      'A kill may leave an older file or a temporary one, and a disk may lose a part. A torn file is rejected as a whole. An ' +
      'older file is brought up to date from the log, and is in service without Postgres only as an old state.',
    fileIntervalMs: 300,
    steps: [
      transact(500, update(3, { status: 'suspended' })),
      restart(1_000, 'torn', 100),
      transact(1_300, update(3, { status: 'active' }), blacklist(1, OF_LICENSE_3)),
      restart(1_900, 'older', 100),
      fail(1_950, 'refuse', { lastsMs: 500 }),
      restart(2_800, 'none', 100),
      restart(3_400, 'older', 100),
    ],
  },
]

export function planOfScenario(scenario: Scenario, seed: number): Plan {
  const { steps, pageMs = 20, maxChanges = 20_000, fileIntervalMs = null, staleLimitMs = Infinity } = scenario
  const checks: WatchedCheck[] = []
  for (let license = 1; license <= MAX_LICENSES; license++)
    for (const machine of ['m1', 'm2'])
      checks.push({
        organization: organizationOfKey(license),
        license,
        machine,
        address: '10.1.2.3',
        country: 'DE',
      })
  return { seed, steps, checks, lastsMs: 4_000, pageMs, maxChanges, slowAbove: Infinity, fileIntervalMs, staleLimitMs }
}

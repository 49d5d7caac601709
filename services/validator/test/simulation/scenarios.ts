/**
 * Named scenarios: histories that have shown a defect, here or in other systems of the same design, each with the step and
 * the window in which the defect showed. docs/reliability.md lists them by number.
 */

import type { FaultName, Plan, Step } from './plan.ts'
import type { WatchedCheck } from './verdicts.ts'
import { type License, machineName, MAX_LICENSES, type Operation, type Rule, organizationOfLicense } from './world.ts'

export interface Scenario {
  readonly name: string
  /** Which step, in which window. */
  readonly explanation: string
  readonly steps: readonly Step[]
  /** How long a page of a load may take to arrive. */
  readonly pageMs?: number
  /** The most changes that one read of the log returns. */
  readonly maxChanges?: number
  /** How often the validator may load everything at most. */
  readonly maxLoads?: number
  /** The validator stays ready from its first load on. */
  readonly isAlwaysReady?: boolean
}

const MUTED = 900

function transact(atMs: number, ...operations: Operation[]): Step {
  return { atMs, lastsMs: 0, pick: 1, kind: 'transaction', operations, isRolledBack: false }
}

/** A transaction that stays open before it commits. */
function open(atMs: number, lastsMs: number, ...operations: Operation[]): Step {
  return { ...transact(atMs, ...operations), lastsMs }
}

function fail(atMs: number, fault: FaultName, { lastsMs = 0, lost = 0 } = {}): Step {
  return { atMs, lastsMs, pick: 1, kind: 'fault', fault, lost }
}

function request(atMs: number, kind: 'check' | 'deactivate', license: number, machine: string): Step {
  return { atMs, lastsMs: 0, pick: 1, kind, license, machine }
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
      'A reload wrote the license before the rules of licenses. Between the two write sections the license was active and ' +
      'its rule unknown, so a check was VALID that both states reject.',
    steps: [
      transact(500, update(3, { status: 'suspended' })),
      fail(1_990, 'mute', { lastsMs: MUTED }),
      transact(2_000, update(3, { status: 'active' }), blacklist(1, OF_LICENSE_3)),
      fail(2_010, 'prune'),
    ],
  },
  {
    name: 'a blacklist moves from a license to its organization while the change log is pruned',
    explanation:
      'A reload wrote added rules at once and removed others at its end, so for a while two changes of one transaction ' +
      'were in force one after the other.',
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
      'The reload wrote the rows of the older state one table after the other. Between two write sections one change of ' +
      'the lost transaction was undone and the other in force.',
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
    name: 'a read returns more changes than fit',
    explanation:
      'More changes than one read returns made the validator reload everything, in place, with mixed states in between ' +
      'and without enforcing later changes until its end.',
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
    name: 'a license is revoked while a reload is under way',
    explanation:
      'The log was not read before the end of a reload, which may take minutes. The validator stayed ready and enforced ' +
      'the revocation only then.',
    pageMs: 1_500,
    steps: [
      ...['m1', 'm2', 'm3'].map((machine) => transact(300, hold(2, machine))),
      fail(500, 'crash', { lastsMs: 20 }),
      transact(1_000, update(3, { status: 'revoked' })),
      transact(1_500, update(1, { status: 'suspended' })),
    ],
  },
  {
    name: 'the first load takes long while changes are made',
    explanation:
      'A validator was ready as soon as its first load ended, although what was committed during the load was read later.',
    pageMs: 1_500,
    steps: [
      ...['m1', 'm2', 'm3'].map((machine) => transact(0, hold(2, machine))),
      transact(100, update(3, { status: 'revoked' })),
      transact(1_000, update(1, { status: 'suspended' })),
    ],
  },
  {
    name: 'a crash gives transaction numbers out again',
    explanation:
      'The heartbeat went on publishing the snapshot of before the crash. It contains the numbers of lost transactions, so ' +
      'new transactions with these numbers counted as applied (x-applied-by) before they were read.',
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
      'A transaction commits after others with greater numbers. A position that is one number either skips it or returns ' +
      'the later ones again and again. A position that is a snapshot does neither.',
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
      'Transactions that change nothing for validators produce no entries. A position that only entries move falls behind ' +
      'them, and pruning then forces a load.',
    maxLoads: 1,
    steps: [
      ...Array.from({ length: 30 }, (_, i) => open(300 + 50 * i, 10)),
      fail(2_000, 'prune', { lastsMs: 1_200 }),
      transact(3_500, update(3, { status: 'suspended' })),
    ],
  },
  {
    name: 'SpiceDB: counters are behind after a dump is restored',
    explanation:
      'On a new server transaction numbers start again. What a validator remembers by number, such as its own claims and ' +
      'its position, must not be compared with the new numbers.',
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
      'A replica lags, and its snapshots lack open transactions, so a position that is taken there loses changes. A ' +
      'validator must not follow a replica.',
    steps: [
      open(1_000, 1_200, update(3, { status: 'revoked' })),
      fail(1_500, 'standby', { lastsMs: 1_000 }),
      transact(2_000, update(1, { status: 'suspended' })),
    ],
  },
  {
    name: 'a license is revoked while a requested reload is under way',
    explanation:
      'A request for a reload voided the log, so changes waited for the end of the reload. The log is kept now, and changes ' +
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
    name: 'the change log is pruned before a large change is read apart',
    explanation:
      'The read that found the large change was followed by another statement on another connection. The log had lost ' +
      'entries by then, and nobody noticed.',
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
    name: 'a large change is through before the other organizations have been read',
    explanation:
      'The feed went on from the snapshot of the large change for all organizations. The last read of the others was ' +
      'older, because its result was on its way when the last page arrived, so changes in between were lost.',
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
]

export function planOfScenario({ steps, pageMs = 20, maxChanges = 20_000 }: Scenario, seed: number): Plan {
  const checks: WatchedCheck[] = []
  for (let license = 1; license <= MAX_LICENSES; license++)
    for (const machine of ['m1', 'm2'])
      checks.push({
        organization: organizationOfLicense(license),
        license,
        machine,
        address: '10.1.2.3',
        country: 'DE',
      })
  return { seed, steps, checks, lastsMs: 4_000, pageMs, maxChanges }
}

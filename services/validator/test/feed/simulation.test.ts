/**
 * Runs the simulation (test/simulation). `KEYWARD_SEED=n` selects the first seed, and `KEYWARD_LONG=1` runs 20,000 seeds. The
 * plan of a failing seed is shrunk, and the events of the shrunk plan are the error message of the test.
 */

import type { Change } from '@keyward/engine'
import { expect, test } from 'vitest'

import type { FeedTarget } from '../../src/feed/follower.ts'
import { planOf } from '../simulation/plan.ts'
import { runPlan } from '../simulation/run.ts'
import { planOfScenario, SCENARIOS } from '../simulation/scenarios.ts'
import { type Failure, shrink, storyOf } from '../simulation/shrink.ts'
import type { Defect } from '../simulation/validator.ts'

/** The seeds of plans without restarts, index files and slow reads that once revealed a defect. */
const FORMER_FAILURES = [
  11_341, 11_541, 19_978, 777_764, 779_599, 783_881, 785_268, 793_307, 794_719, 919_621, 5_019_936,
]

/** The seeds of later plans, which may contain restarts, index files and slow reads, that once revealed a defect. */
const LATER_FAILURES = [
  8_000_818, 8_100_081, 20_000_093, 21_000_014, 22_000_060, 30_000_631, 40_010_201, 40_060_472, 41_015_518, 42_061_968,
  43_097_606, 1_795_879_470, 1_796_000_215,
]

const isLong = Boolean(process.env['KEYWARD_LONG'])
const FIRST_SEED = Number(process.env['KEYWARD_SEED'] ?? 1)
const SEEDS = isLong ? 20_000 : 200
const SCENARIO_SEEDS = isLong ? 1_000 : 12

/** The first seeds of the searches for a defect. The second one leads to a long plan from which no single step can be removed. */
const SEARCHES = [1, 771_002_003]
/** More first seeds, of which two lead to a failure that no plan of two transactions is known to cause. */
const MORE_SEARCHES = isLong ? Array.from({ length: 200 }, (_, i) => 5_000 + 7_919 * i) : []

/** Runs the plans of `seeds` seeds. Returns the first failure with a shrunk plan, or null. */
async function firstFailure(seeds: number, defect?: Defect, first = FIRST_SEED): Promise<Failure | null> {
  for (let seed = first; seed < first + seeds; seed++) {
    const plan = planOf(seed)
    const result = await runPlan(plan, defect)
    if (result.finding !== null) return await shrink({ plan, result }, (shorter) => runPlan(shorter, defect))
  }
  return null
}

test(
  `shows only committed versions, in the order of their commits, in ${SEEDS} random histories`,
  async () => {
    const startedMs = performance.now()
    const failure = await firstFailure(SEEDS)
    expect(failure && storyOf(failure)).toBeNull()
    if (isLong)
      process.stdout.write(`${Math.round((SEEDS / (performance.now() - startedMs)) * 60_000)} runs a minute\n`)
  },
  isLong ? 3_600_000 : 60_000,
)

test('passes with every seed that once revealed a defect', async () => {
  const plans = [
    ...FORMER_FAILURES.map((seed) => planOf(seed, { hasFiles: false })),
    ...LATER_FAILURES.map((seed) => planOf(seed)),
  ]
  for (const plan of plans) {
    const result = await runPlan(plan)
    expect(result.finding && storyOf({ plan, result })).toBeNull()
  }
})

test.each(SCENARIOS)('shows only committed versions in the scenario "$name"', async (scenario) => {
  for (let seed = 1; seed <= SCENARIO_SEEDS; seed++) {
    const plan = planOfScenario(scenario, seed)
    const result = await runPlan(plan)
    expect(result.finding && storyOf({ plan, result })).toBeNull()
    expect(result.loads).toBeLessThanOrEqual(scenario.maxLoads ?? Infinity)
    expect(result.unready).toBeLessThanOrEqual(scenario.isAlwaysReady ? 0 : Infinity)
  }
})

// The plan of the second seed restarts the validator with an index file.
test.each([FIRST_SEED, 500])('returns the same result for two runs of the plan of seed %i', async (seed) => {
  const plan = planOf(seed)
  expect(await runPlan(plan)).toEqual(await runPlan(plan))
})

/** Returns a function that wraps a target and replaces its `apply`. */
function targetWith(apply: (target: FeedTarget) => FeedTarget['apply']): (target: FeedTarget) => FeedTarget {
  return (target) => {
    const replaced = apply(target)
    return new Proxy(target, {
      get: (_, name) => {
        if (name === 'apply') return replaced
        const member: unknown = Reflect.get(target, name, target)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  }
}

const isSuspension = (change: Change): boolean => change.entity === 'license' && change.row?.status === 'suspended'

test.each([
  {
    defect: 'loses a suspension',
    target: targetWith((target) => (changes, signingKeys, snapshot) => {
      return target.apply(
        changes.filter((change) => !isSuspension(change)),
        signingKeys,
        snapshot,
      )
    }),
  },
  {
    defect: 'applies a batch row by row',
    target: targetWith((target) => (changes, signingKeys, snapshot) => {
      return changes.flatMap((change) => target.apply([change], signingKeys, snapshot))
    }),
  },
])(
  'detects a feed that $defect and shrinks the failing plan',
  async ({ target }) => {
    for (const first of [...SEARCHES, ...MORE_SEARCHES]) {
      const failure = await firstFailure(200, { target }, first)
      expect(failure, `seed ${first}`).not.toBeNull()
      expect(failure!.plan.steps.length, `seed ${first}`).toBeLessThanOrEqual(SEARCHES.includes(first) ? 2 : 4)
      expect(failure!.result.finding, `seed ${first}`).not.toBeNull()
    }
  },
  isLong ? 3_600_000 : 60_000,
)

test('shrinks a plan to the steps, operations and checks that a failure needs', async () => {
  const plan = planOf(1)
  const result = { ...(await runPlan(plan)), finding: { problem: 'late', atMs: 0, text: '' } as const }
  const needed = plan.steps.filter(({ kind }) => kind === 'transaction').slice(1, 3)
  const { plan: shrunk } = await shrink({ plan, result }, ({ steps }) => {
    const isWhole = needed.every(({ atMs }) => steps.some((step) => step.atMs === atMs))
    return Promise.resolve(isWhole ? result : { ...result, finding: null })
  })
  expect(plan.steps.length).toBeGreaterThan(4)
  expect(shrunk.steps.map(({ atMs }) => atMs)).toEqual(needed.map(({ atMs }) => atMs))
  expect(shrunk.steps).toMatchObject(needed.map(() => ({ operations: { length: 1 }, lastsMs: 0 })))
  expect(shrunk.checks).toEqual([])
})

test.each([
  {
    defect: 'does not count the age of its index file',
    scenario: 'index file: Postgres is unreachable, and the file becomes older than STALE_LIMIT',
    restored: (restored, _, nowMs) => ({ ...restored, currentAtMs: nowMs }),
  },
  {
    defect: 'decides checks from the index file of another database',
    scenario: 'index file: the file belongs to another database, and Postgres is unreachable',
    restored: (restored) => ({ ...restored, isOfSource: true }),
  },
  {
    defect: 'follows another server from the position of its index file',
    scenario: 'index file: a failover loses a transaction that the file contains',
    restored: (restored, postgres) => ({ ...restored, identity: postgres.openChangeLog() }),
  },
  {
    defect: 'ignores its journal',
    scenario: 'index file: a change is acknowledged after the last file, and Postgres is unreachable after a kill',
    restored: (restored) => ({ ...restored, reads: [] }),
  },
] satisfies ({ defect: string; scenario: string } & Defect)[])('detects a validator that $defect', async (one) => {
  const scenario = SCENARIOS.find(({ name }) => name === one.scenario)!
  const plans = Array.from({ length: SCENARIO_SEEDS }, (_, i) => planOfScenario(scenario, i + 1))
  const found: (string | undefined)[] = []
  for (const plan of plans) found.push((await runPlan(plan, one)).finding?.problem)
  expect(new Set(found)).not.toEqual(new Set([undefined]))
})

test('detects a validator that acknowledges changes before its journal is durable', async () => {
  const found: (string | undefined)[] = []
  for (let seed = 1; seed <= 40; seed++) {
    const scenario = SCENARIOS.find(({ name }) => name.includes('a change is acknowledged after the last file'))!
    // The kill follows the read of the change within milliseconds.
    const steps = scenario.steps.map((step) => (step.kind === 'transaction' ? { ...step, atMs: 1_800 - seed } : step))
    found.push((await runPlan(planOfScenario({ ...scenario, steps }, seed), { isHasty: true })).finding?.problem)
  }
  expect(new Set(found)).not.toEqual(new Set([undefined]))
})

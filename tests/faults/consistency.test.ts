import { afterAll, beforeAll, expect, test } from 'vitest'

import { Fleet } from './consistency/fleet.ts'
import { runOnce } from './consistency/run.ts'
import { endChildren, type Service, startManagement, untilReady } from './support/children.ts'
import { byLength, figure, quantiles, seedOr } from './support/length.ts'
import { createPostgres, type TestPostgres } from './support/postgres.ts'

let postgres: TestPostgres
let fleet: Fleet
let management: Service

beforeAll(async () => {
  postgres = await createPostgres()
  management = await startManagement(postgres.url)
  fleet = new Fleet(postgres)
  await fleet.start(3)
  await untilReady(management)
})
afterAll(async () => {
  await fleet.close()
  await management.stop()
  await endChildren()
  await postgres.remove()
})

const FIRST_SEED = seedOr(20_261_120)
const RUNS = byLength(2, 100)
/** The maximum age of a verdict without a recent fault. A machine with more programs than cores needs more. */
const SLACK_MS = Number(process.env['KEYWARD_SLACK_MS'] ?? byLength(5_000, 3_000))
const caughtUp: number[] = []
/** The number of checks of all runs whose verdict a wrong state would have changed. */
let allTelling = 0

test.each(Array.from({ length: RUNS }, (_, i) => FIRST_SEED + i))(
  'three validators return no wrong or older verdict under random changes and faults (KEYWARD_SEED=%i)',
  async (seed) => {
    const report = await runOnce(fleet, management, seed, { lastsMs: byLength(4_000, 6_000), slackMs: SLACK_MS })
    const { wrong, operations, checks, telling, faults, caughtUpMs } = report
    figure(`Consistency, seed ${seed}`, {
      operations,
      checks,
      telling,
      caughtUpMs: Math.round(caughtUpMs),
      wrong: wrong.length,
      faults: faults.join(' + '),
    })
    if (wrong.length > 0) process.stdout.write(`${wrong.slice(0, 10).join('\n')}\n`)
    expect(wrong.slice(0, 10), `after ${faults.join(', ')}`).toEqual([])
    expect(operations).toBeGreaterThan(0)
    allTelling += telling
    caughtUp.push(caughtUpMs)
  },
)

test('the checks of all runs could have found a wrong verdict', () => {
  expect(allTelling).toBeGreaterThan(10)
})

test('all validators equal Postgres again within seconds after the faults', () => {
  figure('Consistency, caught up after ms', { runs: caughtUp.length, ...quantiles(caughtUp) })
  expect(Math.max(...caughtUp)).toBeLessThan(byLength(15_000, 5_000))
})

/** Tests the report about slots that a failover may lose, for each way in which a database may be replicated. */

import type { Replication } from '@keyward/database'
import { createTestDatabase } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { FailoverSafety } from '../../src/slots/failover-safety.ts'
import { PostgresSlots } from '../../src/slots/postgres-slots.ts'

type Step = Replication | Error

/** Returns the reports after each reading. */
async function reports(steps: readonly Step[]): Promise<boolean[]> {
  const pending = [...steps]
  const found: boolean[] = []
  const { promise, resolve } = Promise.withResolvers<boolean[]>()
  const safety: FailoverSafety = new FailoverSafety(
    async () => {
      const step = pending.shift()
      if (step === undefined || step instanceof Error) throw step ?? new Error('no more steps')
      return step
    },
    {
      nowMs: () => 0,
      after: (_ms, run) => {
        found.push(safety.isSafe)
        if (pending.length === 0) resolve(found)
        else queueMicrotask(run)
        return () => undefined
      },
    },
  )
  safety.start()
  return promise
}

test('slots are safe on a single server and with a synchronous standby', async () => {
  expect(await reports(['none', 'none'])).toEqual([true, true])
  expect(await reports(['synchronous', 'synchronous'])).toEqual([true, true])
})

test('slots are at risk with asynchronous standbys, and when the last standby is gone', async () => {
  expect(await reports(['asynchronous', 'synchronous', 'none', 'synchronous'])).toEqual([false, true, false, true])
})

test('keeps its report while Postgres is unreachable', async () => {
  expect(await reports(['asynchronous', new Error('gone'), 'synchronous', new Error('gone')])).toEqual([
    false,
    false,
    true,
    true,
  ])
})

test('the login of validators may read the replication', async () => {
  const database = await createTestDatabase()
  const slots = new PostgresSlots(database.validatorUrl, () => undefined)
  expect(await slots.replication()).toBe('none')
  await slots.close()
  await database.drop()
})

/** Tests the report about whether a failover may lose slots, for each kind of replication. */

import type { Replication } from '@keyward/database'
import { createTestDatabase } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { FailoverSafety } from '../../src/slots/failover-safety.ts'
import { PostgresSlots } from '../../src/slots/postgres-slots.ts'

type Step = Replication | Error

/** Returns the value of `isSafe` after each reading. */
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

test('reports slots as safe on a single server and with a synchronous standby', async () => {
  expect(await reports(['none', 'none'])).toEqual([true, true])
  expect(await reports(['synchronous', 'synchronous'])).toEqual([true, true])
})

test('reports slots at risk with asynchronous standbys, and after the last standby has disconnected', async () => {
  expect(await reports(['asynchronous', 'synchronous', 'none', 'synchronous'])).toEqual([false, true, false, true])
})

test('keeps the last report while Postgres is unreachable', async () => {
  expect(await reports(['asynchronous', new Error('gone'), 'synchronous', new Error('gone')])).toEqual([
    false,
    false,
    true,
    true,
  ])
})

test('reads the state of the replication with the login of validators', async () => {
  const database = await createTestDatabase()
  const slots = new PostgresSlots(database.validatorUrl, () => undefined)
  expect(await slots.replication()).toBe('none')
  await slots.close()
  await database.drop()
})

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createPool } from '../src/index.ts'
import { createDatabase } from '../src/kysely.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('fails the transaction, not the process, when a connection breaks between two statements', async () => {
  const pool = createPool(database.url, { name: 'breaks' })
  const db = createDatabase(pool)
  const transaction = db.transaction().execute(async (trx) => {
    await trx.selectFrom('organizations').select('id').execute()
    await database.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'breaks'`,
    )
    // The server's last message arrives while no query is running.
    await new Promise((resolve) => setTimeout(resolve, 100))
    await trx.selectFrom('organizations').select('id').execute()
  })
  await expect(transaction).rejects.toThrow(/terminat|queryable|connection/i)
  expect(await db.selectFrom('organizations').select('id').execute()).toEqual([])
  await db.destroy()
})

import { sql } from 'kysely'

import type { Db } from '../context.ts'

/**
 * Runs the task in a transaction, which holds a lock with this name. Returns null without running the task while another process holds the
 * lock.
 */
export async function inOneProcess<Result>(
  db: Db,
  name: string,
  task: (transaction: Db) => Promise<Result>,
): Promise<Result | null> {
  return db.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ locked: boolean }>`
      select pg_try_advisory_xact_lock(hashtext(${`keyward ${name}`})) as locked`.execute(transaction)
    return rows[0]?.locked === true ? task(transaction) : null
  })
}

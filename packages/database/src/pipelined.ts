/**
 * Runs transactions that send a statement without waiting for the responses to earlier statements. Postgres executes the statements in the
 * order in which they were sent. After a statement has failed, Postgres rejects all later statements of the transaction.
 */

import type { CompiledQuery, Kysely } from 'kysely'
import pg from 'pg'

import { collectLast } from './last-statements.ts'
import { createDatabase } from './query-builder.ts'
import type { Database } from './schema.ts'
import { together } from './together.ts'

/**
 * Runs `work` in a transaction. `begin` is sent together with the first statement of `work`. The pool must have the option `pipelines`.
 */
export async function runPipelined<Result>(
  pool: pg.Pool,
  work: (db: Kysely<Database>) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  const connection = { query: client.query.bind(client), release: () => undefined }
  const { options } = pool
  const db = createDatabase({ options, connect: () => Promise.resolve(connection), end: () => Promise.resolve() })
  const last: CompiledQuery[] = []
  collectLast(db, last)
  let isBroken = false
  try {
    const begun = client.query('begin')
    // Without a transaction, each statement of `work` would take effect by itself.
    begun.catch(() => client instanceof pg.Client && client.connection.stream.destroy())
    const [, result] = await together(begun, work(db))
    const statements = last.map(({ sql, parameters }) => client.query(sql, [...parameters]))
    const committed = client.query('commit')
    await together(...statements, committed)
    // Postgres rolls back a transaction in which a statement has failed, and reports no error.
    if ((await committed).command === 'ROLLBACK')
      throw new Error('The transaction was rolled back, because a statement has failed')
    return result
  } catch (error) {
    await client.query('rollback').catch(() => (isBroken = true))
    throw error
  } finally {
    client.release(isBroken)
  }
}

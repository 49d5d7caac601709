/**
 * Runs transactions that send a statement without waiting for the responses to earlier statements. Postgres executes the statements in the
 * order in which they were sent. After a statement has failed, Postgres rejects all later statements of the transaction.
 */

import type { CompiledQuery, Kysely } from 'kysely'
import type pg from 'pg'

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
    const [, result] = await together(client.query('begin'), work(db))
    const statements = last.map(({ sql, parameters }) => client.query(sql, [...parameters]))
    await together(...statements, client.query('commit'))
    return result
  } catch (error) {
    await client.query('rollback').catch(() => (isBroken = true))
    throw error
  } finally {
    client.release(isBroken)
  }
}

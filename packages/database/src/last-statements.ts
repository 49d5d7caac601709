/** Collects the statements that a transaction sends together with its commit (`runPipelined`). */

import type { CompiledQuery, Kysely, RawBuilder } from 'kysely'

import type { Database } from './schema.ts'

const lastStatements = new WeakMap<Kysely<Database>, CompiledQuery[]>()

/** Makes `executeLast` collect the statements of the transaction in `statements`. */
export function collectLast(db: Kysely<Database>, statements: CompiledQuery[]): void {
  lastStatements.set(db, statements)
}

/**
 * Executes a statement whose result nobody needs. In a transaction of `runPipelined`, the statement is sent together with the commit, so no
 * other statement of the transaction may depend on it.
 */
export async function executeLast(db: Kysely<Database>, statement: RawBuilder<unknown>): Promise<void> {
  const last = lastStatements.get(db)
  if (last === undefined) await statement.execute(db)
  else last.push(statement.compile(db))
}

/** Discards the collected statements, after a rollback to a savepoint. */
export function discardLast(db: Kysely<Database>): void {
  lastStatements.get(db)?.splice(0)
}

/**
 * Identifies the server that a connection has reached, and determines which part of a validator's history that server contains
 * (docs/api.md#p1).
 */

import type pg from 'pg'

import { isFunctionMissing } from '../errors.ts'
import { FEATURES } from '../features.ts'

/**
 * Returns the latest snapshot that a validator has published in the history of this server (`noteValidator`), or null.
 * The server has every transaction that is visible in that snapshot.
 */
export async function lastPublished(client: Pick<pg.ClientBase, 'query'>, validatorId: string): Promise<string | null> {
  const { rows } = await client.query<{ landmark: string | null }>('select landmark_of($1::uuid) as landmark', [
    validatorId,
  ])
  return rows[0]?.landmark ?? null
}

/**
 * Returns whether two results of `openChangeLog` can belong to one history. They can after a crash, after a failover, and after an older copy
 * of the data folder has replaced the server.
 */
export function mayContinue(before: string, after: string): boolean {
  const [system, database, log, runs = ''] = after.split('/')
  const [oldSystem, oldDatabase, oldLog] = before.split('/')
  return system !== '' && system === oldSystem && database === oldDatabase && log === oldLog && !runs.includes(' ')
}

/** Returns the identity of the server and its change log. Call it on every new connection. Rejects on a standby. */
export async function openChangeLog(client: Pick<pg.ClientBase, 'query'>): Promise<string> {
  try {
    const { rows } = await client.query<{ server: string }>('select open_change_log_with($1) as server', [FEATURES])
    return rows[0]?.server ?? ''
  } catch (error) {
    if (!isFunctionMissing(error)) throw error
    throw new Error('The database has not been migrated yet', { cause: error })
  }
}

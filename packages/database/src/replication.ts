/** Reads whether the commits of a session wait for a standby. */

import type pg from 'pg'

/**
 * `synchronous`: a commit waits until a standby has it. `asynchronous`: the server has standbys, but commits do not wait for them.
 * `none`: the server has neither standbys nor the setting to wait for them.
 */
export type Replication = 'synchronous' | 'asynchronous' | 'none'

const REPLICATION = `
  select current_setting('synchronous_standby_names') <> ''
      and current_setting('synchronous_commit') in ('on', 'remote_apply', 'remote_write') as "isSynchronous",
    exists (select from pg_stat_replication) as "hasStandby"`

/** Returns the replication that applies to the commits of this login. */
export async function readReplication(client: Pick<pg.ClientBase, 'query'>): Promise<Replication> {
  const { rows } = await client.query<{ isSynchronous: boolean; hasStandby: boolean }>(REPLICATION)
  const { isSynchronous = false, hasStandby = false } = rows[0] ?? {}
  if (isSynchronous) return 'synchronous'
  return hasStandby ? 'asynchronous' : 'none'
}

// Keeps the change log short.

import type pg from 'pg'

/** Readers that are less than this behind never have to load everything again. */
export const KEEP_LOG_MS = 3_600_000

/**
 * Forgets what is older than `keepMs` and returns how many entries went, or null when somebody else was at it. To be
 * called about once a minute by every validator; it is the calls that set the marks by which age is told.
 */
export async function pruneFeed(
  client: Pick<pg.ClientBase, 'query'>,
  keepMs: number = KEEP_LOG_MS,
): Promise<number | null> {
  const { rows } = await client.query<{ gone: string | null }>(
    `select prune_change_log($1 * interval '1 millisecond') as gone`,
    [keepMs],
  )
  const gone = rows[0]?.gone ?? null
  return gone === null ? null : Number(gone)
}

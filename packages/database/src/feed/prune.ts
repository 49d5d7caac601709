/** Keeps the change log short. */

import type pg from 'pg'

/** Readers that are less than this behind never need a reload. */
export const KEEP_LOG_MS = 3_600_000

/** Per transaction; more would occupy its connection for long. */
const MAX_ENTRIES = 20_000

/**
 * Deletes entries older than `keepMs` and returns how many, or null when another caller is doing so. Every validator calls it
 * about once a minute; the calls also set the marks from which the age of entries is known.
 */
export async function pruneFeed(
  client: Pick<pg.ClientBase, 'query'>,
  keepMs: number = KEEP_LOG_MS,
  maxEntries: number = MAX_ENTRIES,
): Promise<number | null> {
  for (let total = 0; ;) {
    const { rows } = await client.query<{ gone: number | string | null }>(
      `select prune_change_log($1 * interval '1 millisecond', $2) as gone`,
      [keepMs, maxEntries],
    )
    const gone = rows[0]?.gone ?? null
    if (gone === null) return total === 0 ? null : total
    total += Number(gone)
    if (Number(gone) < maxEntries) return total
  }
}

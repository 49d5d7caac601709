// Keeps the change log short.

import type pg from 'pg'

/** Readers that are less than this behind never have to load everything again. */
export const KEEP_LOG_MS = 3_600_000

/** In one transaction; more would hold its connection for long. */
const MOST_ENTRIES = 20_000

/**
 * Forgets what is older than `keepMs` and returns how many entries went, or null when somebody else was at it. To be
 * called about once a minute by every validator; it is the calls that set the marks by which age is told.
 */
export async function pruneFeed(
  client: Pick<pg.ClientBase, 'query'>,
  keepMs: number = KEEP_LOG_MS,
  mostEntries: number = MOST_ENTRIES,
): Promise<number | null> {
  for (let total = 0; ;) {
    const { rows } = await client.query<{ gone: number | string | null }>(
      `select prune_change_log($1 * interval '1 millisecond', $2) as gone`,
      [keepMs, mostEntries],
    )
    const gone = rows[0]?.gone ?? null
    if (gone === null) return total === 0 ? null : total
    total += Number(gone)
    if (Number(gone) < mostEntries) return total
  }
}

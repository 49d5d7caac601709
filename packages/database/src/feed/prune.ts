import type pg from 'pg'

/** The age in milliseconds up to which entries are kept. A reader whose last read is more recent needs no reload. */
export const KEEP_LOG_MS = 3_600_000

/** The maximum number of entries that one transaction deletes. It bounds the duration of the transaction. */
const MAX_ENTRIES = 20_000

/**
 * Deletes entries older than `keepMs` and returns their number, or null when another caller is pruning. Every validator
 * calls it about once a minute. Each call also records a snapshot with its time, from which the age of entries is
 * determined.
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

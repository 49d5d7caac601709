/** Drops expired partitions (docs/api.md#d6). Writers create missing partitions. */

import type pg from 'pg'

/**
 * Drops the weeks of activity and the months of analytics that are entirely older than the given ages. Returns the names of the
 * dropped tables. A partition that is in use stays until the next call. Hourly calls suffice.
 */
export async function dropOldPartitions(
  client: Pick<pg.ClientBase, 'query'>,
  activityDays: number,
  analyticsDays: number,
): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>('select drop_old_partitions($1, $2) as name', [
    activityDays,
    analyticsDays,
  ])
  return rows.map((row) => row.name)
}

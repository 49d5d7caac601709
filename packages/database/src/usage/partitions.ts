/** Drops expired partitions (docs/api.md#d6). Writers create missing partitions. */

import type pg from 'pg'

/**
 * Drops the partitions of activity (weeks) and analytics (months) whose rows are all older than the given ages. Returns the names of the
 * dropped tables. Skips a partition that is in use. Management calls it every ten minutes.
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

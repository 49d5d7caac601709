// Retention: what is too old goes partition by partition, which costs nothing however much it is. New partitions need no
// care: whoever writes makes those that are missing.

import type pg from 'pg'

/**
 * Drops the weeks of activity and the months of analytics that lie whole before the given ages, and returns the names of
 * the dropped tables. One that is being read is left for the next call; an hour later is soon enough.
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

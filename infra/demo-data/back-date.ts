/**
 * Moves times of the demo data into the past. The API and the functions of the database store the current time, while the demo data shows
 * an organization that has existed for a year.
 */

import type { writeBehind } from '@keyward/database'

/** A connection to the database with the login of the tables' owner. */
export type DatabaseClient = Parameters<typeof writeBehind>[0]

const DAY_MS = 86_400_000

/** A move of all times from `startedAt` until the start of the next shift. The time `startedAt` becomes `atMs`. */
export interface Shift {
  readonly startedAt: Date
  readonly atMs: number
}

/** The columns to move. `rows` is an SQL condition that selects the organization's rows to move. */
const COLUMNS: readonly { table: string; columns: readonly string[]; rows?: string }[] = [
  { table: 'members', columns: ['created_at', 'updated_at'] },
  { table: 'products', columns: ['created_at', 'updated_at'] },
  { table: 'customers', columns: ['created_at', 'updated_at'] },
  { table: 'licenses', columns: ['created_at', 'updated_at', 'suspended_at', 'revoked_at'] },
  { table: 'machines', columns: ['first_seen_at', 'last_seen_at'] },
  { table: 'access_rules', columns: ['created_at', 'updated_at'] },
  { table: 'access_rule_sets', columns: ['created_at', 'updated_at'] },
  { table: 'alerts', columns: ['acknowledged_at'] },
  { table: 'audit_log', columns: ['at'] },
  { table: 'activity', columns: ['at', 'first_at', 'last_at'], rows: `type <> 'CHECK'` },
]

/** Returns an SQL expression for the moved value of a column. */
function moved(column: string): string {
  return `coalesce((select ${column} + (s.target - s.started) from shifts s where ${column} >= s.started and ${column} < s.ended), ${column})`
}

const SHIFTS =
  'with shifts as (select * from unnest($2::timestamptz[], $3::timestamptz[], $4::timestamptz[]) as s (started, ended, target))'

/** Sets the creation and update times of a row to `atMs` if the stored creation time is later. */
export async function backDateRow(
  client: DatabaseClient,
  table: 'products' | 'customers' | 'licenses',
  id: string,
  atMs: number,
): Promise<void> {
  await client.query(`update ${table} set created_at = $2, updated_at = $2 where id = $1 and created_at > $2`, [
    id,
    new Date(atMs),
  ])
}

/** Moves the times of the organization's rows. Deletes changes in the activity feed that would be more than `keepDays` days old. */
export async function backDate(
  client: DatabaseClient,
  organizationId: string,
  shifts: readonly Shift[],
  keepDays: number,
): Promise<void> {
  const { rows } = await client.query<{ now: Date }>('select clock_timestamp() as now')
  const ends = [...shifts.slice(1).map(({ startedAt }) => startedAt), rows[0]!.now]
  const values = [
    organizationId,
    shifts.map(({ startedAt }) => startedAt),
    ends,
    shifts.map(({ atMs }) => new Date(atMs)),
  ]
  const oldest = new Date(Date.now() - keepDays * DAY_MS)
  await client.query('begin')
  await client.query(
    `${SHIFTS} delete from activity where organization_id = $1 and type <> 'CHECK' and ${moved('at')} < $5`,
    [...values, oldest],
  )
  await client.query(
    `select ensure_partition('activity', at) from generate_series($1, now(), interval '1 day') as at`,
    [oldest],
  )
  for (const { table, columns, rows: condition = 'true' } of COLUMNS)
    await client.query(
      `${SHIFTS} update ${table} set ${columns.map((column) => `${column} = ${moved(column)}`).join(', ')}
       where organization_id = $1 and ${condition}`,
      values,
    )
  await client.query(
    `update machines m set last_seen_at = greatest(m.first_seen_at, c.last_at)
     from (select license_id, machine_id, max(last_at) as last_at from activity
       where organization_id = $1 and type = 'CHECK' group by 1, 2) c
     where m.organization_id = $1 and m.license_id = c.license_id and m.machine_id = c.machine_id`,
    [organizationId],
  )
  // The update of `activity` has fired its triggers, which have stored each occurrence again.
  await client.query(`delete from occurrences where xid = pg_current_xact_id()`)
  await client.query('commit')
}

/**
 * Reads the changes that became visible after a snapshot, without gaps or duplicates, and without waiting for open
 * transactions (docs/api.md#p1). One statement with one snapshot reads the log, the changed rows and the new snapshot, so they are
 * consistent.
 */

import type pg from 'pg'

import { bytesToUuid } from '../ids.ts'
import { type Column, columnsOf } from './columns.ts'
import { RowDecoder } from './copy-decoder.ts'
import { ENTITIES, type FeedChange, type Id, MACHINE_LETTER, readChangedMachine } from './entities.ts'

export interface FeedReading {
  /** The text of a `pg_snapshot`, for the next read. */
  readonly snapshot: string
  /**
   * Whether everything must be loaded again, because the changes after the given snapshot were pruned, belong to another history or are too
   * many. `changes` and `large` are then empty.
   */
  readonly behind: boolean
  /**
   * The organizations to read separately (`readLargeChange`), because there are too many changes for one read. If there
   * are any, `changes` is empty.
   */
  readonly large: readonly Id[]
  readonly changes: FeedChange[]
  /** The number of reloads that have been requested (`void_change_log`). */
  readonly reloads: number
}

/** A row, or a machine of a license, to read even if the log does not contain it. */
export interface RowId {
  readonly entity: FeedChange['entity']
  /** The id of the row, or of the machine's license. */
  readonly id: Id
  readonly machineId: Uint8Array | null
}

export interface FeedReadOptions {
  /** The organizations whose changes are read separately. */
  readonly except?: readonly Id[]
  /** Rows to read in addition to the changed ones. */
  readonly also?: readonly RowId[]
  /** The maximum number of changes in the result, MAX_CHANGES by default. */
  readonly maxChanges?: number
}

/**
 * The maximum number of changes in one read. If there are more changes, a read returns the organizations with the most changes
 * instead.
 */
export const MAX_CHANGES = 20_000

/** A read examines at most this number of log entries per change that it may return, because a row can have several entries. */
const ENTRIES_PER_CHANGE = 5

/** The maximum number of log entries from which `findLarge` selects organizations. */
const MAX_SAMPLED_ENTRIES = 200_000

/** The maximum number of organizations that are read separately. */
const MAX_LARGE = 100

/** The letter of the row that contains the new snapshot. */
const HEAD_LETTER = 'S'

/**
 * Returns the changes after `snapshot`: each changed row or machine once, in its current state. If `behind` is true in the result, the caller
 * must load everything again (`loadFeed`). Call `readFeed` on the primary, outside of a transaction.
 */
export async function readFeed(
  client: Pick<pg.ClientBase, 'query'>,
  snapshot: string,
  { except = [], also = [], maxChanges = MAX_CHANGES }: FeedReadOptions = {},
): Promise<FeedReading> {
  const organizations = except.map((id) => bytesToUuid(id))
  const values: unknown[] = [snapshot, maxChanges + 1, organizations, maxChanges * ENTRIES_PER_CHANGE + 1]
  const statement = also.length === 0 ? READ_FEED : READ_FEED_AND_ROWS
  if (also.length > 0) {
    values.push(
      also.map(({ entity }) => letterOf(entity)),
      also.map(({ id }) => bytesToUuid(id)),
      also.map(({ machineId }) => machineId && Buffer.from(machineId)),
    )
  }
  const { rows } = await client.query<LogRow>({ ...statement, values })
  const head = rows.find(({ letter }) => letter === HEAD_LETTER)
  if (!head?.snapshot) throw new Error('The change log has no state; migrate the database')
  const reading = {
    snapshot: head.snapshot,
    behind: head.behind === true,
    large: [],
    changes: [],
    reloads: Number(head.reloads),
  }
  if (reading.behind) return reading
  if (head.crowded === true) {
    const large = await findLarge(client, { snapshot, maxChanges, organizations })
    return { ...reading, behind: large.length === 0, large }
  }
  return { ...reading, changes: readRows(rows) }
}

function letterOf(entity: FeedChange['entity']): string {
  return ENTITIES.find(({ name }) => name === entity)?.letter ?? MACHINE_LETTER
}

/**
 * Returns the organizations with the most changes, at most MAX_LARGE. Stops when the changes of all other organizations fill at most half
 * of a read. Returns an empty list if those changes do not fit into one read. Only the first MAX_SAMPLED_ENTRIES entries are examined. If
 * there are more entries, a later read finds their organizations.
 */
async function findLarge(
  client: Pick<pg.ClientBase, 'query'>,
  { snapshot, maxChanges, organizations }: { snapshot: string; maxChanges: number; organizations: readonly string[] },
): Promise<Id[]> {
  const { rows } = await client.query<{ id: Buffer | null; changes: number; unknown: boolean }>(
    `select uuid_send(organization_id) as id, count(*)::integer as changes, bool_or(entity <> 'M') as unknown
     from (select distinct * from changes_after($1::pg_snapshot, $2::uuid[], $3)) entries
     group by organization_id order by 2 desc`,
    [snapshot, organizations, MAX_SAMPLED_ENTRIES],
  )
  // Entries of an earlier version do not contain their organization.
  if (rows.some(({ id, unknown }) => id === null && unknown)) return []
  let rest = rows.reduce((sum, { id, changes }) => sum + (id === null ? 0 : changes), 0)
  const large: Id[] = []
  for (const { id, changes } of rows) {
    if (id === null) continue
    if (rest <= maxChanges / 2 || large.length === MAX_LARGE) break
    large.push(id)
    rest -= changes
  }
  return rest <= Math.max(maxChanges, MAX_CHANGES) ? large : []
}

/** Decodes rows of `branch`, and skips the head. */
export function readRows(rows: readonly LogRow[]): FeedChange[] {
  const decoder = new RowDecoder()
  const changes: FeedChange[] = []
  for (const row of rows) if (row.letter !== HEAD_LETTER) changes.push(toChange(row, decoder))
  return changes
}

export interface LogRow {
  readonly letter: string
  readonly id: Buffer
  /** The output of `record_send`: the entity's columns in binary. Null when the row was deleted. */
  readonly record: Buffer | null
  /** The new snapshot. This field and the fields below are set only in the head. */
  readonly snapshot: string | null
  readonly behind: boolean | null
  /** Whether there are more changes than fit into one read. */
  readonly crowded: boolean | null
  readonly reloads: number | string | null
}

const BY_LETTER = new Map(ENTITIES.map((entity) => [entity.letter, entity]))

function toChange({ letter, id, record }: LogRow, decoder: RowDecoder): FeedChange {
  if (record !== null) decoder.beginRecord(record)
  if (letter === MACHINE_LETTER) return readChangedMachine(decoder)
  const entity = BY_LETTER.get(letter)
  if (entity === undefined) throw new Error(`The change log has entries of an unknown kind (${letter})`)
  return record === null ? entity.gone(id) : entity.read(decoder)
}

function listOf(columns: readonly Column[]): string {
  return columns.map(({ sql }) => sql).join(', ')
}

/** The columns that only the head sets, as nulls for all other rows. */
const NO_HEAD = 'null as snapshot, null as behind, null as crowded, null as reloads'

/** Returns the query that selects the changed rows of an entity by id. `offset 0` prevents the planner from scanning a whole table. */
export function branch({ letter, table, from, where, columns }: (typeof ENTITIES)[number]): string {
  return `select changed.entity::text as letter, uuid_send(changed.id) as id, record_send(t) as record,
    ${NO_HEAD}
    from changed left join lateral (
      select ${listOf(columns)} from ${from} where ${table}.id = changed.id and ${where} offset 0) t on true
    where changed.entity = '${letter}'`
}

/** The query that selects the changed machines. */
export const MACHINES = `select changed.entity::text as letter, uuid_send(changed.id) as id,
    record_send(row(${listOf(columnsOf(readChangedMachine))})) as record, ${NO_HEAD}
    from changed where changed.entity = '${MACHINE_LETTER}'`

const ROWS = `
    union select * from unnest($5::"char"[], $6::uuid[], $7::bytea[]) where (select not behind from feed)`

/**
 * Returns the SQL text of a read. $1 is the snapshot of the last read, and $3 are the organizations that are read separately. $2 and $4 are
 * one more than the maximum numbers of changes and of log entries.
 */
const readFeedText = (more: string): string => `
  with feed as materialized (
    -- A snapshot that contains transactions that this server lacks is from another history, for example when the server is a restored copy.
    select pg_current_snapshot() as snapshot, reloads, not (snap_covers($1::pg_snapshot, gone)
      and snap_covers(pg_current_snapshot(), $1::pg_snapshot)) as behind
    from feed_state
  ), log as materialized (
    select entity, id, machine_id from changes_after($1::pg_snapshot, $3::uuid[], $4) where (select not behind from feed)
  ), entries as materialized (
    select distinct * from log
    ${more}
    limit $2
  ), size as materialized (
    select (select count(*) from log) >= $4 or (select count(*) from entries) >= $2 as is_crowded
  ), changed as materialized (
    -- No row is fetched when there are too many changes.
    select * from entries where (select not is_crowded from size)
  )
  select '${HEAD_LETTER}' as letter, null::bytea as id, null::bytea as record, snapshot::text, behind,
    (select is_crowded from size) as crowded, reloads from feed
  union all
  ${ENTITIES.map(branch).join('\n  union all\n  ')}
  union all
  ${MACHINES}`

const READ_FEED = { name: 'keyward-read-feed', text: readFeedText('') }
/** This statement is rare, so it is not prepared. */
const READ_FEED_AND_ROWS = { text: readFeedText(ROWS) }

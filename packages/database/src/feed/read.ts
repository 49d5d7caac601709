/**
 * Reads what became visible since a snapshot: no gap, no double, no waiting for transactions that are still open
 * (docs/api.md#p1). It is one statement and so one snapshot: the log, the changed rows and the new snapshot fit each other.
 */

import type pg from 'pg'

import { type Column, columnsOf } from './columns.ts'
import { RowDecoder } from './copy-decoder.ts'
import { ENTITIES, type FeedChange, MACHINE_LETTER, readChangedMachine } from './entities.ts'

export interface FeedReading {
  /** The text of a `pg_snapshot`, for the next read. */
  readonly snapshot: string
  /** The log does not reach back to the given snapshot, or contains so much that a load is faster. `changes` is empty then. */
  readonly behind: boolean
  readonly changes: FeedChange[]
}

/** A read that finds more changes reports `behind`. */
const MAX_CHANGES = 20_000

/** The letter of the row that carries the new snapshot. */
const HEAD_LETTER = 'S'

/**
 * Returns what changed after `snapshot`, each entity once, with its row as it is now. When `behind`, load everything again
 * (`loadFeed`). Run it on the primary, outside of a transaction.
 */
export async function readFeed(
  client: Pick<pg.ClientBase, 'query'>,
  snapshot: string,
  maxChanges: number = MAX_CHANGES,
): Promise<FeedReading> {
  const values = [snapshot, maxChanges + 1]
  const { rows } = await client.query<LogRow>({ name: 'keyward-read-feed', text: READ_FEED, values })
  const head = rows.find(({ letter }) => letter === HEAD_LETTER)
  if (!head?.snapshot) throw new Error('The change log has no state; migrate the database')
  if (head.behind === true || rows.length - 1 > maxChanges)
    return { snapshot: head.snapshot, behind: true, changes: [] }
  const decoder = new RowDecoder()
  const changes: FeedChange[] = []
  for (const row of rows) if (row !== head) changes.push(toChange(row, decoder))
  return { snapshot: head.snapshot, behind: false, changes }
}

interface LogRow {
  readonly letter: string
  readonly id: Buffer
  /** The output of `record_send`: the entity's columns in binary. Null when the row is gone. */
  readonly record: Buffer | null
  /** Of the head alone. */
  readonly snapshot: string | null
  readonly behind: boolean | null
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

/** Fetches the rows of one entity by their ids; `offset 0` keeps the planner from scanning a whole table for them. */
function branch({ letter, table, from, where, columns }: (typeof ENTITIES)[number]): string {
  return `select changed.entity::text, uuid_send(changed.id), record_send(t), null, null
    from changed left join lateral (
      select ${listOf(columns)} from ${from} where ${table}.id = changed.id and ${where} offset 0) t on true
    where changed.entity = '${letter}'`
}

/** $1: the snapshot of the last read; $2: how many changes are fetched at most. */
const READ_FEED = `
  with feed as materialized (
    -- A snapshot that knows more than the server does is of another history: of a restored copy, for example.
    select pg_current_snapshot() as snapshot, not (snap_covers($1::pg_snapshot, pruned)
      and snap_covers(pg_current_snapshot(), $1::pg_snapshot)) as behind
    from feed_state
  ), changed as materialized (
    select entity, id, machine_id from changed_since($1::pg_snapshot) where (select not behind from feed)
    limit $2
  )
  select '${HEAD_LETTER}' as letter, null::bytea as id, null::bytea as record, snapshot::text, behind from feed
  union all
  ${ENTITIES.map(branch).join('\n  union all\n  ')}
  union all
  select changed.entity::text, uuid_send(changed.id), record_send(row(${listOf(columnsOf(readChangedMachine))})), null, null
  from changed where changed.entity = '${MACHINE_LETTER}'`

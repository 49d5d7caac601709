/**
 * Implements keyset pagination (docs/api.md#m1). A list begins with the newest row, unless it is sorted by a value. The cursor contains the
 * position of the last row of a page. Inserts and deletes between two pages therefore neither repeat nor skip a row, and every page costs
 * the same. A cursor is valid only for its own list and organization.
 */

import { createHash } from 'node:crypto'

import { isDataRejected } from '@keyward/database'
import { type RawBuilder, type SelectQueryBuilder, type Simplify, sql } from 'kysely'

import type { Db } from '../context.ts'
import { type ApiError, invalid } from './problem.ts'

const ID_BYTES = 16
const SEAL_BYTES = 8

export interface PageQuery {
  limit: number
  cursor?: string | undefined
}

/** Identifies a list. A cursor of one list is invalid for every other list. */
export interface List {
  name: string
  organizationId: string
}

/** The position of a row in a list. `key` is the text of the value by which the list is sorted, or '' when it is sorted by id only. */
export interface Place {
  id: string
  key: string
}

function seal(list: List, id: Uint8Array, key: Uint8Array): Buffer {
  return createHash('sha256')
    .update(`${list.name}\n${list.organizationId}\n`)
    .update(id)
    .update(key)
    .digest()
    .subarray(0, SEAL_BYTES)
}

export function encodeCursor(list: List, id: string, key = ''): string {
  const idBytes = Buffer.from(id.replaceAll('-', ''), 'hex')
  const keyBytes = Buffer.from(key)
  return Buffer.concat([idBytes, seal(list, idBytes, keyBytes), keyBytes]).toString('base64url')
}

function invalidCursor(): ApiError {
  return invalid('?cursor', 'must be the `nextCursor` of a page of this list')
}

/** Returns the place after which the page begins. Throws INVALID_REQUEST unless the cursor belongs to this list. */
function decodeCursor(list: List, cursor: string): Place {
  const bytes = Buffer.from(cursor, 'base64url')
  const id = bytes.subarray(0, ID_BYTES)
  const key = bytes.subarray(ID_BYTES + SEAL_BYTES)
  // The bytes are encoded again for the comparison, because the decoder skips characters that are not base64.
  const intact = bytes.length >= ID_BYTES + SEAL_BYTES && bytes.toString('base64url') === cursor
  if (!intact || !bytes.subarray(ID_BYTES, ID_BYTES + SEAL_BYTES).equals(seal(list, id, key))) throw invalidCursor()
  const hex = id.toString('hex')
  return { id: hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'), key: key.toString() }
}

export interface Page<Item> {
  /** The items in the order of the list. */
  data: Item[]
  /** The cursor of the next page, or null on the last page. */
  nextCursor: string | null
  /** The number of items on all pages, if the request contains `total`. */
  total?: number
}

/** Returns the number of rows of the rest of a `select` statement, such as `licenses where …`. */
export async function countOf(db: Db, from: RawBuilder<unknown>): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*)::integer as count from ${from}`.execute(db)
  return rows[0]?.count ?? 0
}

/** Returns one page. `read` returns up to `count` rows with ids below `after` (null: from the start), in descending order of id. */
export async function listPage<Row extends { id: string }, Item>(
  list: List,
  { limit, cursor }: PageQuery,
  show: (row: Row) => Item,
  read: (after: string | null, count: number) => Promise<readonly Row[]>,
): Promise<Page<Item>> {
  return sortedPage(list, { limit, cursor }, show, async (after, count) => {
    const rows = await read(after?.id ?? null, count)
    return rows.map((row) => ({ row, place: { id: row.id, key: '' } }))
  })
}

/**
 * Returns one page of a list that is sorted by a value, then by id. `read` returns up to `count` rows after a place (null: from the start).
 * A row whose value changes between two pages may be on both pages or on neither. A row that was deleted after its place was read is null.
 */
export async function sortedPage<Row, Item>(
  list: List,
  { limit, cursor }: PageQuery,
  show: (row: Row) => Item,
  read: (after: Place | null, count: number) => Promise<readonly { row: Row | null; place: Place }[]>,
): Promise<Page<Item>> {
  // Reads one row more than the page has, to determine whether a next page exists.
  const after = cursor === undefined ? null : decodeCursor(list, cursor)
  // A caller can compute the seal of an invented place. Postgres rejects a key that is no value of the list.
  const rows = await read(after, limit + 1).catch((error: unknown) => {
    throw after !== null && isDataRejected(error) ? invalidCursor() : error
  })
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    data: shown.flatMap(({ row }) => (row === null ? [] : [show(row)])),
    nextCursor: rows.length > limit && last ? encodeCursor(list, last.place.id, last.place.key) : null,
  }
}

/** Returns one page of the rows of `select`. `idColumn` orders the list; a select with joins must qualify it, as in `licenses.id`. */
export async function selectPage<DB, Table extends keyof DB, Row extends { id: string }, Item>(
  list: List,
  query: PageQuery,
  select: SelectQueryBuilder<DB, Table, Row>,
  show: (row: Simplify<Row>) => Item,
  idColumn = 'id',
): Promise<Page<Item>> {
  const id = sql.ref(idColumn)
  return listPage(list, query, show, (after, count) => {
    const rest = after === null ? select : select.where(sql<boolean>`${id} < ${after}`)
    return rest.orderBy(id, 'desc').limit(count).execute()
  })
}

/** Returns the smallest UUID of version 7 for a time in milliseconds since 1970. */
export function firstIdAt(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

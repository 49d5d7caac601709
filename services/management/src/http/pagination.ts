/**
 * Keyset pages, newest first: the cursor is the id of the last row seen, so that inserts and deletes move nothing and every page
 * costs the same. A cursor is bound to its list and organization; anywhere else it is refused like a made-up one.
 */
import { createHash } from 'node:crypto'

import { type SelectQueryBuilder, type Simplify, sql } from 'kysely'

import { invalid } from './problem.ts'

const idBytes = 16
const sealBytes = 8

/** What a list is asked for. */
export interface PageQuery {
  limit: number
  cursor?: string | undefined
}

/** A list is named by its path; an organization's lists are its own. */
export interface List {
  name: string
  organizationId: string
}

function seal(list: List, id: Uint8Array): Buffer {
  return createHash('sha256')
    .update(`${list.name}\n${list.organizationId}\n`)
    .update(id)
    .digest()
    .subarray(0, sealBytes)
}

export function encodeCursor(list: List, id: string): string {
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex')
  return Buffer.concat([bytes, seal(list, bytes)]).toString('base64url')
}

/** The id after which the page begins. Refuses with 422. */
function decodeCursor(list: List, cursor: string): string {
  const bytes = Buffer.from(cursor, 'base64url')
  const id = bytes.subarray(0, idBytes)
  // Written anew, since decoding passes over what is no base64.
  const intact = bytes.length === idBytes + sealBytes && bytes.toString('base64url') === cursor
  if (!intact || !bytes.subarray(idBytes).equals(seal(list, id)))
    throw invalid('?cursor', 'is not a cursor of this list')
  return id.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Reads one page of what `select` finds. A select that joins names the table whose ids order the list: `licenses.id`. */
export async function readPage<DB, Table extends keyof DB, Row extends { id: string }, Item>(
  list: List,
  { limit, cursor }: PageQuery,
  select: SelectQueryBuilder<DB, Table, Row>,
  show: (row: Simplify<Row>) => Item,
  idColumn = 'id',
): Promise<{ data: Item[]; nextCursor: string | null }> {
  const id = sql.ref(idColumn)
  const rest = cursor === undefined ? select : select.where(sql<boolean>`${id} < ${decodeCursor(list, cursor)}`)
  const rows = await rest
    .orderBy(id, 'desc')
    .limit(limit + 1) // one too many tells whether there is a next page
    .execute()
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    data: shown.map(show),
    nextCursor: rows.length > limit && last ? encodeCursor(list, last.id) : null,
  }
}

/**
 * Streams the items of a list as a file (docs/api.md#m19). One page is in memory at a time, and the next one is read when the caller has
 * received the last one.
 */

import { writeCell } from '@keyward/contract/text'

import { runInside } from '../admission/fair-gate.ts'
import { shareOf } from '../admission/gates.ts'
import { audit } from '../audit/writer.ts'
import type { WriteContext } from '../context.ts'
import type { Page, PageQuery } from '../http/pagination.ts'
import { Streamed } from '../http/response.ts'
import type { Dependencies } from '../operations/dependencies.ts'
import { requireBytes } from '../quotas/quotas.ts'

const PAGE_ROWS = 500
const TYPES = { csv: 'text/csv', json: 'application/json', jsonl: 'application/x-ndjson' }

export interface ExportCall extends WriteContext {
  dependencies: Dependencies
  headers: Record<string, string>
  isHead: boolean
}

interface File {
  /** The name without its ending. */
  name: string
  format: keyof typeof TYPES
  /** The type of the exported resources, for the audit entry. */
  resourceType: string
  filter: object
}

/** Runs the read of a page. */
export type ReadPage = <Result>(read: () => Promise<Result>) => Promise<Result>

function cellOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number') return String(value)
  const text = writeCell(typeof value === 'string' ? value : JSON.stringify(value))
  return /[",;\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export function csvRow(cells: readonly unknown[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`
}

/**
 * Returns the response with the chunks of a file, after the audit entry has been written. Each page is a separate read, which waits for its
 * share of the connections. Throws RATE_LIMITED when too many exports of the organization run.
 */
export async function streamFile(
  { dependencies, db: _readDb, headers, isHead, ...context }: ExportCall,
  { name, format, resourceType, filter }: File,
  chunksOf: (read: ReadPage) => AsyncIterable<string>,
): Promise<Streamed> {
  const { gates } = dependencies
  const share = shareOf({ kind: 'vendor', organizationId: context.organizationId })
  const leave = await gates.exports.enter(share)
  const write = () =>
    dependencies.transaction(async (db) => {
      await requireBytes({ ...context, db }, false)
      const action = `${resourceType}.exported`
      await audit({ ...context, db }, { action, resourceType, resourceId: null, changes: { format, ...filter } })
    })
  try {
    if (!isHead) await runInside(gates.writes, share, write)
  } catch (error) {
    leave()
    throw error
  }
  headers['content-type'] = `${TYPES[format]}; charset=utf-8`
  headers['content-disposition'] = `attachment; filename="${name}.${format}"`
  return new Streamed(
    chunksOf((read) => runInside(gates.reads, share, read)),
    leave,
  )
}

/** The columns of a file in CSV, each with the value of an item. */
export type Columns<Item> = Readonly<Record<string, (item: Item) => unknown>>

/** Returns columns that have the names of members of the items. */
export function columnsOf<Item>(...names: (keyof Item & string)[]): Columns<Item> {
  return Object.fromEntries(names.map((name) => [name, (item: Item) => item[name]]))
}

/** Streams all items that a filter selects, in the order of their list. In JSON lines, an item is as in the list. */
export function exportList<Item extends object>(
  call: ExportCall & { query: { format: 'csv' | 'jsonl' } },
  { name, resourceType, columns }: { name: string; resourceType: string; columns: Columns<Item> },
  list: (query: PageQuery) => Promise<Page<Item>>,
): Promise<Streamed> {
  const { format, ...filter } = call.query
  const pick = Object.values(columns)
  const row = (item: Item): string =>
    format === 'csv' ? csvRow(pick.map((value) => value(item))) : `${JSON.stringify(item)}\n`
  return streamFile(call, { name, format, resourceType, filter }, async function* chunks(read) {
    if (format === 'csv') yield csvRow(Object.keys(columns))
    let cursor: string | undefined
    do {
      const page = await read(() => list({ limit: PAGE_ROWS, cursor }))
      yield page.data.map(row).join('')
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
  })
}

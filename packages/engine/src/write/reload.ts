/**
 * Reconciles the index with a full load, by mark and sweep: every row that the load contains gets the new mark, and at the end the rows
 * with the old mark are removed. A row of the load that equals the row in the index is only marked, which does not affect readers. A row
 * that differs is stored separately until the end. So readers see the old state until the whole load has arrived, and memory never contains
 * a second index.
 */

import { writeBytes } from '../memory/bits.ts'
import {
  ID,
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
} from '../memory/layout.ts'
import type { Change, LicenseRecord, MachineChange } from '../model.ts'
import { KINDS, nameOf } from './placement.ts'
import type { RowWriter } from './row-writer.ts'
import { SECTION_LIMITS } from './section-order.ts'

/** The order of removal: rows come before the rows that they refer to. */
const SWEEP_ORDER = [KIND_RULE, KIND_LICENSE, KIND_CREDENTIAL, KIND_CUSTOMER, KIND_PRODUCT, KIND_ORGANIZATION]
const ROW_ENTITIES = ['organization', 'credential', 'product', 'customer', 'license', 'rule'] as const

/** Removes a row. Returns null, or the reason why the row cannot be removed. */
type RowRemover = (kind: number, row: number) => string | null

/** Sets the mark of every row and machine, for a reload that starts over. */
export function markAll(rows: RowWriter, mark: number): void {
  for (const kind of SWEEP_ORDER) {
    for (let row = 1; row <= rows.store.lookup.slab(kind).highest; row++) {
      if (rows.isLive(kind, row)) rows.setMark(kind, row, mark)
    }
  }
  const { machines } = rows.store
  for (let bucket = 0; bucket < machines.table.buckets; bucket++) {
    machines.table.forEachIn(bucket, (position) => machines.setMarkAt(position, mark))
  }
}

/** The differences that a reload has found so far. They are not written to the index yet. */
export class Differences {
  readonly unmarked = new Unmarked()
  readonly #changes: Change[] = []
  /** The rows and machines that were written since the reload began. The load's copies of them are older. */
  readonly #written = new Set<string>()
  readonly #removedLicenses = new Set<string>()

  get size(): number {
    return this.#changes.length
  }

  /** Stores a copy of a row of the load that differs from the index. The copy does not retain the load's buffer. */
  add(change: Change): void {
    this.#changes.push(copyOf(change))
  }

  /** Records a change that was applied to the index since the reload began. */
  noteWritten(change: Change): void {
    this.#written.add(keyOf(change))
    if (change.entity === 'license') {
      if (change.row === null) this.#removedLicenses.add(nameOf(change.id))
      else this.#removedLicenses.delete(nameOf(change.id))
    }
    if (change.entity === 'machine' && change.used !== null) this.#written.add(usedKey(change.licenseId))
  }

  /** Returns whether the row or machine was written since the reload began. */
  isWritten(change: Change): boolean {
    return this.#written.has(keyOf(change))
  }

  /** The number of rows and machines that were written since the reload began. */
  get written(): number {
    return this.#written.size
  }

  /**
   * Returns the rows of the load to write. `usedOf` returns the number of slots that the index counts for a license, or -1 for an unknown
   * license.
   */
  *toWrite(usedOf: (id: Uint8Array) => number): Generator<Change> {
    for (const change of this.#changes) {
      if (this.#written.has(keyOf(change))) continue
      if (change.entity === 'license' && change.row !== null && this.#written.has(usedKey(change.id))) {
        yield { ...change, row: withUsed(change.row, usedOf(change.id)) }
      } else if (!this.#isOfRemovedLicense(change, usedOf)) yield change
    }
  }

  /** Returns whether the change is a machine of a license that was removed since the reload began. */
  #isOfRemovedLicense(change: Change, usedOf: (id: Uint8Array) => number): boolean {
    if (change.entity !== 'machine' || usedOf(change.licenseId) >= 0) return false
    return this.#removedLicenses.has(nameOf(change.licenseId))
  }
}

function withUsed(row: LicenseRecord, used: number): LicenseRecord {
  return used < 0 ? row : { ...row, used }
}

function usedKey(licenseId: Uint8Array): string {
  return `used${nameOf(licenseId)}`
}

function keyOf(change: Change): string {
  if (change.entity !== 'machine') return change.entity + nameOf(change.id)
  return change.entity + nameOf(change.licenseId) + nameOf(change.machineId)
}

/** Returns a copy of a change, with a separate buffer for each of its byte strings. */
function copyOf(change: Change): Change {
  const copy: Change = { ...change }
  copyBytes(copy)
  if (copy.entity !== 'machine' && copy.row !== null) {
    const row = { ...copy.row }
    copyBytes(row)
    Object.assign(copy, { row })
  }
  return copy
}

function copyBytes(row: object): void {
  for (const [field, value] of Object.entries(row)) {
    if (value instanceof Uint8Array) Object.assign(row, { [field]: Uint8Array.from(value) })
  }
}

/**
 * Searches the index for rows and machines without the current mark. Rows written meanwhile get the mark, and marked rows keep it, so one
 * search may take several calls.
 */
class Unmarked {
  /** The buckets that contained a machine without the mark. */
  readonly buckets: number[] = []
  readonly #rows: { entity: (typeof ROW_ENTITIES)[number]; row: number }[] = []
  /** The next table to search, as an index of ROW_ENTITIES. The machines come after the last entity. */
  #table = 0
  /** The next row or bucket of the table. */
  #next = 1

  /** Searches at most `count` rows and buckets. Returns whether the search has ended. */
  search(rows: RowWriter, count: number): boolean {
    let left = count
    for (; this.#table < ROW_ENTITIES.length && left > 0; left -= this.#searchTable(rows, left));
    if (this.#table < ROW_ENTITIES.length) return false
    const { machines } = rows.store
    const isUnmarked = (position: number): boolean => machines.markAt(position) !== rows.mark
    for (; this.#next < machines.table.buckets && left > 0; this.#next++, left--) {
      if (machines.table.some(this.#next, isUnmarked)) this.buckets.push(this.#next)
    }
    return this.#next >= machines.table.buckets
  }

  /** Returns a removal for each row that the search found and that still does not have the mark. */
  removals(rows: RowWriter): Exclude<Change, MachineChange>[] {
    const removals: Exclude<Change, MachineChange>[] = []
    for (const { entity, row } of this.#rows) {
      const kind = KINDS[entity]
      if (!isUnmarkedRow(rows, kind, row)) continue
      const { region, rowWords } = rows.store.lookup.slab(kind)
      const id = new Uint8Array(16)
      writeBytes(region, row * rowWords + ID, 4, id)
      // A rule that a change in pages keeps in force cannot be found by its id. It must stay.
      if (rows.store.lookup.findId(kind, id) === row) removals.push({ entity, id, row: null })
    }
    return removals
  }

  /** Searches the next rows of the current table, at most `count`. Returns the number of rows searched, at least 1. */
  #searchTable(rows: RowWriter, count: number): number {
    const entity = ROW_ENTITIES[this.#table]!
    const from = this.#next
    const to = Math.min(rows.store.lookup.slab(KINDS[entity]).highest + 1, from + count)
    for (let row = from; row < to; row++) if (isUnmarkedRow(rows, KINDS[entity], row)) this.#rows.push({ entity, row })
    const isAtEnd = to > rows.store.lookup.slab(KINDS[entity]).highest
    if (isAtEnd) this.#table++
    // The first row is 1, and the first bucket is 0.
    this.#next = isAtEnd ? (this.#table === ROW_ENTITIES.length ? 0 : 1) : to
    return Math.max(1, to - from)
  }
}

function isUnmarkedRow(rows: RowWriter, kind: number, row: number): boolean {
  return rows.isLive(kind, row) && rows.markOf(kind, row) !== rows.mark
}

/** Removes rows and machines that do not have the current mark, in write sections that `section` runs. */
export function sweep(rows: RowWriter, remove: RowRemover, section: (write: () => void) => void): void {
  sweepMachines(rows, section)
  for (const kind of SWEEP_ORDER) sweepKind(rows, kind, remove, section)
}

function sweepKind(rows: RowWriter, kind: number, remove: RowRemover, section: (write: () => void) => void): void {
  const { highest } = rows.store.lookup.slab(kind)
  let stale: number[] = []
  const flush = (): void => {
    if (stale.length > 0) section(() => stale.forEach((row) => remove(kind, row)))
    stale = []
  }
  for (let row = 1; row <= highest; row++) {
    if (!rows.isLive(kind, row) || rows.markOf(kind, row) === rows.mark) continue
    stale.push(row)
    if (stale.length === SECTION_LIMITS.rows) flush()
  }
  flush()
}

function sweepMachines(rows: RowWriter, section: (write: () => void) => void): void {
  const unmarked = new Unmarked()
  unmarked.search(rows, Infinity)
  const { buckets } = unmarked
  for (let from = 0; from < buckets.length; from += SECTION_LIMITS.rows) {
    section(() => removeUnmarkedMachines(rows, buckets.slice(from, from + SECTION_LIMITS.rows)))
  }
}

/** Removes the machines without the current mark from the buckets. */
export function removeUnmarkedMachines({ store: { machines }, mark }: RowWriter, buckets: readonly number[]): void {
  for (const bucket of buckets) machines.table.removeWhere(bucket, (position) => machines.markAt(position) !== mark)
}

/**
 * Reconciles the index with a full load, in place, by mark and sweep: the load is applied over the present rows, every
 * row that it contains gets the new mark, and at the end the rows with the old mark are removed. Readers go on
 * meanwhile, first with old rows beside the new, and there is never a second index in memory.
 */

import {
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
} from '../memory/layout.ts'
import type { RowWriter } from './row-writer.ts'
import { SECTION_ROWS } from './section-order.ts'

/** Rows before those that they refer to. */
const SWEEP_ORDER = [KIND_RULE, KIND_LICENSE, KIND_CREDENTIAL, KIND_CUSTOMER, KIND_PRODUCT, KIND_ORGANIZATION]
/** The buckets that one write section sweeps. */
const SECTION_BUCKETS = 4096

/** Removes a row, and returns the reason when it cannot. */
export type RowRemover = (kind: number, row: number) => string | null

/** Sets the mark of every row and machine. A reload that starts over needs it. */
export function markAll(rows: RowWriter, mark: number): void {
  for (const kind of SWEEP_ORDER) {
    for (let row = 1; row <= rows.store.lookup.slab(kind).highest; row++) {
      if (rows.isLive(kind, row)) rows.setMark(kind, row, mark)
    }
  }
  const { machines } = rows.store
  for (let bucket = 0; bucket < machines.table.buckets; bucket++) {
    machines.table.removeWhere(bucket, (position) => {
      machines.setMarkAt(position, mark)
      return false
    })
  }
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
    if (stale.length === SECTION_ROWS) flush()
  }
  flush()
}

function sweepMachines(rows: RowWriter, section: (write: () => void) => void): void {
  const { machines } = rows.store
  const isStale = (position: number): boolean => machines.markAt(position) !== rows.mark
  for (let from = 0; from < machines.table.buckets; from += SECTION_BUCKETS) {
    const to = Math.min(from + SECTION_BUCKETS, machines.table.buckets)
    section(() => {
      for (let bucket = from; bucket < to; bucket++) machines.table.removeWhere(bucket, isStale)
    })
  }
}

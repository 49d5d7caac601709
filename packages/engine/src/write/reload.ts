import {
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
} from '../memory/layout.ts'
import type { RowWriter } from './row-writer.ts'
/**
 * Reconciling the index with a full load, in place: the load is applied over what is there, every row that it tells of
 * gets the new stamp, and at the end what still bears the old one goes. Readers go on all along, first with the old
 * rows beside the new, and no second index is ever in memory.
 */
import { SECTION_ROWS } from './section-order.ts'

/** Children before what they hang on. */
const SWEEP_ORDER = [KIND_RULE, KIND_LICENSE, KIND_CREDENTIAL, KIND_CUSTOMER, KIND_PRODUCT, KIND_ORGANIZATION]
/** Buckets looked through in one write section. */
const SECTION_BUCKETS = 4096

export type RowRemover = (kind: number, row: number) => string | null

/** Gives every row and machine the stamp: for a reload that was given up before its end. */
export function stampAll(rows: RowWriter, stamp: number): void {
  for (const kind of SWEEP_ORDER) {
    for (let row = 1; row <= rows.store.directory.arena(kind).highest; row++) {
      if (rows.isLive(kind, row)) rows.setStamp(kind, row, stamp)
    }
  }
  const { machines } = rows.store
  for (let bucket = 0; bucket < machines.table.buckets; bucket++) {
    machines.table.removeWhere(bucket, (position) => {
      machines.setStampAt(position, stamp)
      return false
    })
  }
}

/** Removes what does not bear the current stamp, in sections that `section` runs. */
export function sweep(rows: RowWriter, remove: RowRemover, section: (write: () => void) => void): void {
  sweepMachines(rows, section)
  for (const kind of SWEEP_ORDER) sweepKind(rows, kind, remove, section)
}

function sweepKind(rows: RowWriter, kind: number, remove: RowRemover, section: (write: () => void) => void): void {
  const { highest } = rows.store.directory.arena(kind)
  let stale: number[] = []
  const flush = (): void => {
    if (stale.length > 0) section(() => stale.forEach((row) => remove(kind, row)))
    stale = []
  }
  for (let row = 1; row <= highest; row++) {
    if (!rows.isLive(kind, row) || rows.stampOf(kind, row) === rows.stamp) continue
    stale.push(row)
    if (stale.length === SECTION_ROWS) flush()
  }
  flush()
}

function sweepMachines(rows: RowWriter, section: (write: () => void) => void): void {
  const { machines } = rows.store
  const isStale = (position: number): boolean => machines.stampAt(position) !== rows.stamp
  for (let from = 0; from < machines.table.buckets; from += SECTION_BUCKETS) {
    const to = Math.min(from + SECTION_BUCKETS, machines.table.buckets)
    section(() => {
      for (let bucket = from; bucket < to; bucket++) machines.table.removeWhere(bucket, isStale)
    })
  }
}

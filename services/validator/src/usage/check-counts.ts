/**
 * Counts the checks of each product in each hour, and the checks with unknown keys of each organization (docs/api.md#d2). The counts are in
 * typed arrays, because objects for tens of thousands of products would be allocated anew for each flush.
 */

import type { RecordBatch } from '@keyward/database'
import { toHex } from '@keyward/database/ids'
import { CODES, type IndexReader } from '@keyward/engine'

import { FairShare } from '../shared/fair-share.ts'
import { RowTable } from '../shared/row-table.ts'
import type { RecordView } from './ring.ts'

type Checks = RecordBatch['checks'][number]

const ID_BYTES = 16

export class CheckCounts {
  readonly #reader: Pick<IndexReader, 'organizationId' | 'productId'>
  readonly #share: FairShare
  /** The current entry plus one, by the product's row, and for unknown keys by the organization's row. */
  readonly #ofProduct = new RowTable()
  readonly #ofOrganization = new RowTable()
  #size = 0
  /** Whether a row has several entries, for several hours or products. The hours may alternate, because workers are not in step. */
  #hasReplaced = false
  // The columns of the entries.
  readonly #generations: Int32Array
  readonly #hoursMs: Float64Array
  readonly #organizationIds: Uint8Array
  /** The ids of the products. An entry of unknown keys has none. */
  readonly #productIds: Uint8Array
  readonly #isKnown: Uint8Array
  /** The counts of an entry, by the engine's number of the code. */
  readonly #counts: Int32Array

  constructor(reader: Pick<IndexReader, 'organizationId' | 'productId'>, capacity: number) {
    this.#reader = reader
    this.#share = new FairShare(capacity)
    this.#generations = new Int32Array(capacity)
    this.#hoursMs = new Float64Array(capacity)
    this.#organizationIds = new Uint8Array(capacity * ID_BYTES)
    this.#productIds = new Uint8Array(capacity * ID_BYTES)
    this.#isKnown = new Uint8Array(capacity)
    this.#counts = new Int32Array(capacity * CODES.length)
  }

  get size(): number {
    return this.#size
  }

  /** Counts a check. Returns false if there is no capacity. A check of a product that has been deleted since is ignored. */
  add(record: RecordView, hourMs: number): boolean {
    const isKnown = record.license >= 0
    const entries = isKnown ? this.#ofProduct : this.#ofOrganization
    const row = isKnown ? record.product : record.organization
    const generation = isKnown ? record.productGeneration : 0
    let entry = entries.get(row) - 1
    if (entry < 0 || this.#generations[entry] !== generation || this.#hoursMs[entry] !== hourMs) {
      entry = this.#size
      const from = entry * ID_BYTES
      // The rows of the ids are rarely in the processor's cache, so a check without capacity does not read them.
      if (!this.#share.take(record.organization)) return false
      const organizationId = this.#organizationIds.subarray(from, from + ID_BYTES)
      const productId = this.#productIds.subarray(from, from + ID_BYTES)
      const isOwned = this.#reader.organizationId(record.organization, organizationId)
      if (!isOwned || (isKnown && !this.#reader.productId(row, generation, productId))) {
        this.#share.release(record.organization)
        return true
      }
      this.#hasReplaced ||= entries.get(row) !== 0
      this.#size++
      entries.set(row, entry + 1)
      this.#generations[entry] = generation
      this.#hoursMs[entry] = hourMs
      this.#isKnown[entry] = isKnown ? 1 : 0
    }
    const at = entry * CODES.length + record.code
    this.#counts[at] = this.#counts[at]! + 1
    return true
  }

  /** Returns one row for each hour, organization, product and code, and removes all counts. */
  take(): Checks[] {
    const rows = Array.from({ length: this.#size }, (_, entry) => this.#rowsOf(entry)).flat()
    const distinct = this.#hasReplaced ? sum(rows) : rows
    this.#hasReplaced = false
    this.#counts.fill(0, 0, this.#size * CODES.length)
    this.#size = 0
    this.#ofProduct.clear()
    this.#ofOrganization.clear()
    this.#share.clear()
    return distinct
  }

  #rowsOf(entry: number): Checks[] {
    const hourMs = this.#hoursMs[entry]!
    const from = entry * ID_BYTES
    const organizationId = this.#organizationIds.slice(from, from + ID_BYTES)
    const productId = this.#isKnown[entry] === 1 ? this.#productIds.slice(from, from + ID_BYTES) : null
    const rows: Checks[] = []
    for (let code = 0; code < CODES.length; code++) {
      const count = this.#counts[entry * CODES.length + code]!
      if (count > 0) rows.push({ hourMs, organizationId, productId, code: CODES[code]!, count })
    }
    return rows
  }
}

/** Adds the counts of rows with the same hour, owner and code. */
function sum(rows: readonly Checks[]): Checks[] {
  const keyOf = ({ hourMs, organizationId, productId, code }: Checks): string =>
    `${hourMs}/${toHex(organizationId)}/${productId === null ? '' : toHex(productId)}/${code}`
  return Array.from(Map.groupBy(rows, keyOf).values(), (same) => {
    return { ...same[0]!, count: same.reduce((total, { count }) => total + count, 0) }
  })
}

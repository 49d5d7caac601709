/**
 * The entitlements of a license as JSON, for checks that ask for them (docs/api.md#v13). The index holds those of the product
 * and those of the license apart, so a change of a product applies to all of its licenses at once. They are merged here.
 */

import { effectiveEntitlements } from '@keyward/contract/entitlements'
import { createEntitlementsView, type EntitlementsView, type IndexReader } from '@keyward/engine'

/** The most merged entitlements that a worker keeps, at most 4 MB in each of two halves. */
const MAX_CACHED = 1_000

const decoder = new TextDecoder()
const encoder = new TextEncoder()

/** Values are compared by row and generation, which identify their bytes. */
function keyOf({ product, productGeneration, license, licenseGeneration }: EntitlementsView): string {
  return `${product} ${productGeneration} ${license} ${licenseGeneration}`
}

export class EntitlementsSource {
  readonly #reader: IndexReader
  readonly #view = createEntitlementsView()
  /** Two halves: when the newer one is full, it replaces the older one, so entries in use stay. */
  #newer = new Map<string, Uint8Array>()
  #older = new Map<string, Uint8Array>()
  /** The key of the view, and its merged entitlements if they are cached. */
  #key = ''
  #found: Uint8Array | undefined

  constructor(reader: IndexReader) {
    this.#reader = reader
  }

  /**
   * Returns the entitlements of the license in a row as JSON, in an array that nobody may write to. Returns null when the
   * row's generation is another by now, or busy.
   */
  read(row: number, generation: number): Uint8Array | null {
    const view = this.#view
    if (!this.#reader.entitlements(row, generation, view, this.#isCached)) return null
    const json = this.#found ?? encoder.encode(JSON.stringify(merge(view)))
    if (!this.#newer.has(this.#key)) this.#keep(this.#key, json)
    return json
  }

  readonly #isCached = (view: EntitlementsView): boolean => {
    this.#key = keyOf(view)
    this.#found = this.#newer.get(this.#key) ?? this.#older.get(this.#key)
    return this.#found !== undefined
  }

  #keep(key: string, json: Uint8Array): void {
    if (this.#newer.size >= MAX_CACHED) {
      this.#older = this.#newer
      this.#newer = new Map()
    }
    this.#newer.set(key, json)
  }
}

function merge(view: EntitlementsView): Record<string, unknown> {
  return effectiveEntitlements(
    parse(view.productBytes, view.productLength),
    parse(view.licenseBytes, view.licenseLength),
  )
}

/** The table's check ensures that the bytes are a JSON object. */
function parse(bytes: Uint8Array, length: number): Record<string, unknown> {
  if (length === 0) return {}
  const value: unknown = JSON.parse(decoder.decode(bytes.subarray(0, length)))
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

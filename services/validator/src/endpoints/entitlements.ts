/**
 * Returns the entitlements of a license as JSON, for checks that request them (docs/api.md#v13). The index stores the entitlements of
 * products and licenses separately, so a change to the entitlements of a product affects its licenses at once. This class merges the
 * entitlements of a license with those of its product.
 */

import { effectiveEntitlements } from '@keyward/contract/entitlements'
import { createEntitlementsView, type EntitlementsView, type IndexReader } from '@keyward/engine'

/** The capacity of each half of the cache, in entries. The entitlements in a half have at most 4 MiB in each worker. */
const MAX_CACHED = 1_000

const decoder = new TextDecoder()
const encoder = new TextEncoder()

/** Returns the cache key. The row and generation of a value identify its bytes. */
function keyOf({ product, productGeneration, license, licenseGeneration }: EntitlementsView): string {
  return `${product} ${productGeneration} ${license} ${licenseGeneration}`
}

export class EntitlementsSource {
  readonly #reader: IndexReader
  readonly #view = createEntitlementsView()
  /**
   * The newer half of the cache. When it is full, it replaces the older half. An entry that is read from the older half is
   * added to the newer half again.
   */
  #newer = new Map<string, Uint8Array>()
  #older = new Map<string, Uint8Array>()
  /** The cache key of `#view`. */
  #key = ''
  /** The cached entitlements of `#view`, or undefined when they are not cached. */
  #found: Uint8Array | undefined

  constructor(reader: IndexReader) {
    this.#reader = reader
  }

  /**
   * Returns the entitlements of the license in a row as JSON. The caller must not write to the array. Returns null when the
   * row has another generation, or when the index is busy.
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

/** Parses entitlements. A check constraint of the table ensures that they are a JSON object. */
function parse(bytes: Uint8Array, length: number): Record<string, unknown> {
  if (length === 0) return {}
  const value: unknown = JSON.parse(decoder.decode(bytes.subarray(0, length)))
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/**
 * Creates and removes rows of any kind. Each row gets an id, a generation and the current mark, and can be found by its id. `reload.ts`
 * describes the mark.
 */

import { readWord } from '../memory/bits.ts'
import type { IndexStore } from '../memory/index-store.ts'
import {
  CREDENTIAL_STATE,
  CUSTOMER_FLAGS,
  GENERATION,
  ID,
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
  LICENSE_STATE,
  MARK,
  ORGANIZATION_FLAGS,
  PRODUCT_FLAGS,
  RULE_TRAITS,
} from '../memory/layout.ts'
import { CURRENT_MARK } from '../memory/shared-memory.ts'

/** The word whose bit 0 is the mark, by KIND. */
const MARK_WORDS: Record<number, number> = {
  [KIND_ORGANIZATION]: ORGANIZATION_FLAGS,
  [KIND_PRODUCT]: PRODUCT_FLAGS,
  [KIND_CUSTOMER]: CUSTOMER_FLAGS,
  [KIND_CREDENTIAL]: CREDENTIAL_STATE,
  [KIND_LICENSE]: LICENSE_STATE,
  [KIND_RULE]: RULE_TRAITS,
}

export class RowWriter {
  readonly store: IndexStore

  constructor(store: IndexStore) {
    this.store = store
  }

  /** The current mark, 0 or 1. */
  get mark(): number {
    return this.store.memory.control[CURRENT_MARK]!
  }

  set mark(mark: number) {
    this.store.memory.control[CURRENT_MARK] = mark
  }

  /** Creates a row with this id and returns its number. All fields except id, generation and mark are 0. */
  create(kind: number, id: Uint8Array): number {
    const { lookup } = this.store
    const slab = lookup.slab(kind)
    const row = slab.allocate()
    const { region, rowWords } = slab
    const base = region.claim(row * rowWords)
    const words = region.located
    for (let i = 0; i < 4; i++) words[base + ID + i] = readWord(id, 4 * i)
    words[base + GENERATION] = this.#nextGeneration()
    words[base + MARK_WORDS[kind]!]! |= this.mark
    lookup.addId(kind, row)
    return row
  }

  /**
   * Sets a new generation, which invalidates the pairs of row and generation that readers have stored. All kinds share one counter.
   */
  renewGeneration(kind: number, row: number): void {
    const { region, rowWords } = this.store.lookup.slab(kind)
    region.set(row * rowWords + GENERATION, this.#nextGeneration())
  }

  #nextGeneration(): number {
    return this.store.organizations.nextGeneration()
  }

  /** Removes a row. The caller must already have removed all references to the row, except the entry of its id. */
  destroy(kind: number, row: number): void {
    const { lookup } = this.store
    lookup.removeId(kind, row)
    lookup.slab(kind).free(row)
  }

  markOf(kind: number, row: number): number {
    const { region, rowWords } = this.store.lookup.slab(kind)
    return region.get(row * rowWords + MARK_WORDS[kind]!) & MARK
  }

  setMark(kind: number, row: number, mark: number): void {
    const { region, rowWords } = this.store.lookup.slab(kind)
    const at = row * rowWords + MARK_WORDS[kind]!
    region.set(at, (region.get(at) & ~MARK) | mark)
  }

  /** Returns whether the row is in use. */
  isLive(kind: number, row: number): boolean {
    const { region, rowWords } = this.store.lookup.slab(kind)
    return region.get(row * rowWords + GENERATION) !== 0
  }
}

import { readWord } from '../memory/bits.ts'
/**
 * What writing a row of any kind has in common: rows get an id, a generation and the current reload stamp, and are found
 * again by their id. The stamp is one bit in each row: while a reload runs, a row that bears the old one has not been
 * told of yet, and at the end of the reload it is gone.
 */
import type { IndexStore } from '../memory/index-store.ts'
import {
  CREDENTIAL_STATE,
  ID,
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
  LICENSE_STATE,
  RULE_TRAITS,
  GENERATION,
  TENANT_STAMP,
} from '../memory/layout.ts'

const STAMP_WORDS: Record<number, number> = {
  [KIND_ORGANIZATION]: TENANT_STAMP,
  [KIND_PRODUCT]: TENANT_STAMP,
  [KIND_CUSTOMER]: TENANT_STAMP,
  [KIND_CREDENTIAL]: CREDENTIAL_STATE,
  [KIND_LICENSE]: LICENSE_STATE,
  [KIND_RULE]: RULE_TRAITS,
}

export class RowWriter {
  readonly store: IndexStore
  /** 0 or 1. */
  stamp = 0
  private generation = 0

  constructor(store: IndexStore) {
    this.store = store
  }

  /** Adds a row with this id; its other words are 0. */
  create(kind: number, id: Uint8Array): number {
    const { directory } = this.store
    const arena = directory.arena(kind)
    const row = arena.allocate()
    const { words } = arena.region
    const base = row * arena.rowWords
    for (let i = 0; i < 4; i++) words[base + ID + i] = readWord(id, 4 * i)
    this.renewGeneration(kind, row)
    directory.addId(kind, row)
    this.setStamp(kind, row, this.stamp)
    return row
  }

  /** The row counts as another from now on. */
  renewGeneration(kind: number, row: number): void {
    const { region, rowWords } = this.store.directory.arena(kind)
    region.words[row * rowWords + GENERATION] = this.nextGeneration()
  }

  /** Removes a row; what refers to it has been unlinked by the caller. */
  destroy(kind: number, row: number): void {
    const { directory } = this.store
    directory.removeId(kind, row)
    directory.arena(kind).free(row)
  }

  stampOf(kind: number, row: number): number {
    const { region, rowWords } = this.store.directory.arena(kind)
    return region.words[row * rowWords + STAMP_WORDS[kind]!]! & 1
  }

  setStamp(kind: number, row: number, stamp: number): void {
    const { region, rowWords } = this.store.directory.arena(kind)
    const at = row * rowWords + STAMP_WORDS[kind]!
    region.words[at] = (region.words[at]! & ~1) | stamp
  }

  /** True for a row that is in use. */
  isLive(kind: number, row: number): boolean {
    const { region, rowWords } = this.store.directory.arena(kind)
    return region.words[row * rowWords + GENERATION] !== 0
  }

  private nextGeneration(): number {
    this.generation = (this.generation + 1) | 0
    if (this.generation === 0) this.generation = 1
    return this.generation
  }
}

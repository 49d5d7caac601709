/**
 * Values of variable length: byte strings that rows refer to, such as the entitlements of products and licenses. Each
 * distinct value is stored once, however many rows refer to it, and freed with its last reference.
 *
 * A value begins in a record with its length and its first bytes, and continues in a chain of blocks. The writer finds a value by a keyed
 * hash of its bytes and then compares all bytes, so only equal byte strings share a value.
 */

import type { KeyedHash } from './keyed-hash.ts'
import {
  GENERATION,
  ROW_WORDS,
  VALUE_BLOCK_DATA,
  VALUE_BLOCK_NEXT,
  VALUE_DATA,
  VALUE_HASH,
  VALUE_LENGTH,
  VALUE_NEXT,
  VALUE_REFERENCES,
} from './layout.ts'
import { type LinearHashTable, NONE } from './linear-hash-table.ts'
import type { Region } from './shared-memory.ts'
import type { Slab } from './slab.ts'

/** The maximum length of a value in bytes. It also bounds a read during a concurrent write. */
export const MAX_VALUE_BYTES = 8192

const FIRST_BYTES = 4 * (ROW_WORDS - VALUE_DATA)
const BLOCK_BYTES = 4 * (ROW_WORDS - VALUE_BLOCK_DATA)

export class ValueSet {
  readonly slab: Slab
  readonly table: LinearHashTable
  readonly #hash: KeyedHash
  readonly #scratch = new Int32Array(4)
  readonly #compared = new Uint8Array(MAX_VALUE_BYTES)

  constructor(slab: Slab, table: LinearHashTable, hash: KeyedHash) {
    this.slab = slab
    this.table = table
    this.#hash = hash
  }

  /** Returns the row of the value with these bytes, or 0. */
  find(bytes: Uint8Array): number {
    return this.#find(bytes, this.#hashOf(bytes))
  }

  /**
   * Adds a reference to the value with these bytes, and stores the value if it is new. Returns its row, or 0 if the index has no capacity
   * for it.
   */
  acquire(bytes: Uint8Array): number {
    const hash = this.#hashOf(bytes)
    let row = this.#find(bytes, hash)
    if (row === 0) {
      const blocks = Math.ceil(Math.max(0, bytes.length - FIRST_BYTES) / BLOCK_BYTES)
      if (!this.slab.hasCapacity(1 + blocks) || !this.table.hasCapacity(1)) return 0
      row = this.#add(bytes, hash)
    }
    this.slab.region.add(row * ROW_WORDS + VALUE_REFERENCES, 1)
    return row
  }

  /** Removes a reference to a value, and frees the value with the last one. */
  release(row: number): void {
    const words = this.slab.region
    const base = row * ROW_WORDS
    words.add(base + VALUE_REFERENCES, -1)
    if (words.get(base + VALUE_REFERENCES) !== 0) return
    const hash = words.get(base + VALUE_HASH)
    for (let at = this.table.first(hash); at !== NONE; at = this.table.next(hash, at)) {
      if (this.table.word(at, 1) !== row) continue
      this.table.remove(hash, at)
      break
    }
    let block = words.get(base + VALUE_NEXT)
    this.slab.free(row)
    while (block !== 0) {
      const next = words.get(block * ROW_WORDS + VALUE_BLOCK_NEXT)
      this.slab.free(block)
      block = next
    }
  }

  /** Returns the generation of the value in a row. It distinguishes this value from the values that the row contains at other times. */
  generation(row: number): number {
    return this.slab.region.get(row * ROW_WORDS + GENERATION) | 0
  }

  /** Writes the bytes of a value to `out`, which must have MAX_VALUE_BYTES bytes, and returns the length of the value. */
  read(row: number, out: Uint8Array): number {
    const words = this.slab.region
    const length = Math.min(words.get(row * ROW_WORDS + VALUE_LENGTH) >>> 0, MAX_VALUE_BYTES)
    let done = copyOut(words, row * ROW_WORDS + VALUE_DATA, out, 0, Math.min(length, FIRST_BYTES))
    let block = words.get(row * ROW_WORDS + VALUE_NEXT)
    while (done < length) {
      const end = Math.min(length, done + BLOCK_BYTES)
      done = copyOut(words, block * ROW_WORDS + VALUE_BLOCK_DATA, out, done, end)
      block = words.get(block * ROW_WORDS + VALUE_BLOCK_NEXT) | 0
    }
    return length
  }

  #hashOf(bytes: Uint8Array): number {
    this.#hash.hash(bytes, bytes.length, this.#scratch)
    return this.#scratch[0]!
  }

  #find(bytes: Uint8Array, hash: number): number {
    for (let at = this.table.first(hash); at !== NONE; at = this.table.next(hash, at)) {
      const row = this.table.word(at, 1)
      if (this.#isEqual(row, bytes)) return row
    }
    return 0
  }

  #isEqual(row: number, bytes: Uint8Array): boolean {
    if (this.slab.region.get(row * ROW_WORDS + VALUE_LENGTH) !== bytes.length) return false
    const compared = this.#compared
    this.read(row, compared)
    for (let i = 0; i < bytes.length; i++) if (compared[i] !== bytes[i]) return false
    return true
  }

  /** Adds a value without references. */
  #add(bytes: Uint8Array, hash: number): number {
    const words = this.slab.region
    const row = this.slab.allocate()
    const base = row * ROW_WORDS
    words.set(base + VALUE_LENGTH, bytes.length)
    words.set(base + VALUE_HASH, hash)
    words.set(base + GENERATION, this.slab.nextGeneration())
    let done = copyIn(words, base + VALUE_DATA, bytes, 0, Math.min(bytes.length, FIRST_BYTES))
    let link = base + VALUE_NEXT
    while (done < bytes.length) {
      const block = this.slab.allocate()
      words.set(link, block)
      link = block * ROW_WORDS + VALUE_BLOCK_NEXT
      done = copyIn(
        words,
        block * ROW_WORDS + VALUE_BLOCK_DATA,
        bytes,
        done,
        Math.min(bytes.length, done + BLOCK_BYTES),
      )
    }
    this.table.insert(hash, row, 0)
    return row
  }
}

/** Writes the bytes from `start` to `end` into words that are 0. Returns `end`. */
function copyIn(words: Region, at: number, bytes: Uint8Array, start: number, end: number): number {
  for (let i = start; i < end; i++) {
    const word = at + ((i - start) >> 2)
    words.set(word, words.get(word) | (bytes[i]! << (24 - 8 * ((i - start) & 3))))
  }
  return end
}

/** Copies bytes from words to the positions of `out` from `start` to `end`. Returns `end`. */
function copyOut(words: Region, at: number, out: Uint8Array, start: number, end: number): number {
  for (let i = start; i < end; i++) out[i] = words.get(at + ((i - start) >> 2)) >>> (24 - 8 * ((i - start) & 3))
  return end
}

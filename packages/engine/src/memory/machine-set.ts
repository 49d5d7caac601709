/**
 * The machines of all licenses in one set, with 12 bytes per entry.
 *
 * An entry is the machine id's keyed 128-bit hash, truncated to three words. The first word is XORed with a bijection of the license's row,
 * and the other two words are XORed with bijections of the license's generation. So a check needs only one hash of the machine id. One bit
 * is set in every entry in use, and another bit is the mark of a reload, so 94 bits are compared. Without the hash's key, callers cannot
 * choose two ids with equal entries. Among 2^26 machines, the probability that an unknown machine has the entry of another is 2^-68. An
 * entry that a deleted license left behind never matches the next license in the same row, because the two licenses have different
 * generations.
 *
 * The first word addresses the bucket. It depends only on the hash and the license's row, which are available before the license's record
 * is read. So `prefetch` can load the cache line of the entry while the cache line of the license is still loading.
 */

import { scramble } from './bits.ts'
import { type LinearHashTable, NONE } from './linear-hash-table.ts'

const IN_USE = 1
const MARK_SHIFT = 31
const VALUE_BITS = 0x7fffffff

export class MachineSet {
  readonly table: LinearHashTable

  constructor(table: LinearHashTable) {
    this.table = table
  }

  /** Returns whether the machine with this hash (four words) is in the set for the license. */
  has(license: number, generation: number, hash: Int32Array): boolean {
    return this.#find(license, generation, hash) !== NONE
  }

  /** Prefetches the bucket that `has` will read. `hash` is the first word of the hash. The returned value has no meaning. */
  prefetch(license: number, hash: number): number {
    return this.table.prefetch(firstWord(license, hash))
  }

  /** Adds the machine, or sets its mark if the set already contains it. */
  add(license: number, generation: number, hash: Int32Array, mark: number): void {
    const third = thirdWord(generation, hash) | (mark << MARK_SHIFT)
    const position = this.#find(license, generation, hash)
    if (position === NONE) this.table.insert(firstWord(license, hash[0]!), secondWord(generation, hash), third)
    else this.table.setWord(position, 2, third)
  }

  /** Sets the mark of a machine. Returns false when the machine is not in the set. */
  mark(license: number, generation: number, hash: Int32Array, mark: number): boolean {
    const position = this.#find(license, generation, hash)
    if (position === NONE) return false
    this.setMarkAt(position, mark)
    return true
  }

  remove(license: number, generation: number, hash: Int32Array): void {
    const position = this.#find(license, generation, hash)
    if (position !== NONE) this.table.remove(firstWord(license, hash[0]!), position)
  }

  markAt(position: number): number {
    return this.table.word(position, 2) >>> MARK_SHIFT
  }

  setMarkAt(position: number, mark: number): void {
    this.table.setWord(position, 2, (this.table.word(position, 2) & VALUE_BITS) | (mark << MARK_SHIFT))
  }

  #find(license: number, generation: number, hash: Int32Array): number {
    const { table } = this
    const first = firstWord(license, hash[0]!)
    const second = secondWord(generation, hash)
    const third = thirdWord(generation, hash)
    let position = table.first(first)
    while (position !== NONE) {
      if (table.word(position, 1) === second && (table.word(position, 2) & VALUE_BITS) === third) return position
      position = table.next(first, position)
    }
    return NONE
  }
}

function firstWord(license: number, hash: number): number {
  return hash ^ scramble(license)
}

function secondWord(generation: number, hash: Int32Array): number {
  return (hash[1]! ^ scramble(generation + 0x3c6ef372)) | IN_USE
}

function thirdWord(generation: number, hash: Int32Array): number {
  return (hash[2]! ^ scramble(generation + 0x1b873593)) & VALUE_BITS
}

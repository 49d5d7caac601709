import { scramble } from './bits.ts'
/**
 * Which machine holds a slot of which license: one set over all licenses, 12 bytes an entry, nothing else stored.
 *
 * An entry is the machine id's keyed 128-bit hash, cut to three words: the first XORed with a fixed bijection of the
 * license's row, the others with one of its generation, so that one hash of the machine id serves every look-up of a check.
 * One bit marks the entry as taken and one is the reload stamp, which leaves 94 bits. Two different entries are equal
 * by accident with probability 2^-94, since the hash is keyed and nobody can aim; a look-up meets about five entries,
 * so a wrong answer among 10^18 look-ups (300 years at 100 million a second) has a probability below 10^-9. A generation is
 * never used again, so an entry left behind by a deleted license can never speak for the row's next one.
 *
 * The first word says where the entry is, and it takes the row because a check knows the row before it has read the
 * license: `touch` then fetches the entry's cache line while the license's is still on its way.
 */
import { type BucketTable, NONE } from './linear-hash-table.ts'

const TAKEN = 1
const STAMP_SHIFT = 31
const VALUE_BITS = 0x7fffffff

export class MachineSet {
  readonly table: BucketTable

  constructor(table: BucketTable) {
    this.table = table
  }

  /** `hash`: the words of the machine id's hash. */
  has(license: number, generation: number, hash: Int32Array): boolean {
    return this.find(license, generation, hash) !== NONE
  }

  /** Begins to fetch what `has` will read; gives nothing of meaning. */
  touch(license: number, hash: Int32Array): number {
    return this.table.touch(address(license, hash))
  }

  /** Adds the machine, or stamps it where it is known. */
  add(license: number, generation: number, hash: Int32Array, stamp: number): void {
    const third = thirdWord(generation, hash) | (stamp << STAMP_SHIFT)
    const position = this.find(license, generation, hash)
    if (position === NONE) this.table.insert(address(license, hash), secondWord(generation, hash), third)
    else this.table.setWord(position, 2, third)
  }

  remove(license: number, generation: number, hash: Int32Array): void {
    const position = this.find(license, generation, hash)
    if (position !== NONE) this.table.remove(address(license, hash), position)
  }

  stampAt(position: number): number {
    return this.table.word(position, 2) >>> STAMP_SHIFT
  }

  setStampAt(position: number, stamp: number): void {
    this.table.setWord(position, 2, (this.table.word(position, 2) & VALUE_BITS) | (stamp << STAMP_SHIFT))
  }

  private find(license: number, generation: number, hash: Int32Array): number {
    const { table } = this
    const first = address(license, hash)
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

function address(license: number, hash: Int32Array): number {
  return hash[0]! ^ scramble(license)
}

function secondWord(generation: number, hash: Int32Array): number {
  return (hash[1]! ^ scramble(generation + 0x3c6ef372)) | TAKEN
}

function thirdWord(generation: number, hash: Int32Array): number {
  return (hash[2]! ^ scramble(generation + 0x1b873593)) & VALUE_BITS
}

/**
 * The draft of a write section: the lines that the section has changed so far, in the journal. The writer's slabs and tables read and write
 * the index through `DraftRegion`, which copies a line to the journal at the first store, and reads it from there afterwards.
 */

import { type Journal, LINE_BITS } from '../memory/journal.ts'
import { LINE_WORDS, type Region, type SharedRegion } from '../memory/shared-memory.ts'

const LINE_SHIFT = 4
const IN_LINE = LINE_WORDS - 1
const DOUBLES_SHIFT = 3
const DOUBLES_IN_LINE = LINE_WORDS / 2 - 1
const LEAST_TABLE = 64

export class Draft {
  /** Whether stores change the index itself. True outside of sections, and in a section that is written in place. */
  isDirect = true
  /** One more than the number of lines. */
  count = 1
  readonly lines: Int32Array
  readonly doubles: Float64Array
  readonly #addresses: Int32Array
  readonly #capacity: number
  /** Writes the lines to the index, and makes the draft direct, when the journal is full. */
  readonly #onFull: () => void
  /** A hash table with linear probing: the numbers of the lines, by address. It grows with the draft, so small sections use few cache lines. */
  readonly #table: Int32Array
  #mask = LEAST_TABLE - 1
  #shift = Math.clz32(LEAST_TABLE - 1)
  /** The address that was searched last, and its line or 0. */
  #address = -1
  #line = 0

  constructor(journal: Journal, onFull: () => void) {
    this.lines = journal.lines
    this.doubles = journal.doubles
    this.#addresses = journal.addresses
    this.#capacity = journal.capacity
    this.#onFull = onFull
    let size = LEAST_TABLE
    while (size < 2 * journal.capacity) size *= 4
    this.#table = new Int32Array(size)
  }

  /** Returns the journal's line with this address, or 0 if the draft does not contain it. */
  find(address: number): number {
    if (address === this.#address) return this.#line
    if (this.count === 1) return 0
    const table = this.#table
    const addresses = this.#addresses
    const mask = this.#mask
    let at = Math.imul(address, 0x9e3779b1) >>> this.#shift
    let line = table[at]!
    while (line !== 0 && addresses[line] !== address) {
      at = (at + 1) & mask
      line = table[at]!
    }
    this.#address = address
    this.#line = line
    return line
  }

  /**
   * Returns the journal's line with this address, and copies the line from `words` unless the draft contains it. Returns 0 when the draft
   * has become direct, because the journal is full.
   */
  claim(address: number, words: Int32Array): number {
    const known = this.find(address)
    if (known !== 0) return known
    if (this.count === this.#capacity) {
      this.#onFull()
      return 0
    }
    const line = this.count++
    const from = (address & ((1 << LINE_BITS) - 1)) << LINE_SHIFT
    const to = line << LINE_SHIFT
    const { lines } = this
    for (let i = 0; i < LINE_WORDS; i++) lines[to + i] = words[from + i]!
    this.#addresses[line] = address
    if (2 * line > this.#mask) this.#grow()
    else this.#insert(line)
    this.#address = address
    this.#line = line
    return line
  }

  /** Removes all lines. */
  clear(): void {
    this.#table.fill(0, 0, this.#mask + 1)
    this.#resize(LEAST_TABLE)
    this.count = 1
    this.#address = -1
    this.#line = 0
  }

  #grow(): void {
    this.#resize(4 * (this.#mask + 1))
    this.#table.fill(0, 0, this.#mask + 1)
    for (let line = 1; line < this.count; line++) this.#insert(line)
  }

  #resize(size: number): void {
    this.#mask = size - 1
    this.#shift = Math.clz32(size - 1)
  }

  #insert(line: number): void {
    const table = this.#table
    let at = Math.imul(this.#addresses[line]!, 0x9e3779b1) >>> this.#shift
    while (table[at] !== 0) at = (at + 1) & this.#mask
    table[at] = line
  }
}

/** The writer's view of a part of the memory. */
export class DraftRegion implements Region {
  located: Int32Array
  readonly #draft: Draft
  readonly #words: Int32Array
  readonly #doubles: Float64Array
  /** The number of the part, in the bits of an address. */
  readonly #part: number

  constructor(draft: Draft, { words, doubles }: SharedRegion, part: number) {
    this.located = words
    this.#draft = draft
    this.#words = words
    this.#doubles = doubles
    this.#part = part << LINE_BITS
  }

  get byteLength(): number {
    return this.#words.byteLength
  }

  locate(at: number): number {
    const line = this.#draft.find(this.#part | (at >>> LINE_SHIFT))
    this.located = line === 0 ? this.#words : this.#draft.lines
    return line === 0 ? at : (line << LINE_SHIFT) | (at & IN_LINE)
  }

  claim(at: number): number {
    const line = this.#claim(at >>> LINE_SHIFT)
    this.located = line === 0 ? this.#words : this.#draft.lines
    return line === 0 ? at : (line << LINE_SHIFT) | (at & IN_LINE)
  }

  get(at: number): number {
    const line = this.#draft.find(this.#part | (at >>> LINE_SHIFT))
    return line === 0 ? this.#words[at]! : this.#draft.lines[(line << LINE_SHIFT) | (at & IN_LINE)]!
  }

  set(at: number, value: number): void {
    const line = this.#claim(at >>> LINE_SHIFT)
    if (line === 0) this.#words[at] = value
    else this.#draft.lines[(line << LINE_SHIFT) | (at & IN_LINE)] = value
  }

  add(at: number, by: number): number {
    const line = this.#claim(at >>> LINE_SHIFT)
    if (line === 0) return (this.#words[at]! += by)
    return (this.#draft.lines[(line << LINE_SHIFT) | (at & IN_LINE)]! += by)
  }

  getDouble(at: number): number {
    const line = this.#draft.find(this.#part | (at >>> DOUBLES_SHIFT))
    return line === 0 ? this.#doubles[at]! : this.#draft.doubles[(line << DOUBLES_SHIFT) | (at & DOUBLES_IN_LINE)]!
  }

  setDouble(at: number, value: number): void {
    const line = this.#claim(at >>> DOUBLES_SHIFT)
    if (line === 0) this.#doubles[at] = value
    else this.#draft.doubles[(line << DOUBLES_SHIFT) | (at & DOUBLES_IN_LINE)] = value
  }

  clear(at: number, count: number): void {
    for (let from = at; from < at + count;) {
      const to = Math.min(at + count, (from | IN_LINE) + 1)
      const line = this.#claim(from >>> LINE_SHIFT)
      const start = line === 0 ? from : (line << LINE_SHIFT) | (from & IN_LINE)
      const words = line === 0 ? this.#words : this.#draft.lines
      words.fill(0, start, start + to - from)
      from = to
    }
  }

  /** Returns the journal's line for a store, or 0 for a store to the index itself. */
  #claim(line: number): number {
    return this.#draft.isDirect ? 0 : this.#draft.claim(this.#part | line, this.#words)
  }
}

/**
 * A slab: records of one size in a region, with a free list of the freed records. Row 0 is never allocated, so a row
 * number of 0 means "none". Only the writer allocates and frees, and it checks the capacity before it opens a write
 * section.
 */

import type { Region } from './shared-memory.ts'

// Words of the header in the control block.
const HIGHEST = 0
const FREE = 1
const FREE_COUNT = 2
const GENERATION = 3

export class Slab<View extends Region = Region> {
  readonly rowWords: number
  readonly region: View
  readonly #control: Int32Array
  /** Offset of the header in the control block. */
  readonly #header: number

  constructor(region: View, control: Int32Array, header: number, rowWords: number) {
    this.region = region
    this.#control = control
    this.#header = header
    this.rowWords = rowWords
  }

  /** The highest row number that was ever allocated. */
  get highest(): number {
    return this.#control[this.#header + HIGHEST]!
  }

  /** The number of rows in use. */
  get live(): number {
    return this.highest - this.#control[this.#header + FREE_COUNT]!
  }

  get usedBytes(): number {
    return 4 * this.rowWords * (this.highest + 1)
  }

  /** Returns the next generation, which is never 0. */
  nextGeneration(): number {
    const at = this.#header + GENERATION
    const next = (this.#control[at]! + 1) | 0 || 1
    this.#control[at] = next
    return next
  }

  /** Returns whether `count` more rows can be allocated. */
  hasCapacity(count: number): boolean {
    const fresh = count - this.#control[this.#header + FREE_COUNT]!
    return fresh <= 0 || 4 * this.rowWords * (this.highest + 1 + fresh) <= this.region.byteLength
  }

  /** Allocates a row whose words are all 0, and returns its number. */
  allocate(): number {
    const { rowWords } = this
    const words = this.region
    const control = this.#control
    const header = this.#header
    const free = control[header + FREE]!
    if (free === 0) return (control[header + HIGHEST]! += 1)
    control[header + FREE] = words.get(free * rowWords)
    control[header + FREE_COUNT]! -= 1
    words.set(free * rowWords, 0)
    return free
  }

  /** Clears a row and puts it on the free list. */
  free(row: number): void {
    const { rowWords } = this
    const words = this.region
    const control = this.#control
    const header = this.#header
    words.clear(row * rowWords, rowWords)
    words.set(row * rowWords, control[header + FREE]!)
    control[header + FREE] = row
    control[header + FREE_COUNT]! += 1
  }
}

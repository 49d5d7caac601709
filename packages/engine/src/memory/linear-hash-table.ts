/**
 * A hash table that grows without a pause: linear hashing (Litwin, 1980). A bucket is one cache line (64 bytes) with entries and a link to
 * an overflow bucket. Whenever the mean number of entries per bucket exceeds `fill`, one bucket is split in two, so no insertion moves more
 * than one bucket's chain. A chain is always packed: every bucket but its last is full, and a removed entry is replaced by the chain's last
 * entry. So there are no tombstones, and the first free entry ends a search.
 *
 * An entry has two or three words: the hash that addresses it, a word that is never 0, and optionally a third word. The caller defines the
 * meaning of the second and third word, and whether two entries with the same hash are equal.
 *
 *   bucket of 2-word entries  | hash row | hash row | ... 7 times | free | link |
 *   bucket of 3-word entries  | hash a b | ... 5 times                   | link |
 */

import type { Region } from './shared-memory.ts'

const BUCKET_WORDS = 16
const BUCKET_BYTES = 64
const LINK = 15
/** The maximum number of buckets in a chain. It also bounds a search during a concurrent write. */
const MAX_CHAIN = 64
const FIRST_BUCKETS = 8

/** The position that a search returns when it finds no entry. */
export const NONE = -0x80000000

// Words of the header in the control block, which only the writer uses.
const ENTRIES = 0
const OVERFLOW_HIGHEST = 1
const OVERFLOW_FREE = 2
const OVERFLOW_FREE_COUNT = 3

// Words of the shape, which readers read. They are in another cache line, because they change rarely.
const BUCKETS = 0
const MASK = 1

interface LinearHashTableOptions {
  primary: Region
  overflow: Region
  control: Int32Array
  /** Offset of the header in the control block. */
  header: number
  /** The view of the control block for the shape, and the offset of the shape. */
  shapes: Region
  shape: number
  entryWords: 2 | 3
  /** The mean number of entries per bucket above which a bucket is split. */
  fill: number
}

export class LinearHashTable {
  readonly primary: Region
  readonly overflow: Region
  readonly #control: Int32Array
  readonly #header: number
  readonly #shapes: Region
  readonly #shape: number
  readonly #entryWords: number
  readonly #entriesEnd: number
  readonly #fill: number
  readonly #moving = new Int32Array(MAX_CHAIN * BUCKET_WORDS)

  constructor(options: LinearHashTableOptions) {
    this.primary = options.primary
    this.overflow = options.overflow
    this.#control = options.control
    this.#header = options.header
    this.#shapes = options.shapes
    this.#shape = options.shape
    this.#entryWords = options.entryWords
    this.#entriesEnd = Math.floor(LINK / options.entryWords) * options.entryWords
    this.#fill = options.fill
  }

  /** Initializes an empty table. The writer of a new index calls it once. */
  initialize(): void {
    this.#shapes.set(this.#shape + BUCKETS, FIRST_BUCKETS)
    this.#shapes.set(this.#shape + MASK, FIRST_BUCKETS - 1)
  }

  get entries(): number {
    return this.#control[this.#header + ENTRIES]!
  }

  get buckets(): number {
    return this.#shapes.get(this.#shape + BUCKETS)
  }

  get usedBytes(): number {
    return this.primaryBytes + this.overflowBytes
  }

  get primaryBytes(): number {
    return BUCKET_BYTES * this.buckets
  }

  get overflowBytes(): number {
    return BUCKET_BYTES * (this.#control[this.#header + OVERFLOW_HIGHEST]! + 1)
  }

  /**
   * Returns the position of the first entry with this hash, or NONE. A position below 0 is the complement of an offset
   * in the overflow region.
   */
  first(hash: number): number {
    return this.#seek(hash, this.primary, this.#bucketOf(hash) * BUCKET_WORDS, false)
  }

  /** Prefetches the bucket of a hash. The returned value has no meaning. */
  prefetch(hash: number): number {
    return this.primary.get(this.#bucketOf(hash) * BUCKET_WORDS)
  }

  /** Returns the position of the next entry with this hash, or NONE. */
  next(hash: number, position: number): number {
    return position < 0
      ? this.#seek(hash, this.overflow, ~position + this.#entryWords, true)
      : this.#seek(hash, this.primary, position + this.#entryWords, false)
  }

  /** Returns a word of the entry at a position. */
  word(position: number, index: number): number {
    return position < 0 ? this.overflow.get(~position + index) : this.primary.get(position + index)
  }

  setWord(position: number, index: number, value: number): void {
    if (position < 0) this.overflow.set(~position + index, value)
    else this.primary.set(position + index, value)
  }

  /** Returns whether `count` more entries can be inserted. */
  hasCapacity(count: number): boolean {
    if (count === 0) return true
    const fresh = count - this.#control[this.#header + OVERFLOW_FREE_COUNT]!
    const overflow =
      fresh <= 0 ||
      BUCKET_BYTES * (this.#control[this.#header + OVERFLOW_HIGHEST]! + 1 + fresh) <= this.overflow.byteLength
    // An insertion splits a bucket only when the mean exceeds `fill`.
    const buckets = Math.max(this.buckets, Math.ceil((this.entries + count) / this.#fill))
    return overflow && BUCKET_BYTES * buckets <= this.primary.byteLength
  }

  /** Adds an entry, even if an equal one exists. `second` must not be 0. */
  insert(hash: number, second: number, third: number): void {
    this.#append(this.#bucketOf(hash), hash, second, third)
    const entries = (this.#control[this.#header + ENTRIES]! += 1)
    if (entries > this.#fill * this.buckets) this.#split()
  }

  /** Removes the entry at a position that `first` or `next` returned for this hash. */
  remove(hash: number, position: number): void {
    const entryWords = this.#entryWords
    const entriesEnd = this.#entriesEnd
    let words: Region = this.primary
    let base = this.#bucketOf(hash) * BUCKET_WORDS
    let linkWords: Region = words
    let linkAt = -1
    while (words.get(base + LINK) !== 0) {
      linkWords = words
      linkAt = base + LINK
      base = words.get(linkAt) * BUCKET_WORDS
      words = this.overflow
    }
    const start = words.locate(base)
    let length = entryWords
    while (length < entriesEnd && words.located[start + length + 1] !== 0) length += entryWords
    const last = base + length - entryWords
    for (let i = 0; i < entryWords; i++) {
      this.setWord(position, i, words.get(last + i))
      words.set(last + i, 0)
    }
    if (last === base && linkAt >= 0) {
      linkWords.set(linkAt, 0)
      this.#freeOverflow(base)
    }
    this.#control[this.#header + ENTRIES]! -= 1
  }

  /**
   * Removes the entries of one bucket's chain for which `stale` returns true. Returns the number of removed entries.
   */
  removeWhere(bucket: number, stale: (position: number) => boolean): number {
    let removed = 0
    let words: Region = this.primary
    let at = bucket * BUCKET_WORDS
    for (;;) {
      const end = (at & -BUCKET_WORDS) + this.#entriesEnd
      while (at < end && words.get(at + 1) !== 0) {
        const position = words === this.primary ? at : ~at
        if (stale(position)) {
          // The chain's last entry is at this position now. If the removed entry was the last one, its bucket may be
          // empty and freed.
          this.remove(words.get(at), position)
          removed++
        } else at += this.#entryWords
      }
      const link = at < end ? 0 : words.get((at & -BUCKET_WORDS) + LINK)
      if (link === 0) return removed
      words = this.overflow
      at = link * BUCKET_WORDS
    }
  }

  /** Calls `visit` with the position of each entry of one bucket's chain. */
  forEachIn(bucket: number, visit: (position: number) => void): void {
    this.some(bucket, (position) => {
      visit(position)
      return false
    })
  }

  /** Returns whether `matches` returns true for at least one entry of one bucket's chain. */
  some(bucket: number, matches: (position: number) => boolean): boolean {
    let words: Region = this.primary
    let base = bucket * BUCKET_WORDS
    for (;;) {
      const end = base + this.#entriesEnd
      for (let at = base; at < end && words.get(at + 1) !== 0; at += this.#entryWords) {
        if (matches(words === this.primary ? at : ~at)) return true
      }
      const link = words.get(base + LINK)
      if (link === 0) return false
      words = this.overflow
      base = link * BUCKET_WORDS
    }
  }

  #bucketOf(hash: number): number {
    const mask = this.#shapes.get(this.#shape + MASK)
    const bucket = hash & mask
    return bucket < this.#shapes.get(this.#shape + BUCKETS) ? bucket : bucket & (mask >>> 1)
  }

  #seek(hash: number, from: Region, start: number, startsInOverflow: boolean): number {
    const entryWords = this.#entryWords
    const entriesEnd = this.#entriesEnd
    let region = from
    let at = start
    let inOverflow = startsInOverflow
    for (let hop = 0; hop < MAX_CHAIN; hop++) {
      const base = at & -BUCKET_WORDS
      const end = base + entriesEnd
      // The difference between the offset of a word in the line and its position in the region.
      const shift = region.locate(base) - base
      const words = region.located
      for (; at < end; at += entryWords) {
        if (words[shift + at + 1] === 0) return NONE
        if (words[shift + at] === hash) return inOverflow ? ~at : at
      }
      const link = words[shift + base + LINK]!
      if (link <= 0) return NONE // below 0: read during a concurrent write
      region = this.overflow
      at = link * BUCKET_WORDS
      inOverflow = true
    }
    return NONE
  }

  /** Appends an entry to a bucket's chain. */
  #append(bucket: number, hash: number, second: number, third: number): void {
    const entryWords = this.#entryWords
    const entriesEnd = this.#entriesEnd
    let words: Region = this.primary
    let base = bucket * BUCKET_WORDS
    for (let hop = 0; words.get(base + LINK) !== 0; hop++) {
      if (hop === MAX_CHAIN - 2) throw new Error('Too many entries have the same hash.')
      base = words.get(base + LINK) * BUCKET_WORDS
      words = this.overflow
    }
    const start = words.locate(base)
    let length = 0
    while (length < entriesEnd && words.located[start + length + 1] !== 0) length += entryWords
    let at = base + length
    if (at >= base + entriesEnd) {
      const link = this.#allocateOverflow()
      words.set(base + LINK, link)
      words = this.overflow
      at = link * BUCKET_WORDS
    }
    words.set(at, hash)
    words.set(at + 1, second)
    if (entryWords === 3) words.set(at + 2, third)
  }

  /**
   * Adds one bucket and moves the entries that now belong to it. All of them come from the chain of one other bucket.
   */
  #split(): void {
    const shapes = this.#shapes
    const shape = this.#shape
    const entryWords = this.#entryWords
    const moving = this.#moving
    const fresh = this.buckets
    let mask = shapes.get(shape + MASK)
    if (fresh > mask) mask = (mask << 1) | 1
    const old = fresh & (mask >>> 1)
    const count = this.#takeChain(old)
    shapes.set(shape + BUCKETS, fresh + 1)
    shapes.set(shape + MASK, mask)
    for (let i = 0; i < count; i += entryWords) {
      this.#append(this.#bucketOf(moving[i]!), moving[i]!, moving[i + 1]!, moving[i + 2]!)
    }
  }

  /** Moves all entries of a chain to `#moving`, frees its overflow buckets, and returns the number of words. */
  #takeChain(bucket: number): number {
    let count = 0
    let words: Region = this.primary
    let base = bucket * BUCKET_WORDS
    for (;;) {
      const start = words.locate(base)
      for (let at = start; at < start + this.#entriesEnd && words.located[at + 1] !== 0; at += this.#entryWords) {
        for (let i = 0; i < this.#entryWords; i++) this.#moving[count++] = words.located[at + i]!
      }
      const link = words.located[start + LINK]!
      if (words === this.primary) words.clear(base, BUCKET_WORDS)
      else this.#freeOverflow(base)
      if (link === 0) return count
      words = this.overflow
      base = link * BUCKET_WORDS
    }
  }

  #allocateOverflow(): number {
    const control = this.#control
    const header = this.#header
    const free = control[header + OVERFLOW_FREE]!
    if (free === 0) return (control[header + OVERFLOW_HIGHEST]! += 1)
    const words = this.overflow
    control[header + OVERFLOW_FREE] = words.get(free * BUCKET_WORDS + LINK)
    control[header + OVERFLOW_FREE_COUNT]! -= 1
    words.set(free * BUCKET_WORDS + LINK, 0)
    return free
  }

  #freeOverflow(base: number): void {
    const control = this.#control
    const header = this.#header
    const words = this.overflow
    words.clear(base, BUCKET_WORDS)
    words.set(base + LINK, control[header + OVERFLOW_FREE]!)
    control[header + OVERFLOW_FREE] = base / BUCKET_WORDS
    control[header + OVERFLOW_FREE_COUNT]! += 1
  }
}

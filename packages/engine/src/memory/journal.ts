/**
 * The journal of a write section: the new content of every line (16 words) that the section changes. The writer fills it while the version is
 * even, so readers are not affected. Then it publishes the journal, makes the version odd and copies the lines. A reader that finds the
 * section open copies the lines too, so no reader waits for a writer that the operating system has suspended. The writer copies in ascending
 * order, and readers copy in descending order. Whoever has seen all lines copied makes the version even.
 *
 * The protocol has these invariants. `test/memory/journal.test.ts` tries every interleaving of a writer and two helpers.
 *
 *   1. The writer changes the journal, and the index by other stores than copies, only while the version is even or the journal is
 *      unpublished, and while no helper is registered.
 *   2. A helper copies only after it has registered and then loaded the odd version with which it came. So once the writer has made the
 *      version even and has seen that no helper is registered, no helper copies until the next section is open.
 *   3. DONE and LEFT only state facts: all lines below DONE, and all lines from LEFT on, have been copied in this section. So the order in
 *      which several helpers store them has no effect.
 *   4. Every copy of a line in a section stores the same words. So a thread that was suspended during a copy may repeat it after another
 *      thread has ended the section.
 */

import { JOURNAL_HEADER_WORDS, LINE_WORDS, type SharedIndex, VERSION, wordsOfParts } from './shared-memory.ts'

/** The number of bits of a line's number in an address. The bits above are the number of the part (`wordsOfParts`). */
export const LINE_BITS = 27
const LINE_MASK = (1 << LINE_BITS) - 1

// Words of the header, each in its own cache line.
/** One more than the number of lines of the published journal, or 0 when no journal is published. Lines are numbered from 1. */
const COUNT = 0
const DONE = 16
const LEFT = 32
/** The number of readers that may copy lines. */
const HELPERS = 48

/** The number of lines after which DONE or LEFT is stored. */
const CHUNK = 32

/** The time in milliseconds after which the writer assumes that a helper has ended without leaving. */
const MAX_WAIT_MS = 10_000
const SPINS = 100

/** The operations on shared memory. A test replaces them to choose the order in which threads execute them. */
export interface Operations {
  load: (words: Int32Array, at: number) => number
  store: (words: Int32Array, at: number, value: number) => void
  /** Stores a value that other threads load only after they have loaded a version that is stored later. */
  put: (words: Int32Array, at: number, value: number) => void
  /** Adds to a word and returns its former value. */
  add: (words: Int32Array, at: number, by: number) => number
  /** Replaces a word that has this value. Returns whether it had. */
  replace: (words: Int32Array, at: number, former: number, value: number) => boolean
  notify: (words: Int32Array, at: number) => void
  /** Waits until a word is 0. Returns whether it became 0 in time. */
  awaitZero: (words: Int32Array, at: number) => boolean
  copyLine: (from: Int32Array, fromAt: number, to: Int32Array, toAt: number) => void
}

const OPERATIONS: Operations = {
  load: (words, at) => Atomics.load(words, at),
  store: (words, at, value) => void Atomics.store(words, at, value),
  put: (words, at, value) => void (words[at] = value),
  add: (words, at, by) => Atomics.add(words, at, by),
  replace: (words, at, former, value) => Atomics.compareExchange(words, at, former, value) === former,
  notify: (words, at) => void Atomics.notify(words, at),
  awaitZero: (words, at) => {
    for (let tries = 0; tries < SPINS + MAX_WAIT_MS; tries++) {
      const value = Atomics.load(words, at)
      if (value === 0) return true
      if (tries >= SPINS) Atomics.wait(words, at, value, 1)
    }
    return false
  },
  copyLine: (from, fromAt, to, toAt) => {
    for (let i = 0; i < LINE_WORDS; i++) to[toAt + i] = from[fromAt + i]!
  },
}

export class Journal {
  /** The capacity in lines. The line 0 is never used, so that 0 means "none". */
  readonly capacity: number
  /** The address of each line: the number of the part and the number of the line in the part. */
  readonly addresses: Int32Array
  readonly lines: Int32Array
  readonly doubles: Float64Array
  readonly #header: Int32Array
  readonly #control: Int32Array
  readonly #parts: readonly Int32Array[]
  readonly #operations: Operations
  readonly #chunk: number

  constructor(shared: SharedIndex, operations = OPERATIONS, chunk = CHUNK) {
    const { journal } = shared
    this.capacity = (journal.byteLength / 4 - JOURNAL_HEADER_WORDS) / (1 + LINE_WORDS)
    this.#header = new Int32Array(journal, 0, JOURNAL_HEADER_WORDS)
    this.addresses = new Int32Array(journal, 4 * JOURNAL_HEADER_WORDS, this.capacity)
    const at = 4 * (JOURNAL_HEADER_WORDS + this.capacity)
    this.lines = new Int32Array(journal, at)
    this.doubles = new Float64Array(journal, at)
    this.#parts = wordsOfParts(shared)
    this.#control = this.#parts[0]!
    this.#operations = operations
    this.#chunk = chunk
  }

  /**
   * Writes the lines 1 to `count` - 1 as one section. Only the writer calls it, while the version is even. Returns false when a helper has
   * not left in time. The index is then unusable, because the helper may still copy these lines at any time.
   */
  write(count: number): boolean {
    const { load, store, put, replace, notify, awaitZero } = this.#operations
    const header = this.#header
    const control = this.#control
    const version = load(control, VERSION)
    put(header, DONE, 1)
    put(header, LEFT, count)
    put(header, COUNT, count)
    store(control, VERSION, version + 1)
    load(control, VERSION) // a fence: the copies must not move before the store
    for (let from = 1, left = count; from < left;) {
      const to = Math.min(left, from + this.#chunk)
      for (let line = from; line < to; line++) this.#copy(line)
      from = to
      if (from === left) break
      store(header, DONE, from)
      left = load(header, LEFT)
    }
    if (replace(control, VERSION, version + 1, (version + 2) | 0)) notify(control, VERSION)
    const hasEnded = awaitZero(header, HELPERS)
    put(header, COUNT, 0)
    return hasEnded
  }

  /** Completes the section that has made the version odd. Only readers call it. Returns false when its journal is not published. */
  help(version: number): boolean {
    const { load, add, notify } = this.#operations
    const header = this.#header
    if (load(header, COUNT) === 0) return false
    add(header, HELPERS, 1)
    const isOpen = load(this.#control, VERSION) === version
    const count = isOpen ? load(header, COUNT) : 0
    if (count !== 0) this.#complete(version, count)
    if (add(header, HELPERS, -1) === 1) notify(header, HELPERS)
    return count !== 0 || !isOpen
  }

  /** Copies the lines 1 to `count` - 1 into the index. Only the writer calls it, while the version is odd and the journal is unpublished. */
  copyAll(count: number): void {
    for (let line = 1; line < count; line++) this.#copy(line)
  }

  #complete(version: number, count: number): void {
    const { load, store, replace, notify } = this.#operations
    const header = this.#header
    for (let to = Math.min(count, load(header, LEFT)); ;) {
      const done = load(header, DONE)
      if (to <= done) break
      const from = Math.max(done, to - this.#chunk)
      for (let line = to - 1; line >= from; line--) this.#copy(line)
      to = from
      store(header, LEFT, to)
    }
    if (replace(this.#control, VERSION, version, (version + 1) | 0)) notify(this.#control, VERSION)
  }

  #copy(line: number): void {
    const address = this.addresses[line]!
    const part = this.#parts[address >>> LINE_BITS]!
    this.#operations.copyLine(this.lines, line * LINE_WORDS, part, (address & LINE_MASK) * LINE_WORDS)
  }
}

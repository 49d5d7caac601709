/**
 * Maps the headers of valid API keys to the rows of their credentials. The cache has two generations: when the current one is full, it
 * becomes the previous one, so the keys in use survive, and a number of keys above the capacity does not empty the cache again and again.
 * Rows, generations and times are in typed arrays, so that a hit loads one cache line besides the header.
 */

/** The number of credentials in one generation. */
const CAPACITY = 32_768

export class CredentialCache {
  readonly #capacity: number
  /** The entries by header. The entries of the two generations have separate halves of the columns. */
  #current = new Map<string, number>()
  #previous = new Map<string, number>()
  /** The first entry of the half that belongs to the current generation. */
  #half = 0
  readonly #rows: Int32Array
  readonly #generations: Int32Array
  /** The times at which the uses of the keys were last reported. */
  readonly #usedAtMs: Float64Array

  constructor(capacity = CAPACITY) {
    this.#capacity = capacity
    this.#rows = new Int32Array(2 * capacity)
    this.#generations = new Int32Array(2 * capacity)
    this.#usedAtMs = new Float64Array(2 * capacity)
  }

  /** Returns the entry of the header, or -1. The entry is valid until the next call of `find` or `set`. */
  find(header: string): number {
    const entry = this.#current.get(header)
    if (entry !== undefined) return entry
    const old = this.#previous.get(header)
    if (old === undefined) return -1
    return this.set(header, this.#rows[old]!, this.#generations[old]!, this.#usedAtMs[old]!)
  }

  /** Adds or replaces the entry of a header, and returns the entry. */
  set(header: string, row: number, generation: number, usedAtMs: number): number {
    const known = this.#current.get(header)
    if (known === undefined && this.#current.size >= this.#capacity) {
      this.#previous = this.#current
      this.#current = new Map()
      this.#half = this.#capacity - this.#half
    }
    const entry = known ?? this.#half + this.#current.size
    this.#current.set(header, entry)
    this.#rows[entry] = row
    this.#generations[entry] = generation
    this.#usedAtMs[entry] = usedAtMs
    return entry
  }

  rowOf(entry: number): number {
    return this.#rows[entry]!
  }

  generationOf(entry: number): number {
    return this.#generations[entry]!
  }

  usedAtMsOf(entry: number): number {
    return this.#usedAtMs[entry]!
  }

  setUsedAtMs(entry: number, atMs: number): void {
    this.#usedAtMs[entry] = atMs
  }
}

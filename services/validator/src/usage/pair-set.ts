/**
 * A set of machines of licenses, as keyed hashes in a typed array, because hundreds of thousands of strings would burden the main thread's
 * garbage collector. The hashes are those of verdicts, so callers cannot choose machine ids that collide. Two machines with the same 64-bit
 * hash count as one.
 */

/** The maximum number of places that linear probing examines. It bounds the cost of a full set. */
const MAX_STEPS = 64

export class PairSet {
  readonly #capacity: number
  readonly #mask: number
  /** Pairs of words. The first word selects the place at which linear probing starts. The second word of a taken place is not 0. */
  readonly #words: Int32Array
  #size = 0
  // The pair of the last `find`.
  #high = 0
  #low = 0

  constructor(capacity: number) {
    this.#capacity = capacity
    const places = 2 ** Math.ceil(Math.log2(capacity * 2))
    this.#mask = places - 1
    this.#words = new Int32Array(places * 2)
  }

  get isFull(): boolean {
    return this.#size >= this.#capacity
  }

  /** Returns the place of the machine, or a free place for it, or -1 if there is neither within MAX_STEPS. `detail` distinguishes its entries. */
  find(machineHash0: number, machineHash1: number, license: number, detail: number): number {
    this.#high = machineHash0 ^ Math.imul(license, 0x2c1b3c6d)
    this.#low = machineHash1 ^ Math.imul(detail, 0x297a2d39) || 1
    for (let step = 0; step < MAX_STEPS; step++) {
      const at = ((this.#high + step) & this.#mask) * 2
      if (this.#words[at + 1] === 0 || (this.#words[at] === this.#high && this.#words[at + 1] === this.#low)) return at
    }
    return -1
  }

  isTaken(at: number): boolean {
    return this.#words[at + 1] !== 0
  }

  /** Adds the machine of the last `find`, which returned this free place. */
  take(at: number): void {
    this.#words[at] = this.#high
    this.#words[at + 1] = this.#low
    this.#size++
  }

  clear(): void {
    this.#words.fill(0)
    this.#size = 0
  }
}

/**
 * Limits how often the last use of each machine is written (docs/api.md#s6). It keeps two generations of a set; membership
 * means that the machine was written within the last one to two periods. The sets store hashes in typed arrays, because
 * hundreds of thousands of strings would burden the main thread's garbage collector. If two machines have the same
 * 64 bits, one of them is not written for a period.
 */

import { randomInt } from 'node:crypto'

import type { ActivityColumns } from '@keyward/database'

const PERIOD_MS = 5 * 60_000
const CAPACITY = 200_000
const ID_BYTES = 16

export class SeenMachines {
  #current: HashSet
  #previous: HashSet
  /** When the current generation began. */
  #sinceMs = performance.now()

  /** `capacity` is the size of one generation. When it is full, the next one begins early. */
  constructor(capacity = CAPACITY) {
    this.#current = new HashSet(capacity)
    this.#previous = new HashSet(capacity)
  }

  /** Returns true once per period for the machine and license of the entry, and counts them as written. */
  isDue({ licenseIds, machineAt, machineBytes }: ActivityColumns, entry: number): boolean {
    if (performance.now() - this.#sinceMs > PERIOD_MS || this.#current.isFull) this.#rotate()
    const at = entry * ID_BYTES
    const [start, end] = [machineAt[entry]!, machineAt[entry + 1]!]
    const high = hashOf(hashOf(SEED_HIGH, licenseIds, at, at + ID_BYTES), machineBytes, start, end)
    const low = hashOf(hashOf(SEED_LOW, licenseIds, at, at + ID_BYTES), machineBytes, start, end) || 1
    if (this.#current.has(high, low) || this.#previous.has(high, low)) return false
    this.#current.add(high, low)
    return true
  }

  #rotate(): void {
    const oldest = this.#previous
    this.#previous = this.#current
    this.#current = oldest
    oldest.clear()
    this.#sinceMs = performance.now()
  }
}

// Random, so that callers cannot choose ids that collide.
const SEED_HIGH = randomInt(2 ** 32)
const SEED_LOW = randomInt(2 ** 32)

function hashOf(seed: number, bytes: Uint8Array, start: number, end: number): number {
  let hash = seed | 0
  for (let at = start; at < end; at++) {
    const product = Math.imul(hash ^ bytes[at]!, 0x2c1b3c6d)
    hash = product ^ (product >>> 15)
  }
  return hash
}

/** A set of pairs of words, of which the second is never 0. Open addressing with linear probing, from the first word. */
class HashSet {
  readonly #capacity: number
  readonly #mask: number
  readonly #words: Int32Array
  #size = 0

  constructor(capacity: number) {
    this.#capacity = capacity
    const slots = 2 ** Math.ceil(Math.log2(capacity * 2))
    this.#mask = slots - 1
    this.#words = new Int32Array(slots * 2)
  }

  get isFull(): boolean {
    return this.#size >= this.#capacity
  }

  has(high: number, low: number): boolean {
    return this.#words[this.#find(high, low) + 1] === low
  }

  /** Adds a pair that the set does not contain. The set must not be full. */
  add(high: number, low: number): void {
    const at = this.#find(high, low)
    this.#words[at] = high
    this.#words[at + 1] = low
    this.#size++
  }

  clear(): void {
    this.#words.fill(0)
    this.#size = 0
  }

  /** Returns the index of the pair, or of the free slot for it. Terminates, because at most half of the slots are taken. */
  #find(high: number, low: number): number {
    for (let slot = high & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const at = slot * 2
      if (this.#words[at + 1] === 0 || (this.#words[at] === high && this.#words[at + 1] === low)) return at
    }
  }
}

/**
 * When each machine's last sight was written, so that it is written now and then and not with every flush. Two generations
 * of a set: membership means written within the last one to two periods. A set holds hashes in a typed array, since hundreds
 * of thousands of strings are what the garbage collector of the main thread would work on; of two machines with the same 64
 * bits one would go unwritten for a period.
 */

import { randomInt } from 'node:crypto'

import type { ActivityColumns } from '@keyward/database'

const PERIOD_MS = 5 * 60_000
const MOST = 200_000
const ID_BYTES = 16

export class SeenMachines {
  #current: HashSet
  #previous: HashSet
  #sinceMs = performance.now()

  /** `most`: in one generation; then the next begins early. */
  constructor(most = MOST) {
    this.#current = new HashSet(most)
    this.#previous = new HashSet(most)
  }

  /** True once in a period for the machine and license of the entry, and then counted as written. */
  isDue({ licenseIds, machineAt, machineBytes }: ActivityColumns, entry: number): boolean {
    if (performance.now() - this.#sinceMs > PERIOD_MS || this.#current.isFull) this.#forget()
    const at = entry * ID_BYTES
    const [start, end] = [machineAt[entry] ?? 0, machineAt[entry + 1] ?? 0]
    const high = hashOf(hashOf(SEED_HIGH, licenseIds, at, at + ID_BYTES), machineBytes, start, end)
    const low = hashOf(hashOf(SEED_LOW, licenseIds, at, at + ID_BYTES), machineBytes, start, end) || 1
    if (this.#current.has(high, low) || this.#previous.has(high, low)) return false
    this.#current.add(high, low)
    return true
  }

  #forget(): void {
    const oldest = this.#previous
    this.#previous = this.#current
    this.#current = oldest
    oldest.clear()
    this.#sinceMs = performance.now()
  }
}

// Not to be guessed from outside.
const SEED_HIGH = randomInt(2 ** 32)
const SEED_LOW = randomInt(2 ** 32)

function hashOf(seed: number, bytes: Uint8Array, start: number, end: number): number {
  let hash = seed | 0
  for (let at = start; at < end; at++) {
    const product = Math.imul(hash ^ (bytes[at] ?? 0), 0x2c1b3c6d)
    hash = product ^ (product >>> 15)
  }
  return hash
}

/** Pairs of words, the second never 0, at the first free place from where the first points. */
class HashSet {
  readonly #most: number
  readonly #mask: number
  readonly #words: Int32Array
  #size = 0

  constructor(most: number) {
    this.#most = most
    const places = 2 ** Math.ceil(Math.log2(most * 2))
    this.#mask = places - 1
    this.#words = new Int32Array(places * 2)
  }

  get isFull(): boolean {
    return this.#size >= this.#most
  }

  has(high: number, low: number): boolean {
    return this.#words[this.#placeOf(high, low) + 1] === low
  }

  /** What is not in it yet. */
  add(high: number, low: number): void {
    const at = this.#placeOf(high, low)
    this.#words[at] = high
    this.#words[at + 1] = low
    this.#size++
  }

  clear(): void {
    this.#words.fill(0)
    this.#size = 0
  }

  /** Where the pair is, or would go: never more than half of the places are taken. */
  #placeOf(high: number, low: number): number {
    for (let place = high & this.#mask; ; place = (place + 1) & this.#mask) {
      const at = place * 2
      if (this.#words[at + 1] === 0 || (this.#words[at] === high && this.#words[at + 1] === low)) return at
    }
  }
}

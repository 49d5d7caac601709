/**
 * Until when machines surely hold their leased slots (docs/api.md#l4): a cache in shared memory, which the main thread writes and the
 * workers read. It contains only what this validator has renewed itself. A machine that is not in it must claim, so a lost or
 * replaced entry costs a statement and is never wrong. That a machine holds a slot at all is in the index.
 *
 * A bucket holds eight entries; in a full one, the entry that ends first is replaced. The deadline of an entry is 0 while the
 * entry is written, and a reader reads it before and after the rest, so it never combines two machines.
 */

/** Identifies a machine and a license in this process, as a verdict does. */
export interface LeaseKey {
  /** The row of the license in the index, and its generation. */
  license: number
  licenseGeneration: number
  /** Half of the machine id's keyed hash. */
  machineHash0: number
  machineHash1: number
}

const ENTRY_WORDS = 8
const WAYS = 8
const BUCKET_WORDS = ENTRY_WORDS * WAYS

// Words of an entry.
const HASH0 = 0
const HASH1 = 1
const LICENSE = 2
const GENERATION = 3
const SECONDS = 4
/** In ticks on the monotonic clock, rounded down; 0: none. */
const DEADLINE = 5

/** 2^31 ticks are more than six years since the start of the machine. */
const TICK_MS = 100

/** 64 MB of address space for two million machines. The system provides memory only for the part in use. */
const LARGE_BUCKETS = 1 << 18

export class Leases {
  readonly shared: SharedArrayBuffer
  readonly #words: Int32Array
  readonly #mask: number
  /** Renewals that were sent before do not count. */
  #clearedMs = -Infinity

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(LARGE_BUCKETS * BUCKET_WORDS * 4)) {
    this.shared = shared
    this.#words = new Int32Array(shared)
    this.#mask = this.#words.length / BUCKET_WORDS - 1
  }

  /**
   * Returns the time on the monotonic clock, in milliseconds, until which the machine surely holds its slot; 0: unknown. A lease that
   * was granted while the license had leases of another length does not count.
   */
  deadlineMs(key: LeaseKey, leaseSeconds: number): number {
    const words = this.#words
    const bucket = this.#bucketOf(key)
    for (let at = bucket; at < bucket + BUCKET_WORDS; at += ENTRY_WORDS) {
      const deadline = Atomics.load(words, at + DEADLINE)
      if (deadline === 0 || !this.#isOf(at, key) || Atomics.load(words, at + SECONDS) !== leaseSeconds) continue
      if (Atomics.load(words, at + DEADLINE) === deadline) return deadline * TICK_MS
    }
    return 0
  }

  /** Stores that the machine holds its slot for `leaseSeconds` after `sentMs`, the time when its renewal was sent. */
  set(key: LeaseKey, leaseSeconds: number, sentMs: number): void {
    if (sentMs <= this.#clearedMs) return
    const words = this.#words
    const at = this.#placeFor(key)
    Atomics.store(words, at + DEADLINE, 0)
    Atomics.store(words, at + HASH0, key.machineHash0)
    Atomics.store(words, at + HASH1, key.machineHash1)
    Atomics.store(words, at + LICENSE, key.license)
    Atomics.store(words, at + GENERATION, key.licenseGeneration)
    Atomics.store(words, at + SECONDS, leaseSeconds)
    Atomics.store(words, at + DEADLINE, Math.floor((sentMs + 1_000 * leaseSeconds) / TICK_MS))
  }

  /** Forgets every lease that was renewed until now: what was granted may not be in Postgres any more. */
  clear(nowMs: number): void {
    this.#clearedMs = nowMs
    const words = this.#words
    for (let at = DEADLINE; at < words.length; at += ENTRY_WORDS) {
      // Reading first keeps pages that were never written out of memory.
      if (words[at] !== 0) Atomics.store(words, at, 0)
    }
  }

  #bucketOf({ machineHash0, license }: LeaseKey): number {
    return ((machineHash0 ^ Math.imul(license, 0x9e3779b1)) & this.#mask) * BUCKET_WORDS
  }

  /** Returns the entry of the machine, or a free one of its bucket, or the one that ends first. */
  #placeFor(key: LeaseKey): number {
    const words = this.#words
    const bucket = this.#bucketOf(key)
    let place = bucket
    for (let at = bucket; at < bucket + BUCKET_WORDS; at += ENTRY_WORDS) {
      if (words[at + DEADLINE] !== 0 && this.#isOf(at, key)) return at
      if (words[at + DEADLINE]! < words[place + DEADLINE]!) place = at
    }
    return place
  }

  #isOf(at: number, key: LeaseKey): boolean {
    const words = this.#words
    return (
      Atomics.load(words, at + HASH0) === key.machineHash0 &&
      Atomics.load(words, at + HASH1) === key.machineHash1 &&
      Atomics.load(words, at + LICENSE) === key.license &&
      Atomics.load(words, at + GENERATION) === key.licenseGeneration
    )
  }
}

/**
 * Caches the times until which machines certainly hold their leased slots (docs/api.md#l4). The cache is in shared memory,
 * which the main thread writes and the workers read. The cache contains only leases that this validator has claimed or renewed.
 * A machine without an entry must claim, so a lost entry costs a statement and never causes a wrong verdict. The index, not the
 * cache, stores which machines hold slots.
 *
 * A bucket has eight entries. In a full bucket, the entry whose lease ends first is replaced. The deadline of an entry is 0
 * while the entry is written. A reader reads the deadline before and after the other words, so it never combines words of two
 * machines.
 */

/** Identifies a machine and a license in this process, by the fields of a verdict. */
export interface LeaseKey {
  /** The row of the license in the index. */
  license: number
  licenseGeneration: number
  /** The first half of the machine id's keyed hash. */
  machineHash0: number
  /** The second half of the hash. */
  machineHash1: number
}

const ENTRY_WORDS = 8
const WAYS = 8
const BUCKET_WORDS = ENTRY_WORDS * WAYS

// The positions of the words in an entry.
const HASH0 = 0
const HASH1 = 1
const LICENSE = 2
const GENERATION = 3
const SECONDS = 4
/** The deadline in ticks of the monotonic clock, rounded down. It is 0 when the entry is free. */
const DEADLINE = 5

/** The length of a tick. 2^31 ticks from the start of the host are more than six years. */
const TICK_MS = 100

/**
 * The default number of buckets: 64 MB of address space for two million machines. Only pages that have been written use memory.
 */
const LARGE_BUCKETS = 1 << 18

export class Leases {
  readonly shared: SharedArrayBuffer
  readonly #words: Int32Array
  readonly #mask: number
  /** The time of the last `clear`. Renewals that were sent before this time are ignored. */
  #clearedMs = -Infinity

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(LARGE_BUCKETS * BUCKET_WORDS * 4)) {
    this.shared = shared
    this.#words = new Int32Array(shared)
    this.#mask = this.#words.length / BUCKET_WORDS - 1
  }

  /**
   * Returns the time until which the machine certainly holds its slot, in milliseconds on the monotonic clock, or 0 if it is
   * unknown. A lease whose length is not `leaseSeconds` is ignored.
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

  /** Stores that the machine holds its slot for `leaseSeconds` after `sentMs`, the time at which its renewal was sent. */
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

  /** Clears every lease that was renewed until now, because Postgres may have lost these renewals. */
  clear(nowMs: number): void {
    this.#clearedMs = nowMs
    const words = this.#words
    for (let at = DEADLINE; at < words.length; at += ENTRY_WORDS) {
      // Reading first avoids the allocation of pages that were never written.
      if (words[at] !== 0) Atomics.store(words, at, 0)
    }
  }

  #bucketOf({ machineHash0, license }: LeaseKey): number {
    return ((machineHash0 ^ Math.imul(license, 0x9e3779b1)) & this.#mask) * BUCKET_WORDS
  }

  /** Returns the entry of the machine, else a free entry of its bucket, else the entry whose lease ends first. */
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

/**
 * Stores the activity of one flush (docs/api.md#d3), with an entry for each license, code, machine and minute. The entries are
 * in a hash table with open addressing, which consists of typed arrays. A check whose entry exists costs a probe and three
 * stores. A new entry costs a few copies. Neither operation allocates memory. Maps of objects would cost 6 us per check, and as
 * much again for the garbage collector. A machine is identified by its keyed hash, as in the index. `take` removes all entries
 * at once.
 */

import { randomInt } from 'node:crypto'

import type { ActivityColumns } from '@keyward/database'
import { CODES } from '@keyward/engine'

/** The machine id of a check, as bytes and as a keyed hash. `bytes` may be shared memory that is overwritten later. */
export interface Machine {
  bytes: Uint8Array
  machineAt: number
  /** The length of the machine id in bytes, or 0 without a machine id. */
  machineLength: number
  /** The first half of the machine id's keyed hash, or 0 without a machine id. */
  machineHash0: number
  /** The second half of the hash, or 0 without a machine id. */
  machineHash1: number
}

/** Identifies a machine of a license in this process. */
export interface MachineRow {
  license: number
  generation: number
  machineHash0: number
  machineHash1: number
}

const NONE = -1
/**
 * The maximum distance of an entry from the slot that its hash selects. It bounds the cost of machine ids that are chosen to
 * collide.
 */
const MAX_STEPS = 64
/** The average capacity for machine ids, in bytes per entry. */
export const BYTES_PER_ENTRY = 64

/** The columns of the entries in the form that is written to Postgres. */
class Columns {
  readonly codes: Uint8Array
  readonly minutesMs: Float64Array
  readonly counts: Int32Array
  readonly firstsMs: Float64Array
  readonly lastsMs: Float64Array
  readonly licenseIds: Uint8Array
  readonly machineAt: Int32Array
  readonly machineBytes: Uint8Array
  readonly seen: Uint8Array

  constructor(capacity: number) {
    this.codes = new Uint8Array(capacity)
    this.minutesMs = new Float64Array(capacity)
    this.counts = new Int32Array(capacity)
    this.firstsMs = new Float64Array(capacity)
    this.lastsMs = new Float64Array(capacity)
    this.licenseIds = new Uint8Array(capacity * 16)
    this.machineAt = new Int32Array(capacity + 1)
    this.machineBytes = new Uint8Array(capacity * BYTES_PER_ENTRY)
    this.seen = new Uint8Array(capacity)
  }
}

export class ActivityTable {
  readonly #capacity: number
  readonly #mask: number
  /** The seed of the hash. It is random, so that callers cannot choose ids that collide. */
  readonly #seed = randomInt(2 ** 31)
  /** The number of each slot's entry plus one, or 0 for a free slot. At most half of the slots are taken. */
  readonly #slots: Int32Array
  // These arrays identify the license and machine of each entry.
  readonly #licenses: Int32Array
  readonly #generations: Int32Array
  readonly #machines0: Int32Array
  readonly #machines1: Int32Array
  /** The columns of the current entries. */
  #columns: Columns
  /** The columns that `take` returned last. */
  #taken: Columns
  #size = 0
  /** The result of `machineOf`. Each call overwrites it. */
  readonly #row: MachineRow = { license: 0, generation: 0, machineHash0: 0, machineHash1: 0 }

  constructor(capacity: number) {
    this.#capacity = capacity
    const slots = 2 ** Math.ceil(Math.log2(capacity * 2))
    this.#mask = slots - 1
    this.#slots = new Int32Array(slots)
    this.#licenses = new Int32Array(capacity)
    this.#generations = new Int32Array(capacity)
    this.#machines0 = new Int32Array(capacity)
    this.#machines1 = new Int32Array(capacity)
    this.#columns = new Columns(capacity)
    this.#taken = new Columns(capacity)
  }

  get size(): number {
    return this.#size
  }

  /** Returns the license and machine of an entry. An entry that `take` has returned remains readable until the next `add`. */
  machineOf(entry: number): MachineRow {
    const row = this.#row
    row.license = this.#licenses[entry]!
    row.generation = this.#generations[entry]!
    row.machineHash0 = this.#machines0[entry]!
    row.machineHash1 = this.#machines1[entry]!
    return row
  }

  /** Returns the entry of this license, code, machine and minute, or -1 if there is none. */
  find(license: number, generation: number, code: number, minuteMs: number, machine: Machine): number {
    const hash = hashOf(this.#seed ^ license, code, machine)
    for (let step = 0; step < MAX_STEPS; step++) {
      const entry = this.#slots[(hash + step) & this.#mask]! - 1
      if (entry < 0) return NONE
      if (this.#matches(entry, license, generation, code, minuteMs, machine)) return entry
    }
    return NONE
  }

  /** Counts another check in an entry that `find` returned. */
  count(entry: number, atMs: number): void {
    const { counts, firstsMs, lastsMs } = this.#columns
    counts[entry] = counts[entry]! + 1
    // The records of several workers are not in chronological order.
    if (atMs > lastsMs[entry]!) lastsMs[entry] = atMs
    if (atMs < firstsMs[entry]!) firstsMs[entry] = atMs
  }

  /**
   * Adds an entry with one check. The table must not contain the entry yet. Returns false if the entry does not fit. Copies
   * `licenseId` (16 bytes) and the machine id.
   */
  add(
    license: number,
    generation: number,
    code: number,
    minuteMs: number,
    machine: Machine,
    licenseId: Uint8Array,
    atMs: number,
  ): boolean {
    const columns = this.#columns
    const entry = this.#size
    const start = columns.machineAt[entry]!
    const { bytes, machineAt, machineLength } = machine
    if (entry === this.#capacity || start + machineLength > columns.machineBytes.length) return false
    if (!this.#place(entry, hashOf(this.#seed ^ license, code, machine))) return false
    this.#size++
    this.#licenses[entry] = license
    this.#generations[entry] = generation
    this.#machines0[entry] = machine.machineHash0
    this.#machines1[entry] = machine.machineHash1
    columns.codes[entry] = code
    columns.minutesMs[entry] = minuteMs
    columns.counts[entry] = 1
    columns.firstsMs[entry] = columns.lastsMs[entry] = atMs
    columns.licenseIds.set(licenseId, entry * 16)
    for (let i = 0; i < machineLength; i++) columns.machineBytes[start + i] = bytes[machineAt + i]!
    columns.machineAt[entry + 1] = start + machineLength
    return true
  }

  /** Returns all entries, with `seen` unset, and empties the table. The result is valid until the next call. */
  take(): ActivityColumns {
    const size = this.#size
    const columns = this.#columns
    this.#columns = this.#taken
    this.#taken = columns
    this.#slots.fill(0)
    this.#size = 0
    return {
      minutesMs: columns.minutesMs.subarray(0, size),
      licenseIds: columns.licenseIds.subarray(0, size * 16),
      codes: columns.codes.subarray(0, size),
      codeNames: CODES,
      machineAt: columns.machineAt.subarray(0, size + 1),
      machineBytes: columns.machineBytes,
      counts: columns.counts.subarray(0, size),
      firstsMs: columns.firstsMs.subarray(0, size),
      lastsMs: columns.lastsMs.subarray(0, size),
      seen: columns.seen.subarray(0, size).fill(0),
    }
  }

  /** Stores the entry in a free slot. Returns false if there is no free slot within MAX_STEPS. */
  #place(entry: number, hash: number): boolean {
    for (let step = 0; step < MAX_STEPS; step++) {
      const at = (hash + step) & this.#mask
      if (this.#slots[at] !== 0) continue
      this.#slots[at] = entry + 1
      return true
    }
    return false
  }

  #matches(
    entry: number,
    license: number,
    generation: number,
    code: number,
    minuteMs: number,
    machine: Machine,
  ): boolean {
    return (
      this.#machines0[entry] === machine.machineHash0 &&
      this.#machines1[entry] === machine.machineHash1 &&
      this.#licenses[entry] === license &&
      this.#generations[entry] === generation &&
      this.#columns.codes[entry] === code &&
      this.#columns.minutesMs[entry] === minuteMs
    )
  }
}

/** Returns a hash. Its low bits, which select the slot, are well mixed. */
function hashOf(seed: number, code: number, { machineHash0, machineHash1 }: Machine): number {
  const hash = Math.imul(Math.imul(seed, 0x2c1b3c6d) ^ code ^ machineHash0, 0x297a2d39) ^ machineHash1
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 7
}

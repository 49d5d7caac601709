/**
 * Activity entries, one for each license, code, machine and minute: an open hash table over typed arrays. A check that is
 * known costs a probe and three stores, a new one some copies, and neither leaves anything for the garbage collector; with
 * maps of objects the same cost 6 us a check, and as much again in the collector's own threads. A machine is known by its keyed
 * hash, as in the index. Emptied with every flush, so nothing is ever removed.
 */

import { randomInt } from 'node:crypto'

import type { ActivityColumns } from '@keyward/database'
import { CODES } from '@keyward/engine'

/** Whose check it was, as a record of the ring tells it. `bytes` may be shared memory that is written again later. */
export interface Machine {
  bytes: Uint8Array
  machineAt: number
  /** 0: none. */
  machineLength: number
  /** Half of its keyed hash; 0 and 0 for none. */
  machineHash0: number
  machineHash1: number
}

const NONE = -1
/** No entry is further from where its hash points: machine ids that strangers choose to meet there cost no more than this. */
const MOST_STEPS = 64
/** Room for machine ids, on average; when it is full the table is. */
const BYTES_PER_ENTRY = 64

/** What is told of the entries. */
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

  constructor(most: number) {
    this.codes = new Uint8Array(most)
    this.minutesMs = new Float64Array(most)
    this.counts = new Int32Array(most)
    this.firstsMs = new Float64Array(most)
    this.lastsMs = new Float64Array(most)
    this.licenseIds = new Uint8Array(most * 16)
    this.machineAt = new Int32Array(most + 1)
    this.machineBytes = new Uint8Array(most * BYTES_PER_ENTRY)
    this.seen = new Uint8Array(most)
  }
}

export class ActivityTable {
  readonly #most: number
  readonly #mask: number
  /** Not to be guessed from outside. */
  readonly #seed = randomInt(2 ** 31)
  /** By place: the number of the entry there plus one, 0 for none. */
  readonly #slots: Int32Array
  /** By entry. */
  readonly #licenses: Int32Array
  readonly #generations: Int32Array
  readonly #machines0: Int32Array
  readonly #machines1: Int32Array
  #columns: Columns
  /** What was handed over last. */
  #taken: Columns
  #size = 0

  constructor(most: number) {
    this.#most = most
    const places = 2 ** Math.ceil(Math.log2(most * 2))
    this.#mask = places - 1
    this.#slots = new Int32Array(places)
    this.#licenses = new Int32Array(most)
    this.#generations = new Int32Array(most)
    this.#machines0 = new Int32Array(most)
    this.#machines1 = new Int32Array(most)
    this.#columns = new Columns(most)
    this.#taken = new Columns(most)
  }

  get size(): number {
    return this.#size
  }

  get isFull(): boolean {
    return this.#size === this.#most
  }

  /** The entry of this license, code, machine and minute; -1 when there is none. */
  find(license: number, generation: number, code: number, minuteMs: number, machine: Machine): number {
    const hash = hashOf(this.#seed ^ license, code, machine)
    for (let step = 0; step < MOST_STEPS; step++) {
      const entry = (this.#slots[(hash + step) & this.#mask] ?? 0) - 1
      if (entry < 0) return NONE
      if (this.#isFor(entry, license, generation, code, minuteMs, machine)) return entry
    }
    return NONE
  }

  /** Counts a check more in an entry that `find` gave. */
  count(entry: number, atMs: number): void {
    const { counts, firstsMs, lastsMs } = this.#columns
    counts[entry] = (counts[entry] ?? 0) + 1
    // Workers' records do not come in the order of their times.
    if (atMs > (lastsMs[entry] ?? 0)) lastsMs[entry] = atMs
    if (atMs < (firstsMs[entry] ?? 0)) firstsMs[entry] = atMs
  }

  /** Adds an entry that `find` did not find; false when there is no room for it. `licenseId`: 16 bytes. */
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
    const start = columns.machineAt[entry] ?? 0
    const { bytes, machineAt, machineLength } = machine
    if (entry === this.#most || start + machineLength > columns.machineBytes.length) return false
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
    for (let i = 0; i < machineLength; i++) columns.machineBytes[start + i] = bytes[machineAt + i] ?? 0
    columns.machineAt[entry + 1] = start + machineLength
    return true
  }

  /** Hands over all entries, none of them `seen`, and begins anew. They stay as they are until the next call. */
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

  #place(entry: number, hash: number): boolean {
    for (let step = 0; step < MOST_STEPS; step++) {
      const at = (hash + step) & this.#mask
      if (this.#slots[at] !== 0) continue
      this.#slots[at] = entry + 1
      return true
    }
    return false
  }

  #isFor(
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

/** Mixed well, since places come from its low bits. */
function hashOf(seed: number, code: number, { machineHash0, machineHash1 }: Machine): number {
  const hash = Math.imul(Math.imul(seed, 0x2c1b3c6d) ^ code ^ machineHash0, 0x297a2d39) ^ machineHash1
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 7
}

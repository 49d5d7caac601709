/**
 * Activity entries, one for each license, code, machine and minute: an open hash table over typed arrays. A check that is
 * known costs a probe and three stores, a new one some copies, and neither leaves anything for the garbage collector; with
 * maps of objects the same cost 6 us a check, and as much again in the collector's own threads. The bytes decide, never the
 * hash alone. Emptied with every flush, so nothing is ever removed.
 */

import { randomInt } from 'node:crypto'

import type { RecordBatch } from '@keyward/database'
import { CODES } from '@keyward/engine'

type Activity = RecordBatch['activity'][number]

/** Whose check it was, as a record of the ring tells it. `bytes` may be shared memory that is written again later. */
export interface Machine {
  bytes: Uint8Array
  machineAt: number
  /** 0: none. */
  machineLength: number
}

const NONE = -1
/** No entry is further from where its hash points: machine ids that strangers choose to meet there cost no more than this. */
const MOST_STEPS = 64
/** Room for machine ids, on average; when it is full the table is. */
const BYTES_PER_ENTRY = 64

export class ActivityTable {
  readonly #most: number
  readonly #mask: number
  /** Not to be guessed from outside. */
  readonly #seed = randomInt(2 ** 31)
  /** By place: the number of the entry there plus one, 0 for none; and its hash. */
  readonly #slots: Int32Array
  readonly #hashes: Int32Array
  /** By entry. */
  readonly #licenses: Int32Array
  readonly #serials: Int32Array
  readonly #codes: Uint8Array
  readonly #minutes: Float64Array
  readonly #counts: Float64Array
  readonly #firsts: Float64Array
  readonly #lasts: Float64Array
  readonly #ids: Uint8Array
  /** Where the entry's machine id ends in `#pool`; it begins where the one before ends. */
  readonly #ends: Int32Array
  readonly #pool: Uint8Array
  #size = 0

  constructor(most: number) {
    this.#most = most
    const places = 2 ** Math.ceil(Math.log2(most * 2))
    this.#mask = places - 1
    this.#slots = new Int32Array(places)
    this.#hashes = new Int32Array(places)
    this.#licenses = new Int32Array(most)
    this.#serials = new Int32Array(most)
    this.#codes = new Uint8Array(most)
    this.#minutes = new Float64Array(most)
    this.#counts = new Float64Array(most)
    this.#firsts = new Float64Array(most)
    this.#lasts = new Float64Array(most)
    this.#ids = new Uint8Array(most * 16)
    this.#ends = new Int32Array(most)
    this.#pool = new Uint8Array(most * BYTES_PER_ENTRY)
  }

  get size(): number {
    return this.#size
  }

  get isFull(): boolean {
    return this.#size === this.#most
  }

  /** The entry of this license, code, machine and minute; -1 when there is none. */
  find(license: number, serial: number, code: number, minuteMs: number, machine: Machine): number {
    const hash = hashOf(this.#seed ^ license, code, machine)
    for (let step = 0; step < MOST_STEPS; step++) {
      const at = (hash + step) & this.#mask
      const entry = (this.#slots[at] ?? 0) - 1
      if (entry < 0) return NONE
      if (this.#hashes[at] === hash && this.#isFor(entry, license, serial, code, minuteMs, machine)) return entry
    }
    return NONE
  }

  /** Counts a check more in an entry that `find` gave. */
  count(entry: number, atMs: number): void {
    this.#counts[entry] = (this.#counts[entry] ?? 0) + 1
    // Workers' records do not come in the order of their times.
    if (atMs > (this.#lasts[entry] ?? 0)) this.#lasts[entry] = atMs
    if (atMs < (this.#firsts[entry] ?? 0)) this.#firsts[entry] = atMs
  }

  /** Adds an entry that `find` did not find; false when there is no room for it. `licenseId`: 16 bytes. */
  add(
    license: number,
    serial: number,
    code: number,
    minuteMs: number,
    machine: Machine,
    licenseId: Uint8Array,
    atMs: number,
  ): boolean {
    const entry = this.#size
    const start = this.#start(entry)
    const { bytes, machineAt, machineLength } = machine
    if (entry === this.#most || start + machineLength > this.#pool.length) return false
    if (!this.#place(entry, hashOf(this.#seed ^ license, code, machine))) return false
    this.#size++
    this.#licenses[entry] = license
    this.#serials[entry] = serial
    this.#codes[entry] = code
    this.#minutes[entry] = minuteMs
    this.#counts[entry] = 1
    this.#firsts[entry] = this.#lasts[entry] = atMs
    this.#ids.set(licenseId, entry * 16)
    for (let i = 0; i < machineLength; i++) this.#pool[start + i] = bytes[machineAt + i] ?? 0
    this.#ends[entry] = start + machineLength
    return true
  }

  /** Hands over all entries and begins anew. */
  take(): Activity[] {
    const taken = Array.from({ length: this.#size }, (_, entry) => this.#entry(entry))
    this.#slots.fill(0)
    this.#size = 0
    return taken
  }

  #entry(entry: number): Activity {
    const start = this.#start(entry)
    const end = this.#ends[entry] ?? 0
    return {
      minuteMs: this.#minutes[entry] ?? 0,
      licenseId: this.#ids.slice(entry * 16, entry * 16 + 16),
      code: CODES[this.#codes[entry] ?? 0] ?? 'VALID',
      machineId: start === end ? null : this.#pool.slice(start, end),
      count: this.#counts[entry] ?? 0,
      firstAtMs: this.#firsts[entry] ?? 0,
      lastAtMs: this.#lasts[entry] ?? 0,
    }
  }

  #start(entry: number): number {
    return entry === 0 ? 0 : (this.#ends[entry - 1] ?? 0)
  }

  #place(entry: number, hash: number): boolean {
    for (let step = 0; step < MOST_STEPS; step++) {
      const at = (hash + step) & this.#mask
      if (this.#slots[at] !== 0) continue
      this.#slots[at] = entry + 1
      this.#hashes[at] = hash
      return true
    }
    return false
  }

  #isFor(entry: number, license: number, serial: number, code: number, minuteMs: number, machine: Machine): boolean {
    if (this.#licenses[entry] !== license || this.#serials[entry] !== serial) return false
    if (this.#codes[entry] !== code || this.#minutes[entry] !== minuteMs) return false
    const start = this.#start(entry)
    const { bytes, machineAt, machineLength } = machine
    if ((this.#ends[entry] ?? 0) - start !== machineLength) return false
    for (let i = 0; i < machineLength; i++) if (this.#pool[start + i] !== bytes[machineAt + i]) return false
    return true
  }
}

/** FNV-1a, mixed once more since places come from its low bits. */
function hashOf(seed: number, code: number, { bytes, machineAt, machineLength }: Machine): number {
  let hash = Math.imul(0x811c9dc5 ^ seed, 0x01000193) ^ code
  for (let i = machineAt; i < machineAt + machineLength; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193)
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
}

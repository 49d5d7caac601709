/**
 * Implements the ring in which a worker records its checks for the main thread. The ring consists of words in shared memory,
 * with one writer and one reader. Recording a check costs a few stores and sends no message. When the ring is full, the record
 * is dropped and counted, so checks never wait. The ring contains no address and no country (docs/api.md#d1).
 *
 *   A record in words:
 *   | size | code, flags, machine id length | organization | license, generation | product, generation | time (2) |
 *   | machine hash (2) | matched count | hostname length | matched rules, generations | machine id, hostname (bytes) |
 *
 * A record never wraps around the end of the ring. A negative size `-n` means that the last `n` words of the ring are skipped.
 */

import { type Check, MATCHED_CAPACITY, RECORD_MACHINE, type Verdict } from '@keyward/engine'

const DATA_WORDS = 1 << 20
// The head and the tail are in separate cache lines. Both count words since the start, modulo 2^32.
const HEADER_WORDS = 32
const HEAD = 0
const TAIL = 16
const FIXED_WORDS = 13
// Flags of a record.
const EXCLUDED = 1
const NEW_MACHINE = 2
const MAX_HOSTNAME_BYTES = 512

/** A record of the ring. The object is reused for the next record. */
export interface RecordView {
  /** The engine's number of the code. */
  code: number
  excluded: boolean
  /** Whether the license has no machine limit and the machine is not recorded yet. */
  isNewMachine: boolean
  organization: number
  /** The row of the license, or -1 for an unknown key. */
  license: number
  licenseGeneration: number
  product: number
  productGeneration: number
  atMs: number
  /** The ring's memory, which contains the machine id. Copy the id before the next record is read. */
  readonly bytes: Uint8Array
  machineAt: number
  /** The length of the machine id in bytes, or 0 without a machine id. */
  machineLength: number
  /** The first half of the machine id's keyed hash, or 0 without a machine id. */
  machineHash0: number
  /** The second half of the hash, or 0 without a machine id. */
  machineHash1: number
  hostname: string | null
  matchedCount: number
  matched: Int32Array
  matchedGenerations: Int32Array
}

export function createRing(): SharedArrayBuffer {
  return new SharedArrayBuffer((HEADER_WORDS + DATA_WORDS) * 4)
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export class RingWriter {
  readonly #words: Int32Array
  readonly #bytes: Uint8Array
  readonly #onDrop: () => void
  /** The position after the last record. `publish` stores it in HEAD. */
  #head = 0
  /** The last value read from TAIL. The reader may have advanced TAIL since. */
  #tail = 0
  readonly #hostname = new Uint8Array(MAX_HOSTNAME_BYTES)

  constructor(shared: SharedArrayBuffer, onDrop: () => void) {
    this.#words = new Int32Array(shared)
    this.#bytes = new Uint8Array(shared)
    this.#onDrop = onDrop
    this.#head = Atomics.load(this.#words, HEAD)
    this.#tail = Atomics.load(this.#words, TAIL)
  }

  /**
   * Records a check. The caller may reuse `check` and `verdict` after the call. The main thread can read the record after the
   * next `publish`.
   */
  record(check: Check, verdict: Verdict, code: number, nowMs: number, hostname: string | null): void {
    const words = this.#words
    const { machineIdLength } = check
    const hostLength = hostname === null ? 0 : encoder.encodeInto(hostname, this.#hostname).written
    const { matchedCount } = verdict
    const size = FIXED_WORDS + 2 * matchedCount + ((machineIdLength + hostLength + 3) >>> 2)
    const at = this.#reserve(size)
    if (at < 0) return this.#onDrop()
    words[at] = size
    words[at + 1] =
      code |
      (verdict.excluded ? EXCLUDED << 8 : 0) |
      (verdict.slot === RECORD_MACHINE ? NEW_MACHINE << 8 : 0) |
      (machineIdLength << 16)
    words[at + 2] = check.organization
    words[at + 3] = verdict.license
    words[at + 4] = verdict.licenseGeneration
    words[at + 5] = verdict.product
    words[at + 6] = verdict.productGeneration
    words[at + 7] = nowMs / 0x1_0000_0000
    words[at + 8] = nowMs >>> 0
    words[at + 9] = verdict.machineHash0
    words[at + 10] = verdict.machineHash1
    words[at + 11] = matchedCount
    words[at + 12] = hostLength
    let word = at + FIXED_WORDS
    for (let i = 0; i < matchedCount; i++) {
      words[word++] = verdict.matched[i]!
      words[word++] = verdict.matchedGenerations[i]!
    }
    const from = word * 4
    for (let i = 0; i < machineIdLength; i++) this.#bytes[from + i] = check.machineId[i]!
    for (let i = 0; i < hostLength; i++) this.#bytes[from + machineIdLength + i] = this.#hostname[i]!
    this.#head = (this.#head + size) | 0
  }

  /** Makes all records written so far visible to the main thread. */
  publish(): void {
    Atomics.store(this.#words, HEAD, this.#head)
  }

  /** Returns the index of `size` contiguous free words, or -1 if there are none. Skips the end of the ring if it is too short. */
  #reserve(size: number): number {
    const offset = this.#head & (DATA_WORDS - 1)
    const toEnd = DATA_WORDS - offset
    const needed = size <= toEnd ? size : size + toEnd
    if (needed > this.#free()) {
      this.#tail = Atomics.load(this.#words, TAIL)
      if (needed > this.#free()) return -1
    }
    if (size <= toEnd) return HEADER_WORDS + offset
    this.#words[HEADER_WORDS + offset] = -toEnd
    // The skipped words become visible to the reader together with the next record.
    this.#head = (this.#head + toEnd) | 0
    return HEADER_WORDS
  }

  #free(): number {
    return DATA_WORDS - ((this.#head - this.#tail) >>> 0)
  }
}

export class RingReader {
  readonly #words: Int32Array
  readonly #view: RecordView

  constructor(shared: SharedArrayBuffer) {
    this.#words = new Int32Array(shared)
    this.#view = {
      code: 0,
      excluded: false,
      isNewMachine: false,
      organization: -1,
      license: -1,
      licenseGeneration: 0,
      product: -1,
      productGeneration: 0,
      atMs: 0,
      bytes: new Uint8Array(shared),
      machineAt: 0,
      machineLength: 0,
      machineHash0: 0,
      machineHash1: 0,
      hostname: null,
      matchedCount: 0,
      matched: new Int32Array(MATCHED_CAPACITY),
      matchedGenerations: new Int32Array(MATCHED_CAPACITY),
    }
  }

  /** Passes at most `most` of the records that are in the ring now to `take`, oldest first. Returns the number of these records. */
  drain(take: (record: RecordView) => void, most = Infinity): number {
    const words = this.#words
    const head = Atomics.load(words, HEAD)
    let tail = Atomics.load(words, TAIL)
    let count = 0
    let steps = 0
    while (tail !== head && count < most) {
      const at = HEADER_WORDS + (tail & (DATA_WORDS - 1))
      const size = words[at]!
      if (size > 0) {
        take(this.#read(at))
        count++
      }
      tail = (tail + Math.abs(size)) | 0
      // The tail is stored every 256 steps, so that the writer gains space during a long drain.
      if ((++steps & 255) === 0) Atomics.store(words, TAIL, tail)
    }
    Atomics.store(words, TAIL, tail)
    return count
  }

  #read(at: number): RecordView {
    const words = this.#words
    const view = this.#view
    const flags = words[at + 1]!
    view.code = flags & 0xff
    view.excluded = (flags & (EXCLUDED << 8)) !== 0
    view.isNewMachine = (flags & (NEW_MACHINE << 8)) !== 0
    view.organization = words[at + 2]!
    view.license = words[at + 3]!
    view.licenseGeneration = words[at + 4]!
    view.product = words[at + 5]!
    view.productGeneration = words[at + 6]!
    view.atMs = words[at + 7]! * 0x1_0000_0000 + (words[at + 8]! >>> 0)
    view.machineHash0 = words[at + 9]!
    view.machineHash1 = words[at + 10]!
    view.matchedCount = words[at + 11]!
    const hostLength = words[at + 12]!
    let word = at + FIXED_WORDS
    for (let i = 0; i < view.matchedCount; i++) {
      view.matched[i] = words[word++]!
      view.matchedGenerations[i] = words[word++]!
    }
    view.machineAt = word * 4
    view.machineLength = flags >>> 16
    const machineEnd = view.machineAt + view.machineLength
    // A decoder does not accept shared memory, so the bytes are copied.
    view.hostname = hostLength === 0 ? null : decoder.decode(view.bytes.slice(machineEnd, machineEnd + hostLength))
    return view
  }
}

/**
 * What one worker tells the main thread of its checks: a ring of words in shared memory with one writer and one reader, so
 * that recording a check costs some stores and no message. A full ring drops the record, and the worker counts that; a check
 * never waits for what is recorded of it. No address and no country is ever written here.
 *
 *   words: | size | code, flags, machine id length | organization | license, generation | product, generation | time | machine's hash | counts | rules | bytes |
 */

import type { Check, Verdict } from '@keyward/engine'
import { MATCHED_CAPACITY, RECORD_MACHINE } from '@keyward/engine'

const DATA_WORDS = 1 << 20
const HEADER_WORDS = 32 // head and tail on cache lines of their own
const HEAD = 0
const TAIL = 16
const FIXED_WORDS = 13
const EXCLUDED = 1
const NEW_MACHINE = 2
const MAX_HOSTNAME_BYTES = 512

/** One record, read in place and used again for the next. */
export interface RecordView {
  code: number
  excluded: boolean
  /** The license has no machine limit and the machine is to be recorded. */
  isNewMachine: boolean
  organization: number
  /** -1: the key does not exist. */
  license: number
  licenseGeneration: number
  product: number
  productGeneration: number
  atMs: number
  /** Where the machine id lies in the ring's `bytes`, to be read before the next record is. Length 0: none. */
  readonly bytes: Uint8Array
  machineAt: number
  machineLength: number
  /** As the verdict has it. */
  machineHash0: number
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
  /** What is in shared memory as HEAD, which nobody else writes; and TAIL as it was last read: it only moves on. */
  #head = 0
  #tail = 0
  readonly #hostname = new Uint8Array(MAX_HOSTNAME_BYTES)

  constructor(shared: SharedArrayBuffer, onDrop: () => void) {
    this.#words = new Int32Array(shared)
    this.#bytes = new Uint8Array(shared)
    this.#onDrop = onDrop
    this.#head = Atomics.load(this.#words, HEAD)
    this.#tail = Atomics.load(this.#words, TAIL)
  }

  checked(check: Check, verdict: Verdict, code: number, nowMs: number, hostname: string | null): void {
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
      words[word++] = verdict.matched[i] ?? 0
      words[word++] = verdict.matchedGenerations[i] ?? 0
    }
    const from = word * 4
    for (let i = 0; i < machineIdLength; i++) this.#bytes[from + i] = check.machineId[i] ?? 0
    for (let i = 0; i < hostLength; i++) this.#bytes[from + machineIdLength + i] = this.#hostname[i] ?? 0
    this.#head = (this.#head + size) | 0
    Atomics.store(words, HEAD, this.#head)
  }

  /** The word where `size` words in a row are free, or -1. Skips to the start when the end of the ring is too short. */
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
    // Seen by the reader together with the record behind it.
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

  /** Hands every record that is there now to `take`, oldest first; returns how many. */
  drain(take: (record: RecordView) => void): number {
    const words = this.#words
    const head = Atomics.load(words, HEAD)
    let tail = Atomics.load(words, TAIL)
    let count = 0
    let steps = 0
    while (tail !== head) {
      const at = HEADER_WORDS + (tail & (DATA_WORDS - 1))
      const size = words[at] ?? 0
      if (size > 0) {
        take(this.#read(at))
        count++
      }
      tail = (tail + Math.abs(size)) | 0
      // Now and then, so that the writer has room while this goes on.
      if ((++steps & 255) === 0) Atomics.store(words, TAIL, tail)
    }
    Atomics.store(words, TAIL, tail)
    return count
  }

  #read(at: number): RecordView {
    const words = this.#words
    const view = this.#view
    const flags = words[at + 1] ?? 0
    view.code = flags & 0xff
    view.excluded = (flags & (EXCLUDED << 8)) !== 0
    view.isNewMachine = (flags & (NEW_MACHINE << 8)) !== 0
    view.organization = words[at + 2] ?? -1
    view.license = words[at + 3] ?? -1
    view.licenseGeneration = words[at + 4] ?? 0
    view.product = words[at + 5] ?? -1
    view.productGeneration = words[at + 6] ?? 0
    view.atMs = (words[at + 7] ?? 0) * 0x1_0000_0000 + ((words[at + 8] ?? 0) >>> 0)
    view.machineHash0 = words[at + 9] ?? 0
    view.machineHash1 = words[at + 10] ?? 0
    view.matchedCount = words[at + 11] ?? 0
    const hostLength = words[at + 12] ?? 0
    let word = at + FIXED_WORDS
    for (let i = 0; i < view.matchedCount; i++) {
      view.matched[i] = words[word++] ?? 0
      view.matchedGenerations[i] = words[word++] ?? 0
    }
    view.machineAt = word * 4
    view.machineLength = flags >>> 16
    const machineEnd = view.machineAt + view.machineLength
    // A decoder takes no shared memory.
    view.hostname = hostLength === 0 ? null : decoder.decode(view.bytes.slice(machineEnd, machineEnd + hostLength))
    return view
  }
}

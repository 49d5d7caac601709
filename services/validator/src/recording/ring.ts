/**
 * What one worker tells the main thread of its checks: a ring of words in shared memory with one writer and one reader, so
 * that recording a check costs some stores and no message. A full ring drops the record, and the worker counts that; a check
 * never waits for what is recorded of it. No address and no country is ever written here.
 *
 *   words: | size | code, flags, machine id length | organization | license, serial | product, serial | time | counts | rules | bytes |
 */

import type { Check, Verdict } from '@keyward/engine'
import { RECORD_MACHINE } from '@keyward/engine'

import type { Recorder } from '../transport/validate.ts'

const DATA_WORDS = 1 << 20
const HEADER_WORDS = 32 // head and tail on cache lines of their own
const HEAD = 0
const TAIL = 16
const FIXED_WORDS = 11
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
  licenseSerial: number
  product: number
  productSerial: number
  atMs: number
  /** A view into the ring, gone when the next record is read; empty for none. */
  machineId: Uint8Array
  hostname: string | null
  matchedCount: number
  matched: Int32Array
  matchedSerials: Int32Array
}

export function createRing(): SharedArrayBuffer {
  return new SharedArrayBuffer((HEADER_WORDS + DATA_WORDS) * 4)
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export class RingWriter implements Recorder {
  readonly #words: Int32Array
  readonly #bytes: Uint8Array
  readonly #onDrop: () => void
  readonly #hostname = new Uint8Array(MAX_HOSTNAME_BYTES)

  constructor(shared: SharedArrayBuffer, onDrop: () => void) {
    this.#words = new Int32Array(shared)
    this.#bytes = new Uint8Array(shared)
    this.#onDrop = onDrop
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
    words[at + 4] = verdict.licenseSerial
    words[at + 5] = verdict.product
    words[at + 6] = verdict.productSerial
    words[at + 7] = nowMs / 0x1_0000_0000
    words[at + 8] = nowMs >>> 0
    words[at + 9] = matchedCount
    words[at + 10] = hostLength
    let word = at + FIXED_WORDS
    for (let i = 0; i < matchedCount; i++) {
      words[word++] = verdict.matched[i] ?? 0
      words[word++] = verdict.matchedSerials[i] ?? 0
    }
    const from = word * 4
    for (let i = 0; i < machineIdLength; i++) this.#bytes[from + i] = check.machineId[i] ?? 0
    for (let i = 0; i < hostLength; i++) this.#bytes[from + machineIdLength + i] = this.#hostname[i] ?? 0
    Atomics.store(words, HEAD, Atomics.load(words, HEAD) + size)
  }

  /** The word where `size` words in a row are free, or -1. Skips to the start when the end of the ring is too short. */
  #reserve(size: number): number {
    const words = this.#words
    const head = Atomics.load(words, HEAD) >>> 0
    const free = DATA_WORDS - ((head - Atomics.load(words, TAIL)) >>> 0)
    const offset = head & (DATA_WORDS - 1)
    const toEnd = DATA_WORDS - offset
    if (size <= toEnd) return size <= free ? HEADER_WORDS + offset : -1
    if (size + toEnd > free) return -1
    words[HEADER_WORDS + offset] = -toEnd
    Atomics.store(words, HEAD, (head + toEnd) | 0)
    return HEADER_WORDS
  }
}

export class RingReader {
  readonly #words: Int32Array
  readonly #bytes: Uint8Array
  readonly #view: RecordView = {
    code: 0,
    excluded: false,
    isNewMachine: false,
    organization: -1,
    license: -1,
    licenseSerial: 0,
    product: -1,
    productSerial: 0,
    atMs: 0,
    machineId: new Uint8Array(0),
    hostname: null,
    matchedCount: 0,
    matched: new Int32Array(1024),
    matchedSerials: new Int32Array(1024),
  }

  constructor(shared: SharedArrayBuffer) {
    this.#words = new Int32Array(shared)
    this.#bytes = new Uint8Array(shared)
  }

  /** Hands every record that is there now to `take`, oldest first; returns how many. */
  drain(take: (record: RecordView) => void): number {
    const words = this.#words
    const head = Atomics.load(words, HEAD)
    let tail = Atomics.load(words, TAIL)
    let count = 0
    while (tail !== head) {
      const at = HEADER_WORDS + (tail & (DATA_WORDS - 1))
      const size = words[at] ?? 0
      if (size > 0) {
        take(this.#read(at))
        count++
      }
      tail = (tail + Math.abs(size)) | 0
      Atomics.store(words, TAIL, tail)
    }
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
    view.licenseSerial = words[at + 4] ?? 0
    view.product = words[at + 5] ?? -1
    view.productSerial = words[at + 6] ?? 0
    view.atMs = (words[at + 7] ?? 0) * 0x1_0000_0000 + ((words[at + 8] ?? 0) >>> 0)
    view.matchedCount = words[at + 9] ?? 0
    const hostLength = words[at + 10] ?? 0
    let word = at + FIXED_WORDS
    for (let i = 0; i < view.matchedCount; i++) {
      view.matched[i] = words[word++] ?? 0
      view.matchedSerials[i] = words[word++] ?? 0
    }
    const machineEnd = word * 4 + (flags >>> 16)
    view.machineId = this.#bytes.subarray(word * 4, machineEnd)
    // A decoder takes no shared memory.
    view.hostname = hostLength === 0 ? null : decoder.decode(this.#bytes.slice(machineEnd, machineEnd + hostLength))
    return view
  }
}

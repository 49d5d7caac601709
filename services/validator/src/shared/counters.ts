/**
 * Stores the counters of one worker in shared memory. Only the worker writes these counters, and the main thread reads them at
 * each scrape. Counting costs about a nanosecond and sends no message.
 */

import { validationErrorCode } from '@keyward/contract/validation'
import { CODE, CODES, type Code } from '@keyward/engine'

export const CHECK_APIS = ['v1', 'v2'] as const
type CheckApi = (typeof CHECK_APIS)[number]

/** The counted events: each error code, and the events listed here. */
export const EVENTS = [
  ...validationErrorCode.options,
  // Clients that disconnected before the response. A disconnect while the request waits for Postgres is not counted.
  'aborted',
  'failed',
  'slowBody',
  'indexBusy',
  'released',
  'publicKeys',
  'recordDropped',
  // Requests for a signature, by whether the validator has a delegation.
  'signed',
  'unsigned',
] as const
export type Event = (typeof EVENTS)[number]

/** The upper bounds of the duration buckets in seconds. One more bucket without a bound follows. */
export const DURATION_BOUNDS = [
  0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
] as const

// The order of the slots: checks by API and code, events, duration buckets, the sum of the durations.
const CHECK_SLOTS = CHECK_APIS.length * CODES.length
const DURATION_SLOT = CHECK_SLOTS + EVENTS.length
const SUM_SLOT = DURATION_SLOT + DURATION_BOUNDS.length + 1
const SLOTS = SUM_SLOT + 1

export class Counters {
  readonly shared: SharedArrayBuffer
  readonly #slots: Float64Array

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(SLOTS * 8)) {
    this.shared = shared
    this.#slots = new Float64Array(shared)
  }

  /** Counts a check. `api` is the index in CHECK_APIS, and `code` is the engine's number of the code. */
  countCheck(api: 0 | 1, code: number): void {
    const slot = api * CODES.length + code
    this.#slots[slot] = this.#slots[slot]! + 1
  }

  count(event: Event): void {
    const slot = CHECK_SLOTS + EVENTS.indexOf(event)
    this.#slots[slot] = this.#slots[slot]! + 1
  }

  /** Adds the duration of one check to its bucket and to the sum. Only a sample of the checks is timed. */
  observe(seconds: number): void {
    let bucket = 0
    while (bucket < DURATION_BOUNDS.length && seconds > DURATION_BOUNDS[bucket]!) bucket++
    this.#slots[DURATION_SLOT + bucket] = this.#slots[DURATION_SLOT + bucket]! + 1
    this.#slots[SUM_SLOT] = this.#slots[SUM_SLOT]! + seconds
  }

  /** Returns the number of durations in each bucket, and the sum of all durations in seconds. */
  durations(): { buckets: number[]; sum: number } {
    const buckets = [...this.#slots.subarray(DURATION_SLOT, SUM_SLOT)]
    return { buckets, sum: this.#slots[SUM_SLOT]! }
  }

  checks(api: CheckApi, code: Code): number {
    return this.#slots[CHECK_APIS.indexOf(api) * CODES.length + CODE[code]]!
  }

  events(event: Event): number {
    return this.#slots[CHECK_SLOTS + EVENTS.indexOf(event)]!
  }

  /** Adds the counts of another worker. */
  add(other: Counters): void {
    for (let i = 0; i < this.#slots.length; i++) this.#slots[i] = this.#slots[i]! + other.#slots[i]!
  }
}

/**
 * Counters of one worker: plain slots in shared memory, one writer, read by the main thread when metrics are asked for.
 * Counting costs a nanosecond and no message.
 */

import { CODES } from '@keyward/engine'

export const CHECK_APIS = ['v1', 'v2'] as const
export type CheckApi = (typeof CHECK_APIS)[number]

export const EVENTS = [
  'INVALID_REQUEST',
  'UNAUTHORIZED',
  'PAYLOAD_TOO_LARGE',
  'UNAVAILABLE',
  'NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'REQUEST_TIMEOUT',
  'badFraming',
  'aborted',
  'failed',
  'slowBody',
  'indexBusy',
  'released',
  'publicKeys',
  'recordDropped',
] as const
export type Event = (typeof EVENTS)[number]

const CHECK_SLOTS = CHECK_APIS.length * CODES.length

export class Counters {
  readonly shared: SharedArrayBuffer
  readonly #slots: Float64Array

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer((CHECK_SLOTS + EVENTS.length) * 8)) {
    this.shared = shared
    this.#slots = new Float64Array(shared)
  }

  countCheck(api: number, code: number): void {
    const slot = api * CODES.length + code
    this.#slots[slot] = (this.#slots[slot] ?? 0) + 1
  }

  count(event: Event): void {
    const slot = CHECK_SLOTS + EVENTS.indexOf(event)
    this.#slots[slot] = (this.#slots[slot] ?? 0) + 1
  }

  checks(api: CheckApi, code: (typeof CODES)[number]): number {
    return this.#slots[CHECK_APIS.indexOf(api) * CODES.length + CODES.indexOf(code)] ?? 0
  }

  events(event: Event): number {
    return this.#slots[CHECK_SLOTS + EVENTS.indexOf(event)] ?? 0
  }

  /** Takes over what another worker has counted, so that totals never go back when a worker is replaced. */
  add(other: Counters): void {
    for (let i = 0; i < this.#slots.length; i++) this.#slots[i] = (this.#slots[i] ?? 0) + (other.#slots[i] ?? 0)
  }
}

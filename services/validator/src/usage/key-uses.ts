/**
 * The last use of API keys, to the minute. Each worker reports a key about once a minute;
 * the reports of all workers are one row a minute.
 */

import { toHex } from '@keyward/database/ids'

const RESOLUTION_MS = 60_000
const CAPACITY = 100_000

export interface KeyUse {
  id: Uint8Array
  atMs: number
}

export class KeyUses {
  /** By id in hexadecimal: the last use that was taken or waits. */
  #recorded = new Map<string, number>()
  #waiting: KeyUse[] = []

  get waiting(): number {
    return this.#waiting.length
  }

  /** Keeps `id`. */
  add(id: Uint8Array, atMs: number): void {
    const key = toHex(id)
    const sinceMs = atMs - (this.#recorded.get(key) ?? -Infinity)
    if (sinceMs >= 0 && sinceMs < RESOLUTION_MS) return
    if (this.#recorded.size >= CAPACITY) this.#recorded = new Map()
    this.#recorded.set(key, atMs)
    this.#waiting.push({ id, atMs })
  }

  take(): KeyUse[] {
    const taken = this.#waiting
    this.#waiting = []
    return taken
  }
}

/**
 * Collects the last use of API keys, with a resolution of one minute. Each worker reports a key about once a minute. The
 * reports of all workers yield one row per key and minute.
 */

import { toHex } from '@keyward/database/ids'

const RESOLUTION_MS = 60_000
const CAPACITY = 100_000

interface KeyUse {
  id: Uint8Array
  atMs: number
}

export class KeyUses {
  /** The last recorded use of each key, by id in hexadecimal. */
  #recorded = new Map<string, number>()
  #waiting: KeyUse[] = []

  get waiting(): number {
    return this.#waiting.length
  }

  /** Adds a use. The caller must not write to `id` after the call. */
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

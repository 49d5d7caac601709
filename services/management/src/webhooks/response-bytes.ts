/**
 * Limits the stored bytes of receivers' responses. A vendor chooses the receivers, and their responses count toward no quota, because users
 * of apps cause the events.
 */

import { Tally } from '@keyward/runtime/tally'

const MAX_BYTES_PER_DAY = 16 * 1024 * 1024
const DAY_MS = 86_400_000

export class ResponseBytes {
  readonly #now: () => number
  #day = 0
  /** The stored bytes of each organization on the current day. */
  readonly #stored = new Tally<string>()

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Returns the response, or null when this process has stored 16 MiB of responses of the organization on the current day. */
  take(organizationId: string, response: string | null): string | null {
    if (response === null) return null
    const day = Math.floor(this.#now() / DAY_MS)
    if (day !== this.#day) this.#stored.clear()
    this.#day = day
    if (this.#stored.of(organizationId) >= MAX_BYTES_PER_DAY) return null
    this.#stored.add(organizationId, Buffer.byteLength(response))
    return response
  }
}

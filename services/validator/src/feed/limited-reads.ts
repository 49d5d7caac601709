/**
 * Limits the number of changes and the duration of one read. After a read that took too long, the number is halved and the next
 * connection allows twice the time, because the same read would take too long again. If there are more changes than the limit, those of
 * the organizations with the most changes are read separately.
 */

import {
  type FeedReading,
  type FeedReadOptions,
  type Id,
  isQueryTimeout,
  isTooSlow,
  MAX_CHANGES,
} from '@keyward/database'

import type { FeedConnection } from './follower-interfaces.ts'

/** The limit is not reduced below this number of changes. */
const LEAST_CHANGES = 500

/** The timeout of a read, unless earlier reads took too long. Most reads take a few milliseconds. */
const USUAL_TIMEOUT_MS = 1_500
const LONGEST_TIMEOUT_MS = 12_000

export class LimitedReads {
  #maxChanges = MAX_CHANGES
  #timeoutMs = USUAL_TIMEOUT_MS

  /** The timeout of the statements of the next connection. */
  get timeoutMs(): number {
    return this.#timeoutMs
  }

  /** Reads the changes after `snapshot`, and adapts the limit of the next read. */
  async read(
    connection: FeedConnection,
    snapshot: string,
    options: Omit<FeedReadOptions, 'maxChanges'>,
  ): Promise<FeedReading> {
    try {
      const reading = await connection.read(snapshot, { ...options, maxChanges: this.#maxChanges })
      // The log lacks changes, or too many changes belong to no organization. The limit stays, because a longer read could time out again.
      if (reading.behind) return reading
      // A limit that separates no further organization has no effect, so the next read has the usual limit.
      this.#timeoutMs = USUAL_TIMEOUT_MS
      if (!reading.large.some((id) => !includes(options.except ?? [], id))) this.#maxChanges = MAX_CHANGES
      return reading
    } catch (error) {
      if (isTooSlow(error)) this.#maxChanges = Math.max(LEAST_CHANGES, this.#maxChanges >> 1)
      // A server that does not respond at all may be frozen, and a longer timeout would only delay the next attempt.
      if (isTooSlow(error) && !isQueryTimeout(error))
        this.#timeoutMs = Math.min(LONGEST_TIMEOUT_MS, this.#timeoutMs * 2)
      throw error
    }
  }
}

function includes(ids: readonly Id[], id: Id): boolean {
  return ids.some((other) => Buffer.compare(id, other) === 0)
}

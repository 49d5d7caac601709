/**
 * Limits the number of changes in one read. The limit is halved after a read that took too long, because the same read would
 * take too long again. Above the limit, organizations with many changes are read separately.
 */

import { type FeedReading, type FeedReadOptions, type Id, isTooSlow, MAX_CHANGES } from '@keyward/database'

import type { FeedConnection } from './follower-interfaces.ts'

/** The limit is not reduced below this number of changes. */
const LEAST_CHANGES = 500

export class LimitedReads {
  #maxChanges = MAX_CHANGES

  /** Reads the changes after `snapshot`, and adapts the limit of the next read. */
  async read(
    connection: FeedConnection,
    snapshot: string,
    options: Omit<FeedReadOptions, 'maxChanges'>,
  ): Promise<FeedReading> {
    try {
      const reading = await connection.read(snapshot, { ...options, maxChanges: this.#maxChanges })
      // If the limit separates no further organization, it does not help, so the next read has the usual limit.
      if (!reading.large.some((id) => !includes(options.except ?? [], id))) this.#maxChanges = MAX_CHANGES
      return reading
    } catch (error) {
      if (isTooSlow(error)) this.#maxChanges = Math.max(LEAST_CHANGES, this.#maxChanges >> 1)
      throw error
    }
  }
}

function includes(ids: readonly Id[], id: Id): boolean {
  return ids.some((other) => Buffer.compare(id, other) === 0)
}

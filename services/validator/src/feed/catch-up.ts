/**
 * Waits until the index contains everything that a snapshot of Postgres contains. Each call makes the follower read,
 * immediately or after the read in progress. All waiting callers share the reads.
 */

import { Snapshot } from '@keyward/database/snapshot'

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'

/**
 * The number of reads that a caller may need. The read in progress may be older than the caller's snapshot, but the next read
 * is not.
 */
const MAX_READS = 2

interface Waiting {
  snapshot: Snapshot
  /** The organization whose changes the caller needs, as a UUID. */
  organizationId: string
  /** The number of reads that have ended since the call. */
  reads: number
  resolve: (isCovered: boolean) => void
}

export class CatchUp {
  readonly #readNow: () => void
  readonly #clock: Clock
  readonly #waiting = new Set<Waiting>()
  /** The snapshot of the last load or read, or null before the first load. */
  #applied: Snapshot | null = null
  /** A later snapshot that is applied for all organizations except those in `except`, or null. */
  #others: { snapshot: Snapshot; except: readonly string[] } | null = null

  /** `readNow` makes the follower read, immediately or after the read in progress. */
  constructor(readNow: () => void, clock: Clock = SYSTEM_CLOCK) {
    this.#readNow = readNow
    this.#clock = clock
  }

  /** Records that the index contains every change up to the snapshot. */
  caughtUp(snapshot: string): void {
    this.#applied = new Snapshot(snapshot)
    this.#others = null
    this.#settle()
  }

  /** Records that the index contains every change up to the snapshot, except those of the organizations `except`. */
  caughtUpExcept(snapshot: string, except: readonly string[]): void {
    this.#others = { snapshot: new Snapshot(snapshot), except }
    this.#settle()
  }

  #settle(): void {
    let isReadNeeded = false
    for (const waiting of this.#waiting) {
      if (this.#isCovered(waiting)) waiting.resolve(true)
      else isReadNeeded ||= ++waiting.reads < MAX_READS
    }
    if (isReadNeeded) this.#readNow()
  }

  /**
   * Resolves to true when the index contains every change of the organization that is visible in the snapshot, or to false after `limitMs`.
   * `snapshot` is the text of `pg_current_snapshot()`.
   */
  async until(snapshot: string, organizationId: string, limitMs: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiting = { snapshot: new Snapshot(snapshot), organizationId, reads: 0, resolve }
    if (this.#isCovered(waiting)) return true
    const cancel = this.#clock.after(limitMs, () => resolve(false))
    this.#waiting.add(waiting)
    this.#readNow()
    const isCovered = await promise
    cancel()
    this.#waiting.delete(waiting)
    return isCovered
  }

  #isCovered({ snapshot, organizationId }: Waiting): boolean {
    if (this.#applied?.covers(snapshot) === true) return true
    const others = this.#others
    return others !== null && !others.except.includes(organizationId) && others.snapshot.covers(snapshot)
  }
}

/** Runs one reload: passes the rows of a load to the target as they arrive. The follower begins and ends the reload. */

import { type FeedReading, isTooSlow } from '@keyward/database'

import { convertChanges, type SkippedRow } from './convert.ts'
import type { FeedConnection, FeedTarget, Load, LoadOutcome, Since } from './follower-interfaces.ts'

/** The maximum number of changes that the read at the end of a gap returns. */
const MAX_CHANGES_OF_GAP = 200_000

interface ComparisonOptions {
  readonly identity: string
  /**
   * The reason for the reload. `first`: this is the first load. `gap`: the index has no position, so changes are not applied
   * meanwhile. `check`: changes are applied meanwhile.
   */
  readonly purpose: 'first' | 'gap' | 'check'
  readonly startedMs: number
  /** Reports skipped rows. Returns how many of them did not fit into the index. */
  readonly report: (skipped: readonly SkippedRow[]) => number
  readonly onProgress: () => void
  /** Called when the load has ended. */
  readonly onEnd: () => void
}

export class Comparison {
  readonly purpose: ComparisonOptions['purpose']
  readonly startedMs: number
  /** The outcome of the load, or null while the load is in progress. */
  outcome: LoadOutcome | { error: unknown } | null = null
  rows = 0
  rowsOverCapacity = 0
  readonly #target: FeedTarget
  readonly #options: ComparisonOptions
  readonly #load: Load
  #hasBegun = false
  #isStopped = false

  constructor(connection: FeedConnection, target: FeedTarget, options: ComparisonOptions) {
    this.purpose = options.purpose
    this.startedMs = options.startedMs
    this.#target = target
    this.#options = options
    // The reload begins before the load, so that rows that change from now on count as newer than the rows of the load.
    if (options.purpose === 'check') this.#begin(null)
    this.#load = connection.load(options.identity, (changes, snapshot) => {
      if (this.#isStopped) return
      this.#begin(snapshot)
      this.rows += changes.length
      const { changes: converted, signingKeys, unreadable } = convertChanges(changes)
      options.report(unreadable)
      this.rowsOverCapacity += options.report(target.receive(converted, signingKeys, snapshot))
      options.onProgress()
    })
    const settle = (outcome: Comparison['outcome']): void => {
      this.outcome = outcome
      options.onEnd()
    }
    this.#load.done.then(settle, (error: unknown) => settle({ error }))
  }

  /**
   * Reads all changes since the snapshot of the load, and the unsettled machines. Returns null when the changes must be read later: they
   * are too many or take too long for one read, or the index is written in place. Returns `again` when another machine has become unsettled
   * during the read, and `behind` when the load must be repeated.
   */
  async readSince(connection: FeedConnection, loaded: string): Promise<Since | 'again' | 'behind' | null> {
    const { isInPlace, unsettled } = this.#target
    if (isInPlace && unsettled.length === 0) return null
    const reading = await readOnce(connection, loaded, unsettled)
    if (reading === null) return unsettled.length === 0 ? null : 'behind'
    if (reading.behind) return 'behind'
    if (this.#target.unsettled.length !== unsettled.length) return 'again'
    const { changes, signingKeys, unreadable } = convertChanges(reading.changes)
    this.#options.report(unreadable)
    return { changes, signingKeys, snapshot: reading.snapshot }
  }

  /** Writes the rows that differ, in one batch with the changes since the snapshot of the load. */
  end(since: Since): void {
    this.#begin(since.snapshot)
    this.#isStopped = true
    this.rowsOverCapacity += this.#options.report(this.#target.endReload(since))
  }

  /** Stops the load and abandons the reload. The index keeps its rows. */
  async stop(): Promise<void> {
    if (this.#isStopped) return
    this.#isStopped = true
    if (this.#hasBegun) this.#target.abandonReload()
    this.#load.close()
    await this.#load.done.catch(() => undefined)
  }

  /**
   * Begins the reload, unless it has begun. When the index has no position, the reload begins at the first batch, so that earlier own
   * writes do not count as newer than its rows.
   */
  #begin(snapshot: string | null): void {
    if (!this.#hasBegun) this.#target.beginReload(snapshot)
    this.#hasBegun = true
  }
}

/** Reads the changes since a snapshot. Returns null, instead of reading again, when the changes are too many or take too long. */
async function readOnce(
  connection: FeedConnection,
  snapshot: string,
  also: FeedTarget['unsettled'],
): Promise<FeedReading | null> {
  try {
    const reading = await connection.read(snapshot, { maxChanges: MAX_CHANGES_OF_GAP, also })
    return reading.large.length > 0 ? null : reading
  } catch (error) {
    if (isTooSlow(error)) return null
    throw error
  }
}

/**
 * Keeps the index equal to Postgres (docs/api.md#p1). It loads every row once. Then it reads the changes that became visible
 * since its previous read: after each notification, after each connect, and at least once a second. A notification contains
 * no data and may be lost.
 *
 * A reload compares the tables with the index in the background, and changes are followed meanwhile. After a crash or a
 * failover, the rows of lost transactions are read again first (`recent-changes.ts`). A gap exists when the log no longer contains the
 * position of the index. The validator is then not ready, and changes are applied only after a reload has ended.
 *
 * If an organization has too many changes for one read, they are read separately, in pages, while the changes of the other
 * organizations are followed. Changes that follow the snapshot of the pages are applied after the last page.
 *
 *   connecting ──► joining ──► following ──error──► connecting
 *                     │           ▲  │
 *                     ▼           │  ▼ behind
 *                  (first load)   gap
 */

import { type FeedReading, type Id, mayContinue, type RowId } from '@keyward/database'
import { Snapshot } from '@keyward/database/snapshot'
import { INDEX_IS_FULL } from '@keyward/engine'

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'
import { Comparison } from './comparison.ts'
import { convertChanges, type SkippedRow } from './convert.ts'
import type {
  FeedConnection,
  FeedSource,
  FeedTarget,
  FollowerEvents,
  LoadOutcome,
  Position,
  Since,
} from './follower-interfaces.ts'
import { LargeRead } from './large-read.ts'
import { LimitedReads } from './limited-reads.ts'
import { type IndexPosition, Pause } from './pause.ts'

export type * from './follower-interfaces.ts'

const POLL_MS = 1_000
const RETRY_MS = 250
/** The delay before the next reload, after a reload of an index with a position was abandoned. */
const PAUSE_MS = 1_000

export class Follower {
  readonly #source: FeedSource
  readonly #target: FeedTarget
  readonly #events: FollowerEvents
  readonly #clock: Clock
  readonly #stopping = new AbortController()
  readonly #pause: Pause
  readonly #reads = new LimitedReads()
  /** The identity of the server from which the index was loaded, or null before the follower has joined a server. */
  #identity: string | null = null
  /** The snapshot up to which every change is applied, or null before the first load and in a gap. */
  #snapshot: string | null = null
  /** The large change that is being read separately, or null. While it is set, `#snapshot` applies to the other organizations. */
  #largeRead: LargeRead | null = null
  /** Whether the index contains pages of a large change that was abandoned. */
  #hasAbandonedPages = false
  /** The reload in progress, or null. */
  #comparison: Comparison | null = null
  /** The number of requests for a reload that have been fulfilled, or null when the index must be reloaded in any case. */
  #reloads: number | null = null
  /** The earliest time of the next reload, after one was abandoned. */
  #nextReloadMs = -Infinity
  /** Whether the first load has ended. */
  #isLoaded = false
  /** Whether there is a gap: the index lacks changes that the log no longer contains. */
  #isInGap = false
  /** Whether to skip the next sleep, because a notification arrived or the connection broke after the last read began. */
  #isNotified = false
  /** Whether a load or read has succeeded since the last error. If so, the next error leads to an immediate reconnect. */
  #hasProgressed = false
  /** The function that ends the current wait, or null while the loop does not wait. */
  #endSleep: (() => void) | null = null
  /** A promise that resolves when the loop has ended, or null before `start`. */
  #done: Promise<void> | null = null

  constructor(source: FeedSource, target: FeedTarget, events: FollowerEvents, clock: Clock = SYSTEM_CLOCK) {
    this.#source = source
    this.#target = target
    this.#events = events
    this.#clock = clock
    this.#pause = new Pause(clock)
  }

  /** Starts the loop. `from` is the position of an index that was restored from a file, or null for an empty index. */
  start(from: IndexPosition | null = null): void {
    if (this.#done !== null) return
    this.#identity = from?.identity ?? null
    this.#snapshot = from?.snapshot ?? null
    this.#done = this.#run()
  }

  /** Records that the restored index is in service, although Postgres has not confirmed it yet. */
  serveRestored(): void {
    this.#isLoaded = true
  }

  /** The position of the index, or null when the index does not equal the rows of Postgres at any snapshot. */
  get position(): IndexPosition | null {
    const isPaged = this.#largeRead !== null || this.#hasAbandonedPages
    const isExact = !isPaged && this.#comparison === null && !this.#target.isInPlace
    if (!isExact || this.#identity === null || this.#snapshot === null) return null
    return { identity: this.#identity, snapshot: this.#snapshot }
  }

  /** Stops reading until `resume`, and returns the position. Returns null and continues if there is no position within three seconds. */
  pause(): Promise<IndexPosition | null> {
    return this.#pause.pause(() => this.#wake())
  }

  resume(): void {
    this.#pause.resume()
  }

  /** Starts a read immediately, or after the read in progress. */
  readNow(): void {
    this.#wake()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.resume()
    this.#wake()
    await this.#done
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#follow()
      } catch (error) {
        if (this.#stopping.signal.aborted) break
        this.#events.onError(error)
        const pauseMs = this.#hasProgressed ? 0 : RETRY_MS
        this.#hasProgressed = false
        await this.#waitAtMost(pauseMs)
      }
    }
    await this.#stopComparison()
  }

  /** Follows the change feed over one connection. Rejects when the connection is lost. */
  async #follow(): Promise<void> {
    let isLost = false
    const connection = await this.#source.connect(
      () => this.#wake(),
      () => {
        isLost = true
        this.#wake()
      },
      this.#reads.timeoutMs,
    )
    try {
      const identity = await this.#join(connection)
      while (!this.#stopping.signal.aborted) {
        await this.#pause.stop(this.position)
        // A stop ends the pause, but the index may still be being copied to the index file.
        if (this.#stopping.signal.aborted) break
        if (isLost) throw new Error('The connection that listens for changes was lost.')
        if (this.#snapshot === null) await this.#load(connection, identity)
        else await this.#read(connection, identity, this.#snapshot)
        await this.#sleep()
      }
    } finally {
      await this.#stopLargeRead()
      connection.close()
    }
  }

  /**
   * Identifies the history of the server. If the index may contain transactions that this history lacks, reads their rows again or begins a
   * gap. Returns the identity of the server.
   */
  async #join(connection: FeedConnection): Promise<string> {
    const { identity, published } = await connection.identify()
    const before = this.#identity
    const isOther = identity !== before
    const also = this.#changedSince(published, identity)
    if (isOther) {
      await this.#stopComparison()
      this.#target.changeHistory()
      this.#reloads = null
    }
    if (published !== null && also !== null) {
      const startedMs = this.#clock.nowMs()
      const reading = await this.#reads.read(connection, published, { also })
      if (!reading.behind && reading.large.length === 0) {
        this.#identity = identity
        this.#apply(reading, { identity, startedMs })
        return identity
      }
    }
    this.#identity = identity
    if (isOther && this.#snapshot !== null) this.#beginGap()
    return identity
  }

  /** Returns the rows of transactions that the server may have lost, or null when they are unknown. */
  #changedSince(published: string | null, identity: string): RowId[] | null {
    if (published === null || this.#identity === null || this.#snapshot === null) return null
    return mayContinue(this.#identity, identity) ? this.#target.changedSince(published) : null
  }

  async #read(connection: FeedConnection, identity: string, from: string): Promise<void> {
    this.#isNotified = false
    const startedMs = this.#clock.nowMs()
    const reading = await this.#reads.read(connection, from, { except: this.#largeRead?.organizations ?? [] })
    this.#events.onRead(this.#clock.nowMs() - startedMs)
    if (reading.behind) {
      await this.#stopLargeRead()
      this.#beginGap()
    } else if (reading.large.length > 0) {
      await this.#beginLargeRead(connection, from, reading.large)
    } else {
      this.#apply(reading, { identity, startedMs })
      if (this.#largeRead === null) await this.#check(connection, reading)
    }
  }

  /** Applies all changes of a reading. */
  #apply(reading: FeedReading, { identity, startedMs }: { identity: string; startedMs: number }): void {
    const { snapshot } = reading
    const { changes, signingKeys, unreadable } = convertChanges(reading.changes)
    this.#report([...unreadable, ...this.#target.apply(changes, signingKeys, snapshot)])
    this.#snapshot = snapshot
    this.#hasProgressed = true
    const position = { snapshot, identity, asOfMs: startedMs }
    if (this.#largeRead === null) this.#caughtUp(position)
    else this.#endLargeRead(this.#largeRead, position)
  }

  /** Reports that the index equals the state of Postgres at the position. */
  #caughtUp(position: Position): void {
    this.#isInGap = false
    this.#isLoaded = true
    this.#hasAbandonedPages = false
    this.#events.onCaughtUp(position)
  }

  /** Begins, continues or ends a reload of an index with a position, after each read. */
  async #check(connection: FeedConnection, { reloads, snapshot }: FeedReading): Promise<void> {
    const comparison = this.#comparison
    if (comparison === null) {
      const isDue = this.#clock.nowMs() >= this.#nextReloadMs
      if (this.#reloads !== reloads && isDue) this.#beginComparison(connection, 'check')
      return
    }
    if (this.#target.isInPlace) return this.#beginGap()
    const { outcome } = comparison
    if (this.#target.isTooLong || (outcome !== null && 'error' in outcome)) {
      if (outcome !== null && 'error' in outcome) this.#events.onError(outcome.error)
      this.#nextReloadMs = this.#clock.nowMs() + PAUSE_MS
      return await this.#stopComparison()
    }
    if (outcome === null) return
    // The remaining part of the index is searched between the next reads.
    if (!isCovered(outcome.snapshot, snapshot) || !this.#target.search()) this.#isNotified = true
    else this.#endComparison(comparison, outcome, { changes: [], signingKeys: [], snapshot })
  }

  /** Begins a gap: the index has no position any more. It keeps the state from before the gap until a reload has ended. */
  #beginGap(): void {
    this.#snapshot = null
    this.#isInGap = true
    this.#isNotified = true
    this.#events.onGap()
  }

  /** Begins, continues or ends the reload of an index without a position. */
  async #load(connection: FeedConnection, identity: string): Promise<void> {
    this.#isNotified = false
    if (this.#comparison?.purpose === 'check' && !this.#target.isInPlace) await this.#stopComparison()
    const comparison = this.#comparison ?? this.#beginComparison(connection, this.#isLoaded ? 'gap' : 'first')
    const { outcome } = comparison
    if (outcome !== null && 'error' in outcome) {
      await this.#stopComparison()
      throw outcome.error
    }
    if (outcome === null) return
    // The index is searched in parts, and the event loop runs between them.
    if (!this.#target.search()) return this.#wakeLater()
    const readMs = this.#clock.nowMs()
    const since = await comparison.readSince(connection, outcome.snapshot)
    if (since === 'again') return this.#wakeLater()
    if (since === 'behind') return await this.#stopComparison()
    const { snapshot } = since ?? outcome
    this.#endComparison(comparison, outcome, since ?? { changes: [], signingKeys: [], snapshot })
    this.#snapshot = snapshot
    // The next read follows at once, because other changes may have been committed meanwhile.
    this.#isNotified = true
    this.#hasProgressed = true
    this.#caughtUp({ snapshot, identity, asOfMs: since === null ? comparison.startedMs : readMs })
  }

  #beginComparison(connection: FeedConnection, purpose: Comparison['purpose']): Comparison {
    const comparison = new Comparison(connection, this.#target, {
      identity: this.#identity ?? '',
      purpose,
      startedMs: this.#clock.nowMs(),
      report: (skipped) => this.#report(skipped),
      onProgress: () => this.#events.onLoadProgress(),
      onEnd: () => this.#wake(),
    })
    this.#comparison = comparison
    return comparison
  }

  #endComparison(comparison: Comparison, { reloads }: LoadOutcome, since: Since): void {
    comparison.end(since)
    this.#comparison = null
    this.#reloads = reloads
    this.#isLoaded = true
    this.#events.onLoaded(this.#clock.nowMs() - comparison.startedMs, comparison.rows, comparison.rowsOverCapacity)
  }

  async #stopComparison(): Promise<void> {
    const comparison = this.#comparison
    this.#comparison = null
    await comparison?.stop()
  }

  /** Begins to read the changes of more organizations separately. The next read follows at once. */
  async #beginLargeRead(connection: FeedConnection, from: string, large: readonly Id[]): Promise<void> {
    const organizations = [...(this.#largeRead?.organizations ?? []), ...large]
    await this.#stopLargeRead()
    // A running comparison would keep every row of the large change in memory, as a difference or as a change since the comparison began.
    await this.#stopComparison()
    const since = this.#snapshot ?? from
    this.#target.beginPages()
    this.#largeRead = new LargeRead(connection, this.#target, {
      since,
      organizations,
      report: (skipped) => this.#report(skipped),
      onEnd: () => this.#wake(),
    })
    this.#isNotified = true
  }

  /**
   * Ends the large change when all its pages are applied. The follower then reads the changes of all organizations since the snapshot of
   * the large change.
   */
  #endLargeRead({ outcome, organizations }: LargeRead, position: Position): void {
    if (!this.#isInGap) this.#events.onCaughtUpButLarge(position, organizations)
    if (outcome === null) return
    if ('error' in outcome) throw outcome.error
    // The next read follows at once. The large change ends only when the other organizations have reached its snapshot.
    this.#isNotified = true
    if (!isCovered(outcome.snapshot, position.snapshot)) return
    this.#target.endPages()
    this.#snapshot = outcome.snapshot
    this.#largeRead = null
  }

  /** Abandons the large change. The changes of all organizations are read again from the snapshot at which it began. */
  async #stopLargeRead(): Promise<void> {
    if (this.#largeRead === null) return
    await this.#largeRead.stop()
    this.#target.abandonPages()
    this.#hasAbandonedPages = true
    this.#snapshot = this.#largeRead.since
    this.#largeRead = null
  }

  /** Reports skipped rows. Returns how many of them did not fit into the index. */
  #report(skipped: readonly SkippedRow[]): number {
    for (const row of skipped) this.#events.onSkipped(row)
    return skipped.filter(({ reason }) => reason === INDEX_IS_FULL).length
  }

  #wake(): void {
    this.#isNotified = true
    this.#endSleep?.()
  }

  /** Continues in the next turn of the event loop. */
  #wakeLater(): void {
    this.#clock.after(0, () => this.#wake())
  }

  /** Waits for a notification, at most one second. Returns at once if a notification arrived during the last read. */
  async #sleep(): Promise<void> {
    if (this.#isNotified || this.#stopping.signal.aborted) return
    await this.#waitAtMost(POLL_MS)
  }

  /** Waits until `#wake` is called, at most `ms` milliseconds. */
  async #waitAtMost(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#clock.after(ms, resolve)
    this.#endSleep = resolve
    await promise
    cancel()
    this.#endSleep = null
  }
}

function isCovered(wanted: string, applied: string): boolean {
  return new Snapshot(applied).covers(new Snapshot(wanted))
}

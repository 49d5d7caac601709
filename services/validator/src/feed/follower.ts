/**
 * Keeps the index equal to Postgres (docs/api.md#p1). It loads every row once, then reads the changes that became visible
 * since its previous read: after each notification, after each connect, and at least once a second. A notification carries
 * no data and may be lost.
 *
 * A reload compares the tables with the index in the background, and changes are followed meanwhile. After a crash or a
 * failover, the rows of lost transactions are read again first (`trail.ts`). Only when the log no longer contains the
 * position is there a gap: then nothing is applied before the comparison has ended, and the validator is not ready.
 *
 * An organization with too many changes for one read is read apart, in pages, while the others are followed. Its changes
 * since then are applied after the last page.
 *
 *   connecting ──► joining ──► following ──error──► connecting
 *                     │           ▲  │
 *                     ▼           │  ▼ behind
 *                  (first load)   gap
 */

import { type FeedReading, type Id, mayContinue, type Suspect } from '@keyward/database'
import { INDEX_IS_FULL } from '@keyward/engine'

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'
import { Apart } from './apart.ts'
import { covers } from './catch-up.ts'
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
import { type IndexPosition, Parking } from './parking.ts'

export type * from './follower-interfaces.ts'

const POLL_MS = 1_000
const RETRY_MS = 250
/** The delay before the next reload, after one of an index with a position was abandoned. */
const PAUSE_MS = 1_000
/** The read that ends a gap may return so many changes. */
const MAX_CHANGES_OF_GAP = 200_000

export class Follower {
  readonly #source: FeedSource
  readonly #target: FeedTarget
  readonly #events: FollowerEvents
  readonly #clock: Clock
  readonly #stopping = new AbortController()
  readonly #parking: Parking
  /** The server that the index was loaded from. Null until the first load ends. */
  #identity: string | null = null
  /** Every change up to here is applied. Null when the index has no position: before the first load, and in a gap. */
  #snapshot: string | null = null
  /** Null while all organizations are read together. Then `#snapshot` is that of the others. */
  #apart: Apart | null = null
  /** The reload in progress, or null. */
  #comparison: Comparison | null = null
  /** How many requests for a reload have been fulfilled. Null: the index is to be compared in any case. */
  #reloads: number | null = null
  /** After a reload was given up, none begins before then. */
  #nextReloadMs = -Infinity
  /** The first load has ended. */
  #isLoaded = false
  /** The index is not exactly a state that Postgres had. */
  #isInGap = false
  /** A notification came, or the connection broke, after the last read began: the next sleep is skipped. */
  #isNotified = false
  /** A load or read succeeded since the last error: the next error is followed by an immediate reconnect. */
  #hasProgressed = false
  /** Ends the current wait. Null while awake. */
  #endSleep: (() => void) | null = null
  /** Resolves when the loop has ended. Null before `start`. */
  #done: Promise<void> | null = null

  constructor(source: FeedSource, target: FeedTarget, events: FollowerEvents, clock: Clock = SYSTEM_CLOCK) {
    this.#source = source
    this.#target = target
    this.#events = events
    this.#clock = clock
    this.#parking = new Parking(clock)
  }

  /** `from`: what the index contains already, if it was restored from a file. */
  start(from: IndexPosition | null = null): void {
    if (this.#done !== null) return
    this.#identity = from?.identity ?? null
    this.#snapshot = from?.snapshot ?? null
    this.#done = this.#run()
  }

  /** The index that was restored is in service, although Postgres has not confirmed it yet. */
  serveRestored(): void {
    this.#isLoaded = true
  }

  /** What the index contains. Null when it is not exactly a state that Postgres had. */
  get position(): IndexPosition | null {
    const isExact = this.#apart === null && this.#comparison === null && !this.#target.isInPlace
    if (!isExact || this.#identity === null || this.#snapshot === null) return null
    return { identity: this.#identity, snapshot: this.#snapshot }
  }

  /** Stops reading until `resume`, and returns the position. Null, and nothing stops, when there is none within a while. */
  pause(): Promise<IndexPosition | null> {
    return this.#parking.pause(() => this.#wake())
  }

  resume(): void {
    this.#parking.resume()
  }

  /** Reads immediately, or once more after the read in progress. */
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
    )
    try {
      const identity = await this.#join(connection)
      while (!this.#stopping.signal.aborted) {
        await this.#parking.stop(this.position)
        if (isLost) throw new Error('The connection that listens for changes was lost.')
        if (this.#snapshot === null) await this.#load(connection, identity)
        else await this.#read(connection, identity, this.#snapshot)
        await this.#sleep()
      }
    } finally {
      await this.#stopApart()
      connection.close()
    }
  }

  /** Finds out which history the server has, and makes the index a state of it. Returns the identity of the server. */
  async #join(connection: FeedConnection): Promise<string> {
    const { identity, landmark } = await connection.identify()
    const before = this.#identity
    const isOther = identity !== before
    const suspects = this.#suspectsSince(landmark, identity)
    if (isOther) {
      await this.#stopComparison()
      this.#target.changeHistory()
      this.#reloads = null
    }
    if (landmark !== null && suspects !== null) {
      const startedMs = this.#clock.nowMs()
      const reading = await connection.read(landmark, { suspects })
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

  /** Returns the rows of transactions that the server may have lost, or null when they are not known. */
  #suspectsSince(landmark: string | null, identity: string): Suspect[] | null {
    if (landmark === null || this.#identity === null || this.#snapshot === null) return null
    return mayContinue(this.#identity, identity) ? this.#target.suspectsSince(landmark) : null
  }

  async #read(connection: FeedConnection, identity: string, from: string): Promise<void> {
    this.#isNotified = false
    const startedMs = this.#clock.nowMs()
    const reading = await connection.read(from, { except: this.#apart?.organizations ?? [] })
    this.#events.onRead(this.#clock.nowMs() - startedMs)
    if (reading.behind) {
      await this.#stopApart()
      this.#beginGap()
    } else if (reading.large.length > 0) {
      await this.#readApart(connection, from, reading.large)
    } else {
      this.#apply(reading, { identity, startedMs })
      if (this.#apart === null) await this.#check(connection, reading)
    }
  }

  /** Applies everything that a reading contains. */
  #apply(reading: FeedReading, { identity, startedMs }: { identity: string; startedMs: number }): void {
    const { snapshot } = reading
    const { changes, signingKeys, unreadable } = convertChanges(reading.changes)
    this.#report([...unreadable, ...this.#target.apply(changes, signingKeys, snapshot)])
    this.#snapshot = snapshot
    this.#hasProgressed = true
    const position = { snapshot, identity, asOfMs: startedMs }
    if (this.#apart === null) this.#caughtUp(position)
    else this.#endApart(this.#apart, position)
  }

  /** The index is exactly what Postgres had at the position. */
  #caughtUp(position: Position): void {
    this.#isInGap = false
    this.#isLoaded = true
    this.#events.onCaughtUp(position)
  }

  /** Begins, continues or ends a reload of an index that has a position, after a read. */
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
    // The rest of the index is searched between the next reads.
    if (!covers(snapshot, outcome.snapshot) || !this.#target.search()) this.#isNotified = true
    else this.#endComparison(comparison, outcome, { changes: [], signingKeys: [], snapshot })
  }

  /** The index has no position any more: it shows a state of before the gap until a reload has ended. */
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
    // Until the index has been searched, the event loop runs between the parts.
    if (!this.#target.search()) return this.#wakeLater()
    const readMs = this.#clock.nowMs()
    const since = this.#target.isInPlace ? null : await this.#readSince(connection, outcome.snapshot)
    if (since === 'behind') return await this.#stopComparison()
    const { snapshot } = since ?? outcome
    this.#endComparison(comparison, outcome, since ?? { changes: [], signingKeys: [], snapshot })
    this.#snapshot = snapshot
    // Whatever was committed since is read at once.
    this.#isNotified = true
    this.#hasProgressed = true
    this.#caughtUp({ snapshot, identity, asOfMs: since === null ? comparison.startedMs : readMs })
  }

  /** Returns all changes since the snapshot of a reload, or null when one read does not return them. */
  async #readSince(connection: FeedConnection, loaded: string): Promise<Since | 'behind' | null> {
    const reading = await connection.read(loaded, { maxChanges: MAX_CHANGES_OF_GAP })
    if (reading.behind) return 'behind'
    if (reading.large.length > 0) return null
    const { changes, signingKeys, unreadable } = convertChanges(reading.changes)
    this.#report(unreadable)
    return { changes, signingKeys, snapshot: reading.snapshot }
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

  /** Begins to read the changes of more organizations apart. The next read follows at once. */
  async #readApart(connection: FeedConnection, from: string, large: readonly Id[]): Promise<void> {
    const organizations = [...(this.#apart?.organizations ?? []), ...large]
    await this.#stopApart()
    // Its rows would all count as differences, or as changes since the reload began.
    await this.#stopComparison()
    const since = this.#snapshot ?? from
    this.#apart = new Apart(connection, this.#target, {
      since,
      organizations,
      report: (skipped) => this.#report(skipped),
      onEnd: () => this.#wake(),
    })
    this.#isNotified = true
  }

  /** Goes on from the snapshot of a large change that is through: what came since is read for all organizations. */
  #endApart({ outcome, organizations }: Apart, position: Position): void {
    if (!this.#isInGap) this.#events.onCaughtUpButLarge(position, organizations)
    if (outcome === null) return
    if ('error' in outcome) throw outcome.error
    // Whatever happens next is read at once: the other organizations first reach that snapshot, too.
    this.#isNotified = true
    if (!covers(position.snapshot, outcome.snapshot)) return
    this.#target.endPages()
    this.#snapshot = outcome.snapshot
    this.#apart = null
  }

  /** Stops reading apart. The changes of all organizations are read again from where they were before. */
  async #stopApart(): Promise<void> {
    if (this.#apart === null) return
    await this.#apart.stop()
    this.#target.abandonPages()
    this.#snapshot = this.#apart.since
    this.#apart = null
  }

  /** Returns how many of the rows did not fit into the index. */
  #report(skipped: readonly SkippedRow[]): number {
    for (const row of skipped) this.#events.onSkipped(row)
    return skipped.filter(({ reason }) => reason === INDEX_IS_FULL).length
  }

  #wake(): void {
    this.#isNotified = true
    this.#endSleep?.()
  }

  /** Goes on in another turn of the event loop. */
  #wakeLater(): void {
    this.#clock.after(0, () => this.#wake())
  }

  /** Sleeps until a notification comes, at most a second. Returns at once if one came during the last read. */
  async #sleep(): Promise<void> {
    if (this.#isNotified || this.#stopping.signal.aborted) return
    await this.#waitAtMost(POLL_MS)
  }

  /** Waits until `#wake` is called, at most this long. */
  async #waitAtMost(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#clock.after(ms, resolve)
    this.#endSleep = resolve
    await promise
    cancel()
    this.#endSleep = null
  }
}

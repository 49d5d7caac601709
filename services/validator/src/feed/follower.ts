/**
 * Keeps the index equal to Postgres (docs/api.md#p1). It loads every row once, then reads the changes that became visible
 * since its previous read: after each notification, after each connect, and at least once a second. A notification carries
 * no data and may be lost. When the log was pruned past the previous read, or another server responds, it reloads every
 * row: the rows are compared with the index, which stays as it is until all have arrived.
 *
 *   connecting ──► (loading) ──► following ──error──► connecting
 *                      ▲             │
 *                      └── behind ───┘
 */

import type { FeedChange } from '@keyward/database'
import { type Change, INDEX_IS_FULL } from '@keyward/engine'

import type { SigningKeyChange } from '../public-keys/store.ts'
import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'
import { convertChanges, type SkippedRow } from './convert.ts'

/** Receives one batch of a load, with the snapshot that the load reads at. */
export type OnBatch = (changes: readonly FeedChange[], snapshot: string) => void

/** A connection that listens for notifications. Every statement on it has a timeout. */
export interface FeedConnection {
  /** Returns the identity of the server, its timeline and its log; rejects on a standby. */
  identify(): Promise<string>
  /** Reads the changes after `snapshot`. `behind`: the log no longer contains all of them. */
  read(snapshot: string): Promise<{ snapshot: string; behind: boolean; changes: FeedChange[] }>
  /** Loads every row from the server with this identity and returns the snapshot of the load. */
  load(identity: string, onBatch: OnBatch): Promise<string>
  close(): void
}

export interface FeedSource {
  /** Listens before it resolves. Calls `onWake` for every notification, and `onLost` when the connection breaks. */
  connect(onWake: () => void, onLost: () => void): Promise<FeedConnection>
}

/** Where changes are applied. Calls come in order: `beginReload`, `receive` for each batch, `endReload`; or `apply` alone. */
export interface FeedTarget {
  beginReload(isOtherServer: boolean): void
  /** Takes a batch of a load. Every method returns the rows that could not be stored. */
  receive(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): SkippedRow[]
  endReload(): SkippedRow[]
  apply(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): SkippedRow[]
}

export interface FollowerEvents {
  /** A row was unreadable or could not be stored. */
  onSkipped(row: SkippedRow): void
  onError(error: unknown): void
  /** A batch of a load was received. */
  onLoadProgress(): void
  /** `rowsOverCapacity`: how many of the rows did not fit into the index. */
  onLoaded(tookMs: number, rows: number, rowsOverCapacity: number): void
  onRead(tookMs: number): void
  /** Every change up to the snapshot is applied. Follows each load and each read. */
  onCaughtUp(snapshot: string): void
}

const POLL_MS = 1_000
const RETRY_MS = 250

export class Follower {
  readonly #source: FeedSource
  readonly #target: FeedTarget
  readonly #events: FollowerEvents
  readonly #clock: Clock
  readonly #stopping = new AbortController()
  /** The server that the index was loaded from. Null until the first load ends. */
  #identity: string | null = null
  /** Every change up to here is applied. Null when the next step must be a load. */
  #snapshot: string | null = null
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
  }

  start(): void {
    this.#done ??= this.#run()
  }

  /** Reads immediately, or once more after the read in progress. */
  readNow(): void {
    this.#wake()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#wake()
    await this.#done
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#follow()
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        this.#events.onError(error)
        const pauseMs = this.#hasProgressed ? 0 : RETRY_MS
        this.#hasProgressed = false
        await this.#waitAtMost(pauseMs)
      }
    }
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
      const identity = await connection.identify()
      if (identity !== this.#identity) this.#snapshot = null
      while (!this.#stopping.signal.aborted) {
        if (isLost) throw new Error('The connection that listens for changes was lost.')
        if (this.#snapshot === null) await this.#load(connection, identity)
        else await this.#read(connection, this.#snapshot)
        if (this.#snapshot !== null) await this.#sleep()
      }
    } finally {
      connection.close()
    }
  }

  async #load(connection: FeedConnection, identity: string): Promise<void> {
    const startedMs = this.#clock.nowMs()
    let rows = 0
    let rowsOverCapacity = 0
    this.#target.beginReload(identity !== this.#identity)
    const snapshot = await connection.load(identity, (changes, at) => {
      rows += changes.length
      const { changes: converted, signingKeys, unreadable } = convertChanges(changes)
      this.#report(unreadable)
      rowsOverCapacity += this.#report(this.#target.receive(converted, signingKeys, at))
      this.#events.onLoadProgress()
    })
    rowsOverCapacity += this.#report(this.#target.endReload())
    this.#identity = identity
    this.#snapshot = snapshot
    this.#events.onLoaded(this.#clock.nowMs() - startedMs, rows, rowsOverCapacity)
    this.#hasProgressed = true
    this.#events.onCaughtUp(snapshot)
  }

  async #read(connection: FeedConnection, from: string): Promise<void> {
    this.#isNotified = false
    const startedMs = this.#clock.nowMs()
    const { snapshot, behind, changes } = await connection.read(from)
    this.#events.onRead(this.#clock.nowMs() - startedMs)
    if (behind) {
      this.#snapshot = null
      return
    }
    const { changes: converted, signingKeys, unreadable } = convertChanges(changes)
    this.#report([...unreadable, ...this.#target.apply(converted, signingKeys, snapshot)])
    this.#snapshot = snapshot
    this.#hasProgressed = true
    this.#events.onCaughtUp(snapshot)
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

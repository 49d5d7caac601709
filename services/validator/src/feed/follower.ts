/**
 * Keeps the index equal to Postgres (docs/api.md#p1). It loads every row once, then reads the changes that became visible
 * since its previous read: after each notification, after each connect, and at least once a second. A notification carries
 * no data and may be lost. When the log was pruned past the previous read, or another server responds, it reloads every
 * row: the rows are compared with the index, which stays as it is until all have arrived.
 *
 * An organization with too many changes for one read is read apart, in pages, while the others are followed. Its changes
 * since then are applied after the last page.
 *
 *   connecting ──► (loading) ──► following ──error──► connecting
 *                      ▲             │
 *                      └── behind ───┘
 */

import type { FeedChange, FeedReading, Id, LargeChange, LargePage } from '@keyward/database'
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
  /**
   * Reads the changes after `snapshot`, but those of the organizations `except`. `behind`: the log no longer contains all of
   * them. `large`: there are too many, and those of these organizations are to be read apart.
   */
  read(snapshot: string, except: readonly Id[]): Promise<FeedReading>
  /** Reads the changes of organizations after `since` in pages of one snapshot, while `read` goes on. */
  readLarge(since: string, organizations: readonly Id[], onPage: (page: LargePage) => void): LargeChange
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
  /** Applies a page of a large change. `endPages` follows the last one, unless the change begins again. */
  applyPage(
    changes: readonly Change[],
    signingKeys: readonly SigningKeyChange[],
    page: Omit<LargePage, 'changes'>,
  ): SkippedRow[]
  endPages(): void
}

/** The changes that a load or a read has applied. */
export interface Position {
  snapshot: string
  /** The server that the snapshot is of. */
  identity: string
  /** When the load or read began, on the clock of the follower. Later changes may be missing. */
  asOfMs: number
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
  /** Every change up to the position is applied. Follows each load, and each read while no large change is read apart. */
  onCaughtUp(position: Position): void
  /** As `onCaughtUp`, but the changes of organizations with a large change are still being read apart. */
  onCaughtUpButLarge(asOfMs: number): void
}

/** A large change that is read apart. */
interface Apart {
  /** The snapshot up to which the changes of its organizations were applied before. */
  readonly since: string
  readonly organizations: readonly Id[]
  readonly change: LargeChange
  /** The outcome, null while it goes on. */
  outcome: { snapshot: string } | { error: unknown } | null
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
  /** Null while all organizations are read together. Then `#snapshot` is that of the others. */
  #apart: Apart | null = null
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
        else await this.#read(connection, identity, this.#snapshot)
        if (this.#snapshot !== null) await this.#sleep()
      }
    } finally {
      await this.#stopApart()
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
    // Whatever was committed since the load began is read at once.
    this.#isNotified = true
    this.#events.onLoaded(this.#clock.nowMs() - startedMs, rows, rowsOverCapacity)
    this.#hasProgressed = true
    this.#events.onCaughtUp({ snapshot, identity, asOfMs: startedMs })
  }

  async #read(connection: FeedConnection, identity: string, from: string): Promise<void> {
    this.#isNotified = false
    const startedMs = this.#clock.nowMs()
    const { snapshot, behind, large, changes } = await connection.read(from, this.#apart?.organizations ?? [])
    this.#events.onRead(this.#clock.nowMs() - startedMs)
    if (behind) {
      await this.#stopApart()
      this.#snapshot = null
      return
    }
    if (large.length > 0) {
      await this.#readApart(connection, from, large)
      return
    }
    const { changes: converted, signingKeys, unreadable } = convertChanges(changes)
    this.#report([...unreadable, ...this.#target.apply(converted, signingKeys, snapshot)])
    this.#snapshot = snapshot
    this.#hasProgressed = true
    if (this.#apart === null) this.#events.onCaughtUp({ snapshot, identity, asOfMs: startedMs })
    else this.#endApart(this.#apart, startedMs)
  }

  /** Begins to read the changes of more organizations apart. The next read follows at once. */
  async #readApart(connection: FeedConnection, from: string, large: readonly Id[]): Promise<void> {
    const organizations = [...(this.#apart?.organizations ?? []), ...large]
    await this.#stopApart()
    const since = this.#snapshot ?? from
    const change = connection.readLarge(since, organizations, (page) => {
      const { changes, signingKeys, unreadable } = convertChanges(page.changes)
      const skipped = this.#target.applyPage(changes, signingKeys, page)
      this.#report(page.step === 'restrict' ? [] : [...unreadable, ...skipped])
    })
    const apart: Apart = { since, organizations, change, outcome: null }
    const settle = (outcome: Apart['outcome']): void => {
      apart.outcome = outcome
      this.#wake()
    }
    change.done.then(
      (snapshot) => settle({ snapshot }),
      (error: unknown) => settle({ error }),
    )
    this.#apart = apart
    this.#isNotified = true
  }

  /** Goes on from the snapshot of a large change that is through: what came since is read for all organizations. */
  #endApart(apart: Apart, asOfMs: number): void {
    this.#events.onCaughtUpButLarge(asOfMs)
    if (apart.outcome === null) return
    if ('error' in apart.outcome) throw apart.outcome.error
    this.#target.endPages()
    this.#snapshot = apart.outcome.snapshot
    this.#apart = null
    this.#isNotified = true
  }

  /** Stops reading apart. The changes of all organizations are read again from where they were before. */
  async #stopApart(): Promise<void> {
    if (this.#apart === null) return
    const { change, since } = this.#apart
    change.close()
    await change.done.catch(() => undefined)
    this.#apart = null
    this.#snapshot = since
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

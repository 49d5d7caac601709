/**
 * Keeps the index equal to Postgres. It loads everything once, joined to the change log without a gap, and from then on reads
 * what became visible since its last read: when a notification wakes it, after each connect, and at least once a second. A
 * notification says nothing by itself and may be lost. When the log no longer reaches back, or another server answers, it
 * loads everything again while the old index goes on serving.
 *
 *   connecting ──► (loading) ──► following ──error──► connecting
 *                      ▲             │
 *                      └── behind ───┘
 */

import { setTimeout as sleep } from 'node:timers/promises'

import type { FeedChange } from '@keyward/database'
import { type Change, INDEX_IS_FULL } from '@keyward/engine'

import type { SigningKeyChange } from '../public-keys/store.ts'
import { convertChanges, type UnreadableRow } from './convert.ts'

/** A connection that listens for changes; every question on it has a time-out. */
export type OnBatch = (changes: readonly FeedChange[], snapshot: string) => void

export interface FeedConnection {
  /** Which server, timeline and log it is; throws on a standby. */
  identify(): Promise<string>
  read(snapshot: string): Promise<{ snapshot: string; behind: boolean; changes: FeedChange[] }>
  /**
   * Loads everything from the server so identified; hands it on in batches and returns the snapshot that it belongs to. The
   * first load of all may come in pieces, since nobody is answered from it yet.
   */
  load(identity: string, isFirst: boolean, onBatch: OnBatch): Promise<string>
  close(): void
}

export interface FeedSource {
  /** Listens before it returns. `onWake` for every notification, `onLost` when the connection breaks. */
  connect(onWake: () => void, onLost: () => void): Promise<FeedConnection>
}

/** Where changes go. Calls come in order: `beginReload`, batches, `endReload`; or `apply` alone. */
export interface FeedTarget {
  beginReload(isOtherServer: boolean): void
  apply(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): UnreadableRow[]
  endReload(): void
  /** Everything up to the snapshot is applied. */
  heard(snapshot: string): void
  /** Rows of a full load are coming in. */
  loading(): void
}

export interface FollowerEvents {
  onUnreadable(row: UnreadableRow): void
  onError(error: unknown): void
  /** `leftOut`: how many of the rows the index had no room for. */
  onLoaded(tookMs: number, rows: number, leftOut: number): void
  onRead(tookMs: number): void
}

const POLL_MS = 1_000
const RETRY_MS = 250

export class Follower {
  readonly #source: FeedSource
  readonly #target: FeedTarget
  readonly #events: FollowerEvents
  readonly #stopping = new AbortController()
  #identity: string | null = null
  #snapshot: string | null = null
  #isAwake = false
  #hasWorked = false
  #wake: (() => void) | null = null
  #done: Promise<void> | null = null

  constructor(source: FeedSource, target: FeedTarget, events: FollowerEvents) {
    this.#source = source
    this.#target = target
    this.#events = events
  }

  start(): void {
    this.#done ??= this.#run()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#rouse()
    await this.#done
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#follow()
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        this.#events.onError(error)
        // A connection that worked is replaced at once; only when the next one does not, it is waited.
        const pauseMs = this.#hasWorked ? 0 : RETRY_MS
        this.#hasWorked = false
        await sleep(pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
      }
    }
  }

  /** One connection, from connect to its loss. */
  async #follow(): Promise<void> {
    let isLost = false
    const connection = await this.#source.connect(
      () => this.#rouse(),
      () => {
        isLost = true
        this.#rouse()
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
    const startedMs = performance.now()
    let rows = 0
    let leftOut = 0
    this.#target.beginReload(identity !== this.#identity)
    const snapshot = await connection.load(identity, this.#identity === null, (changes, at) => {
      rows += changes.length
      leftOut += this.#apply(changes, at)
      this.#target.loading()
    })
    this.#target.endReload()
    this.#identity = identity
    this.#snapshot = snapshot
    this.#events.onLoaded(performance.now() - startedMs, rows, leftOut)
    this.#hasWorked = true
    this.#target.heard(snapshot)
  }

  async #read(connection: FeedConnection, from: string): Promise<void> {
    this.#isAwake = false
    const startedMs = performance.now()
    const { snapshot, behind, changes } = await connection.read(from)
    this.#events.onRead(performance.now() - startedMs)
    if (behind) {
      this.#snapshot = null
      return
    }
    this.#apply(changes, snapshot)
    this.#snapshot = snapshot
    this.#hasWorked = true
    this.#target.heard(snapshot)
  }

  /** Gives how many of the changes the index had no room for. */
  #apply(changes: readonly FeedChange[], snapshot: string): number {
    const converted = convertChanges(changes)
    const rejected = this.#target.apply(converted.changes, converted.signingKeys, snapshot)
    for (const row of [...converted.unreadable, ...rejected]) this.#events.onUnreadable(row)
    return rejected.filter(({ reason }) => reason === INDEX_IS_FULL).length
  }

  #rouse(): void {
    this.#isAwake = true
    this.#wake?.()
  }

  /** Until a notification comes, but no longer than a second; not at all when one came during the last read. */
  async #sleep(): Promise<void> {
    if (this.#isAwake || this.#stopping.signal.aborted) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, POLL_MS)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = null
  }
}

/** Defines the interfaces of the follower: the source of changes, the target that applies them, and the events of progress. */

import type { FeedChange, FeedReading, FeedReadOptions, Id, LargeChange, LargePage, RowId } from '@keyward/database'
import type { Change } from '@keyward/engine'

import type { SigningKeyChange } from '../public-keys/store.ts'
import type { SkippedRow } from './convert.ts'

/** Receives one batch of a load, with the snapshot of the load. */
export type OnBatch = (changes: readonly FeedChange[], snapshot: string) => void

/** A load of every row over a separate connection. */
export interface Load {
  /** Resolves when every row has been delivered. Rejects when the connection breaks, or after `close`. */
  readonly done: Promise<LoadOutcome>
  close(): void
}

export interface LoadOutcome {
  readonly snapshot: string
  /** The number of reloads that had been requested when the snapshot was taken. */
  readonly reloads: number
}

interface ServerState {
  /** Identifies the server, its timeline and its log. */
  readonly identity: string
  /** The latest snapshot that this validator has published in the history of the server, or null. */
  readonly published: string | null
}

/** A connection that listens for notifications. Every statement on it has a timeout. */
export interface FeedConnection {
  /** Returns the identity and published of the server. Rejects on a standby. */
  identify(): Promise<ServerState>
  /**
   * Reads the changes after `snapshot`, except those of the organizations in `except`. In the result, `behind` means that the
   * log no longer contains all of them. `large` lists organizations with too many changes, which must be read separately.
   */
  read(snapshot: string, options?: FeedReadOptions): Promise<FeedReading>
  /** Reads the changes of organizations after `since` in pages of one snapshot. `read` can be called meanwhile. */
  readLarge(since: string, organizations: readonly Id[], onPage: (page: LargePage) => void): LargeChange
  /** Loads every row from the server with this identity. `read` can be called meanwhile. The load may outlast this connection. */
  load(identity: string, onBatch: OnBatch): Load
  close(): void
}

export interface FeedSource {
  /**
   * Connects and listens. Calls `onWake` for every notification, and `onLost` when the connection breaks. The timeout of each statement is
   * `timeoutMs`.
   */
  connect(onWake: () => void, onLost: () => void, timeoutMs: number): Promise<FeedConnection>
}

/** The changes since the snapshot of a load, up to `snapshot`. */
export interface Since {
  readonly changes: readonly Change[]
  readonly signingKeys: readonly SigningKeyChange[]
  readonly snapshot: string
}

/** The target that applies changes. Methods that receive rows return those that could not be stored. */
export interface FeedTarget {
  apply(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): SkippedRow[]
  /** Begins a large change, which ends with `endPages` or `abandonPages`. Meanwhile `apply` receives only the changes of other organizations. */
  beginPages(): void
  /** Applies a page of the large change. */
  applyPage(
    changes: readonly Change[],
    signingKeys: readonly SigningKeyChange[],
    page: Omit<LargePage, 'changes'>,
  ): SkippedRow[]
  endPages(): void
  abandonPages(): void
  /** Records that the server has another history. Earlier transaction numbers are meaningless from then on. */
  changeHistory(): void
  /** Returns the rows whose applied changes are not visible in `published`, or null when these rows are unknown. */
  changedSince(published: string): RowId[] | null
  /**
   * Begins a reload, or restarts it. `snapshot` is the snapshot of the reload when the index has no position. It is null when
   * changes are applied meanwhile. These changes count as newer than the rows of the reload.
   */
  beginReload(snapshot: string | null): void
  /** Receives a batch of a reload. */
  receive(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): SkippedRow[]
  /**
   * The machines of own writes that were applied during a reload whose snapshot already contains their transactions. They must be read
   * again with the changes since that snapshot. The list is empty unless a loaded index without a position is being reloaded.
   */
  readonly unsettled: readonly RowId[]
  /** Whether the rows of the reload are written as they arrive. If so, other changes cannot be applied before the reload ends. */
  readonly isInPlace: boolean
  /** Whether so many rows have changed since the reload began that it should be abandoned. */
  readonly isTooLong: boolean
  /** Searches a part of the index for rows that the reload did not contain. Returns whether the search has ended. */
  search(): boolean
  /**
   * Ends a reload, and applies the changes since its snapshot. A comparison applies them in one batch with the differences. After a reload
   * in place, the rows that it did not contain are removed first.
   */
  endReload(since: Since): SkippedRow[]
  abandonReload(): void
}

/** The snapshot up to which a load or a read has applied changes, with its server and time. */
export interface Position {
  snapshot: string
  /** The identity of the server to which the snapshot belongs. */
  identity: string
  /**
   * The time at which the load or read began, on the clock of the follower. The index may lack changes that were committed after this time.
   */
  asOfMs: number
}

export interface FollowerEvents {
  /** Called for a row that is unreadable or could not be stored. */
  onSkipped(row: SkippedRow): void
  onError(error: unknown): void
  /** Called for each batch of a load. */
  onLoadProgress(): void
  /** Called when a load has ended. `rowsOverCapacity` is the number of rows that did not fit into the index. */
  onLoaded(tookMs: number, rows: number, rowsOverCapacity: number): void
  onRead(tookMs: number): void
  /**
   * Called when the index loses its position: the log was pruned past it, the server may have another history, or a reload is now
   * written in place. `onCaughtUp` follows when a reload has ended.
   */
  onGap(): void
  /** Called when every change up to the position is applied: after each load, and after each read without a large change. */
  onCaughtUp(position: Position): void
  /** Called instead of `onCaughtUp` while the changes of these organizations are being read separately. */
  onCaughtUpButLarge(position: Position, organizations: readonly Id[]): void
}

/** What the follower works with: where changes come from, where they are applied, and who learns of its progress. */

import type { FeedChange, FeedReading, FeedReadOptions, Id, LargeChange, LargePage, Suspect } from '@keyward/database'
import type { Change } from '@keyward/engine'

import type { SigningKeyChange } from '../public-keys/store.ts'
import type { SkippedRow } from './convert.ts'

/** Receives one batch of a load, with the snapshot that the load reads at. */
export type OnBatch = (changes: readonly FeedChange[], snapshot: string) => void

/** A load of every row, over a connection of its own. */
export interface Load {
  /** Resolves when every row was delivered. Rejects when the connection breaks, or after `close`. */
  readonly done: Promise<LoadOutcome>
  close(): void
}

export interface LoadOutcome {
  readonly snapshot: string
  /** How many reloads had been requested at the snapshot. */
  readonly reloads: number
}

export interface ServerState {
  /** Of the server, its timeline and its log. */
  readonly identity: string
  /** The latest snapshot that this validator has published in the history of the server, or null. */
  readonly landmark: string | null
}

/** A connection that listens for notifications. Every statement on it has a timeout. */
export interface FeedConnection {
  /** Rejects on a standby. */
  identify(): Promise<ServerState>
  /**
   * Reads the changes after `snapshot`, but those of the organizations `except`. `behind`: the log no longer contains all of
   * them. `large`: there are too many, and those of these organizations are to be read apart.
   */
  read(snapshot: string, options?: FeedReadOptions): Promise<FeedReading>
  /** Reads the changes of organizations after `since` in pages of one snapshot, while `read` goes on. */
  readLarge(since: string, organizations: readonly Id[], onPage: (page: LargePage) => void): LargeChange
  /** Loads every row from the server with this identity, while `read` goes on. It may outlast this connection. */
  load(identity: string, onBatch: OnBatch): Load
  close(): void
}

export interface FeedSource {
  /** Listens before it resolves. Calls `onWake` for every notification, and `onLost` when the connection breaks. */
  connect(onWake: () => void, onLost: () => void): Promise<FeedConnection>
}

/** Changes up to a snapshot. */
export interface Since {
  readonly changes: readonly Change[]
  readonly signingKeys: readonly SigningKeyChange[]
  readonly snapshot: string
}

/** Where changes are applied. Methods that take rows return those that could not be stored. */
export interface FeedTarget {
  apply(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): SkippedRow[]
  /** Applies a page of a large change. `endPages` follows the last one, or `abandonPages`. */
  applyPage(
    changes: readonly Change[],
    signingKeys: readonly SigningKeyChange[],
    page: Omit<LargePage, 'changes'>,
  ): SkippedRow[]
  endPages(): void
  abandonPages(): void
  /** The server has another history: the numbers of transactions before it have no meaning any more. */
  changeHistory(): void
  /** Returns the rows that were applied and are not visible in `landmark`, or null when they are not known. */
  suspectsSince(landmark: string): Suspect[] | null
  /**
   * Begins a reload, or begins it again. `snapshot`: that of the reload, when the index has no position. It is null when
   * changes are applied meanwhile; those are newer than the rows of the reload.
   */
  beginReload(snapshot: string | null): void
  /** Takes a batch of a reload. */
  receive(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): SkippedRow[]
  /** The reload is written as it arrives. Nothing else can be applied before its end. */
  readonly isInPlace: boolean
  /** So much has changed since the reload began that it should be abandoned. */
  readonly isTooLong: boolean
  /** Searches a part of the index for rows that the reload did not contain. Returns whether all of it has been searched. */
  search(): boolean
  /** Ends a reload. The changes since its snapshot become part of it. */
  endReload(since: Since): SkippedRow[]
  abandonReload(): void
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
  /** The log no longer contains the position of the index. `onCaughtUp` follows when a reload has ended. */
  onGap(): void
  /** Every change up to the position is applied. Follows each load, and each read while no large change is read apart. */
  onCaughtUp(position: Position): void
  /** As `onCaughtUp`, but the changes of these organizations are still being read apart. */
  onCaughtUpButLarge(position: Position, organizations: readonly Id[]): void
}

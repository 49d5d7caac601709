/**
 * The one writer of the index: what the feed brings and what this validator's own claims and releases have changed both go
 * through here, in this thread, so that neither undoes the other.
 */

import { toHex } from '@keyward/database/ids'
import type { Change, IndexWriter, Rejected } from '@keyward/engine'

import type { SigningKeyChange } from '../public-keys/store.ts'
import type { KeyRing } from '../public-keys/store.ts'
import type { UnreadableRow } from './convert.ts'
import type { FeedTarget } from './follower.ts'
import { parseSnapshot, Pending } from './own-writes.ts'

export interface KeeperEvents {
  heard(snapshot: string): void
  loading(): void
}

export class Keeper implements FeedTarget {
  readonly #index: IndexWriter
  readonly #keys: KeyRing
  readonly #events: KeeperEvents
  readonly #pending = new Pending()
  /** Whether the last feed read that was applied saw a transaction. */
  #hasSeen: (xid: bigint) => boolean = () => false

  constructor(index: IndexWriter, keys: KeyRing, events: KeeperEvents) {
    this.#index = index
    this.#keys = keys
    this.#events = events
  }

  get pendingCount(): number {
    return this.#pending.size
  }

  beginReload(isOtherServer: boolean): void {
    if (isOtherServer) {
      this.#pending.clear()
      this.#hasSeen = () => false
    }
    this.#index.beginReload()
    this.#keys.beginReload()
  }

  apply(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): UnreadableRow[] {
    this.#keys.apply(signingKeys)
    this.#hasSeen = parseSnapshot(snapshot)
    return this.#index.apply(this.#pending.filter(changes, snapshot)).map(describeRejected)
  }

  endReload(): void {
    this.#index.endReload()
    this.#keys.endReload()
  }

  heard(snapshot: string): void {
    this.#events.heard(snapshot)
  }

  loading(): void {
    this.#events.loading()
  }

  /**
   * A claim or release of this validator that transaction `xid` has committed. When a feed read was faster than the answer,
   * it has told the truth, which may be newer: the machine released again by another validator.
   */
  applyOwn(change: Extract<Change, { entity: 'machine' }> & { used: number }, xid: bigint): void {
    if (this.#hasSeen(xid)) return
    this.#pending.add(change.licenseId, change.machineId, xid, change.used)
    this.#index.apply([change])
  }

  /** What Postgres said in `xid` of a machine without changing anything: memory is older, unless a read was faster. */
  applySeen(change: Extract<Change, { entity: 'machine' }>, xid: bigint): void {
    if (!this.#hasSeen(xid)) this.#index.apply([change])
  }
}

function describeRejected({ change, reason }: Rejected): UnreadableRow {
  return { entity: change.entity, id: toHex(change.entity === 'machine' ? change.licenseId : change.id), reason }
}

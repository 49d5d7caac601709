/**
 * The one writer of the index: what the feed brings and what this validator's own claims and releases have changed both go
 * through here, in this thread, so that neither undoes the other.
 */

import { toHex } from '@keyward/database/ids'
import type { Change, IndexWriter, Rejected } from '@keyward/engine'

import type { Poison, SigningKeyChange } from './feed/convert.ts'
import type { FeedTarget } from './feed/follower.ts'
import type { KeyRing } from './feed/key-ring.ts'
import { Pending } from './slots/pending.ts'

export interface KeeperEvents {
  heard(snapshot: string): void
  loading(): void
}

export class Keeper implements FeedTarget {
  readonly #index: IndexWriter
  readonly #keys: KeyRing
  readonly #events: KeeperEvents
  readonly #pending = new Pending()

  constructor(index: IndexWriter, keys: KeyRing, events: KeeperEvents) {
    this.#index = index
    this.#keys = keys
    this.#events = events
  }

  get pendingCount(): number {
    return this.#pending.size
  }

  beginReload(isOtherServer: boolean): void {
    if (isOtherServer) this.#pending.clear()
    this.#index.beginReload()
    this.#keys.beginReload()
  }

  apply(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): Poison[] {
    this.#keys.apply(signingKeys)
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

  /** A claim or release of this validator that transaction `xid` has committed. */
  applyOwn(change: Extract<Change, { entity: 'machine' }>, xid: bigint): void {
    this.#pending.add(change.licenseId, change.machineId, xid, change.used)
    this.#index.apply([change])
  }

  /** What Postgres said of a machine without changing anything: what memory holds is older. */
  applySeen(change: Extract<Change, { entity: 'machine' }>): void {
    this.#index.apply([change])
  }
}

function describeRejected({ change, reason }: Rejected): Poison {
  return { entity: change.entity, id: toHex(change.entity === 'machine' ? change.licenseId : change.id), reason }
}

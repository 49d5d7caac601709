/**
 * Applies changes to the index and is its only writer. Rows of the change feed and this validator's own claims and releases
 * both pass through it, on the main thread, so that neither overwrites newer data of the other.
 */

import { toHex } from '@keyward/database/ids'
import type { Change, IndexWriter, Rejected } from '@keyward/engine'

import type { PublicKeyStore, SigningKeyChange } from '../public-keys/store.ts'
import type { SkippedRow } from './convert.ts'
import type { FeedTarget } from './follower.ts'
import { OwnWrites, parseSnapshot } from './own-writes.ts'

type MachineChange = Extract<Change, { entity: 'machine' }>

export class IndexUpdater implements FeedTarget {
  readonly #index: IndexWriter
  readonly #publicKeys: PublicKeyStore
  readonly #ownWrites = new OwnWrites()
  /** Returns whether the snapshot of the last feed read contains a transaction. */
  #hasSeen: (xid: bigint) => boolean = () => false

  constructor(index: IndexWriter, publicKeys: PublicKeyStore) {
    this.#index = index
    this.#publicKeys = publicKeys
  }

  /** How many own claims and releases the change feed has not shown yet. */
  get ownWriteCount(): number {
    return this.#ownWrites.size
  }

  beginReload(isOtherServer: boolean): void {
    if (isOtherServer) {
      this.#ownWrites.clear()
      this.#hasSeen = () => false
    }
    this.#index.beginReload()
    this.#publicKeys.beginReload()
  }

  apply(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): SkippedRow[] {
    this.#publicKeys.apply(signingKeys)
    this.#hasSeen = parseSnapshot(snapshot)
    return this.#index.apply(this.#ownWrites.filter(changes, snapshot)).map(describeRejected)
  }

  endReload(): void {
    this.#index.endReload()
    this.#publicKeys.endReload()
  }

  /**
   * Applies a claim or release of this validator that transaction `xid` committed. Ignores it if a feed read has already
   * shown that transaction: the feed may be newer, for example if another validator released the machine since.
   */
  applyOwn(change: MachineChange & { used: number }, xid: bigint): void {
    if (this.#hasSeen(xid)) return
    this.#ownWrites.add(change.licenseId, change.machineId, xid, change.used)
    this.#index.apply([change])
  }

  /** Applies what transaction `xid` read about a machine without changing it, unless a feed read has shown newer data. */
  applySeen(change: MachineChange, xid: bigint): void {
    if (!this.#hasSeen(xid)) this.#index.apply([change])
  }
}

function describeRejected({ change, reason }: Rejected): SkippedRow {
  return { entity: change.entity, id: toHex(change.entity === 'machine' ? change.licenseId : change.id), reason }
}

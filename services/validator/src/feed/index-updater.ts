/**
 * Applies changes to the index and is its only writer. Rows of the change feed and this validator's own claims and releases
 * both pass through it, on the main thread, so that neither overwrites newer data of the other.
 */

import type { LargePage } from '@keyward/database'
import { machineKey, toHex } from '@keyward/database/ids'
import { type Change, INDEX_IS_FULL, type IndexWriter, type Rejected } from '@keyward/engine'

import type { PublicKeyStore, SigningKeyChange } from '../public-keys/store.ts'
import type { SkippedRow } from './convert.ts'
import type { FeedTarget } from './follower.ts'
import { OwnWrites, parseSnapshot } from './own-writes.ts'

/** The most rows of a reload that are kept because they differ, some 200 MB. */
const MAX_DIFFERENCES = 500_000

/** So many rows that do not fit are tried again at each read. Further ones are counted, and only a load can store them. */
const MAX_MISSING = 10_000

type MachineChange = Extract<Change, { entity: 'machine' }>

export class IndexUpdater implements FeedTarget {
  readonly #index: IndexWriter
  readonly #publicKeys: PublicKeyStore
  readonly #onRebuild: () => void
  readonly #ownWrites = new OwnWrites()
  /** The rows that the index lacks because it is full, with their latest change. */
  readonly #missing = new Map<string, Change>()
  /** How many rows did not fit into `#missing` either. */
  #forgotten = 0
  #isLoaded = false
  /** Returns whether the snapshot of the last feed read contains a transaction. */
  #hasSeen: (xid: bigint) => boolean = () => false

  /**
   * `onRebuild`: a reload differs so much from the index that the rest of it is written as it arrives. Returns when no
   * thread decides checks from the index any more.
   */
  constructor(index: IndexWriter, publicKeys: PublicKeyStore, onRebuild: () => void = () => undefined) {
    this.#index = index
    this.#publicKeys = publicKeys
    this.#onRebuild = onRebuild
  }

  /** How many own claims and releases the change feed has not shown yet. */
  get ownWriteCount(): number {
    return this.#ownWrites.size
  }

  /** How many rows of Postgres the index lacks because it is full. Up to 10,000 are stored as soon as they fit. */
  get missingRows(): number {
    return this.#missing.size + this.#forgotten
  }

  beginReload(isOtherServer: boolean): void {
    if (isOtherServer) {
      this.#ownWrites.clear()
      this.#hasSeen = () => false
    }
    // Nobody decides checks from the index before its first load has ended.
    this.#index.beginReload({ inPlace: !this.#isLoaded })
    this.#publicKeys.beginReload()
    this.#missing.clear()
    this.#forgotten = 0
  }

  receive(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): SkippedRow[] {
    this.#publicKeys.apply(signingKeys)
    this.#hasSeen = parseSnapshot(snapshot)
    const rejected = this.#index.receive(this.#ownWrites.filter(changes, snapshot))
    if (this.#index.differences > MAX_DIFFERENCES) {
      this.#isLoaded = false
      this.#onRebuild()
      rejected.push(...this.#index.continueInPlace())
    }
    return this.#noteMissing(rejected)
  }

  endReload(): SkippedRow[] {
    const skipped = this.#noteMissing(this.#index.endReload())
    this.#publicKeys.endReload()
    this.#isLoaded = true
    return skipped
  }

  apply(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): SkippedRow[] {
    this.#publicKeys.apply(signingKeys)
    this.#hasSeen = parseSnapshot(snapshot)
    const filtered = this.#ownWrites.filter(changes, snapshot)
    if (this.#missing.size === 0) return this.#noteMissing(this.#index.apply(filtered))
    // The rows that did not fit are tried again, unless they have changed since.
    const known = new Set(this.#missing.keys())
    for (const change of filtered) this.#missing.delete(keyOf(change))
    const retried = [...this.#missing.values()]
    this.#missing.clear()
    const rejected = this.#index.apply([...retried, ...filtered])
    return this.#noteMissing(rejected).filter((_, i) => !known.has(keyOf(rejected[i]!.change)))
  }

  applyPage(
    changes: readonly Change[],
    signingKeys: readonly SigningKeyChange[],
    { step, snapshot }: Omit<LargePage, 'changes'>,
  ): SkippedRow[] {
    this.#publicKeys.apply(signingKeys)
    const filtered = this.#ownWrites.filter(changes, snapshot)
    if (step === 'finish') this.#index.finishPages()
    return this.#noteMissing(this.#index.applyPage(filtered, step === 'finish' ? 'apply' : step))
  }

  endPages(): void {
    this.#index.finishPages()
  }

  /** Remembers the rows that did not fit, and those that were rejected because they refer to such a row. */
  #noteMissing(rejected: readonly Rejected[]): SkippedRow[] {
    const isFull = this.#missing.size > 0 || rejected.some(({ reason }) => reason === INDEX_IS_FULL)
    for (const { change } of isFull ? rejected : []) {
      if (this.#missing.size < MAX_MISSING) this.#missing.set(keyOf(change), change)
      else this.#forgotten++
    }
    return rejected.map(describeRejected)
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

function keyOf(change: Change): string {
  if (change.entity === 'machine') return machineKey(change.licenseId, change.machineId)
  return `${change.entity} ${toHex(change.id)}`
}

function describeRejected({ change, reason }: Rejected): SkippedRow {
  return { entity: change.entity, id: toHex(change.entity === 'machine' ? change.licenseId : change.id), reason }
}

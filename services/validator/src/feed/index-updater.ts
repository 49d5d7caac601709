/**
 * Applies changes to the index, as its only writer, on the main thread. It receives the rows of the change feed and this
 * validator's own claims and releases, and ensures that older data never overwrites newer data.
 */

import type { LargePage, RowId } from '@keyward/database'
import { machineKey, toHex } from '@keyward/database/ids'
import { Snapshot } from '@keyward/database/snapshot'
import { type Change, INDEX_IS_FULL, type IndexWriter, type Rejected } from '@keyward/engine'

import type { JournaledChanges } from '../index-file/journal.ts'
import type { PublicKeyStore, SigningKeyChange } from '../public-keys/store.ts'
import type { SkippedRow } from './convert.ts'
import type { FeedTarget, Since } from './follower.ts'
import { type MachineChange, type OwnChange, OwnWrites } from './own-writes.ts'
import { rowOf, RecentChanges } from './recent-changes.ts'

/** The maximum number of differing rows that a reload keeps in memory. They take about 200 MB. */
const MAX_DIFFERENCES = 500_000

/** The number of rows that may change during a reload before it is abandoned. Their ids take about 100 MB. */
const MAX_WRITTEN = 1_000_000

/** The number of rows that one call of `search` visits, in about a millisecond. */
const SEARCH_ROWS = 20_000

/** The maximum number of rows that are kept for a retry at each read. More rows that do not fit are only counted until the next reload. */
const MAX_MISSING = 10_000

/** Receives the changes that the index will contain after a restart. */
interface ChangeRecorder {
  applied(changes: readonly Change[], signingKeys: readonly SigningKeyChange[]): void
  /** Called when the index has changed in a way that the received changes do not repeat. */
  interrupt(): void
}

interface UpdaterOptions {
  /**
   * Called when a reload differs so much from the index that the remaining rows are written as they arrive. The function returns when no
   * thread decides checks from the index any more.
   */
  onRebuild?: () => void
  /** Called when Postgres may have lost earlier grants of slots. */
  onOtherServer?: () => void
  recorder?: ChangeRecorder | null
}

export class IndexUpdater implements FeedTarget {
  readonly #index: IndexWriter
  readonly #publicKeys: PublicKeyStore
  readonly #options: UpdaterOptions
  readonly #ownWrites = new OwnWrites()
  readonly #recent = new RecentChanges()
  /** The rows that the index lacks because it is full, with their latest change. */
  readonly #missing = new Map<string, Change>()
  /** The number of missing rows that did not fit into `#missing`: now, and when the reload began. */
  #forgotten = { now: 0, atReload: 0 }
  #isLoaded = false
  /** Whether the rows of the reload are written as they arrive. */
  #isInPlace = false
  /** Whether a large change is being applied in pages. */
  #isPaging = false
  /** Whether `#recent` lacks the rows of a large change. */
  #areRecentLost = false
  /**
   * The snapshot of the last feed read, or that of the reload while an index without a position in the change log is being reloaded. Null
   * when no snapshot of this server is known.
   */
  #seen: Snapshot | null = null
  /**
   * The machines of own writes that were applied although the snapshot of the reload contains their transactions. They are read
   * again before the reload ends. Null unless the loaded index has no position in the change log and its reload began as a comparison.
   */
  #early: Map<string, RowId> | null = null

  constructor(index: IndexWriter, publicKeys: PublicKeyStore, options: UpdaterOptions = {}) {
    this.#index = index
    this.#publicKeys = publicKeys
    this.#options = options
  }

  /** The number of own claims and releases that the change feed has not delivered yet. */
  get ownWriteCount(): number {
    return this.#ownWrites.size
  }

  /** The number of rows that the index lacks because it is full. Up to 10,000 of them are stored as soon as they fit. */
  get missingRows(): number {
    return this.#missing.size + this.#forgotten.now
  }

  get isInPlace(): boolean {
    return this.#isInPlace
  }

  changedSince(published: string): RowId[] | null {
    return this.#recent.since(published)
  }

  /** Applies changes of the journal to an index that is being restored from a file. */
  replay({ changes, signingKeys }: JournaledChanges): void {
    this.#publicKeys.apply(signingKeys)
    this.#noteMissing(this.#index.apply(changes))
  }

  /** Records that the index was restored from a file and contains exactly the rows that are visible in the snapshot. */
  restored(snapshot: string): void {
    this.#seen = new Snapshot(snapshot)
    this.#recent.restart(snapshot)
  }

  /** Records that the restored index is in service, although the validator has not reached Postgres yet. */
  serveRestored(): void {
    this.#isLoaded = true
  }

  changeHistory(): void {
    this.#ownWrites.clear()
    this.#seen = null
    this.#options.onOtherServer?.()
  }

  beginReload(snapshot: string | null): void {
    if (snapshot !== null) this.#seen = new Snapshot(snapshot)
    // While `#isLoaded` is false, no thread decides checks from the index, so the rows of the reload are written as they arrive.
    this.#isInPlace = !this.#isLoaded
    this.#early = snapshot === null || this.#isInPlace ? null : new Map()
    this.#index.beginReload({ inPlace: this.#isInPlace })
    this.#publicKeys.beginReload()
    this.#forgotten.atReload = this.#forgotten.now
    if (this.#isInPlace) this.#forgetMissing()
    // The own writes outside the snapshot are newer than the reload. Applied again, they count as written since the reload began.
    else if (snapshot !== null) this.#index.apply(this.#ownWrites.since(snapshot))
  }

  receive(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): SkippedRow[] {
    if (this.#publicKeys.receive(signingKeys)) this.#options.recorder?.interrupt()
    if (this.#isInPlace) return this.#noteMissing(this.#index.receive(this.#ownWrites.filter(changes, snapshot)))
    const rejected = this.#index.receive(changes)
    if (this.#index.differences > MAX_DIFFERENCES) {
      this.#isInPlace = true
      this.#isLoaded = false
      this.#seen = new Snapshot(snapshot)
      this.#recent.restart(null)
      this.#forgetMissing()
      this.#options.onRebuild?.()
      rejected.push(...this.#index.continueInPlace())
    }
    return this.#noteMissing(rejected)
  }

  get unsettled(): readonly RowId[] {
    return [...(this.#early?.values() ?? [])]
  }

  get isTooLong(): boolean {
    return this.#index.writtenSinceReload > MAX_WRITTEN
  }

  search(): boolean {
    return this.#index.searchUnmarked(SEARCH_ROWS)
  }

  endReload({ changes, signingKeys, snapshot }: Since): SkippedRow[] {
    const missing = this.#isInPlace ? [] : this.#forgetMissing()
    // The reload may contain own writes. No later read delivers them, so the recorder receives them here.
    if (this.#index.isReloadEqual)
      this.#options.recorder?.applied([...this.#ownWrites.since(null), ...changes], signingKeys)
    else this.#options.recorder?.interrupt()
    this.#publicKeys.apply(signingKeys)
    if (this.#publicKeys.endReload()) this.#options.recorder?.interrupt()
    const rejected = this.#index.endReload(this.#ownWrites.filter(changes, snapshot))
    // Rows that changed after the snapshot of the reload are retried, because the reload did not contain them.
    const known = new Set(rejected.map(({ change }) => keyOf(change)))
    const retried = this.#index.apply(missing.filter((change) => !known.has(keyOf(change))))
    this.#seen = new Snapshot(snapshot)
    this.#recent.restart(snapshot)
    this.#areRecentLost = false
    this.#early = null
    this.#isLoaded = true
    this.#isInPlace = false
    return this.#noteMissing([...rejected, ...retried])
  }

  abandonReload(): void {
    this.#early = null
    this.#index.abandonReload()
    this.#publicKeys.abandonReload()
  }

  apply(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): SkippedRow[] {
    this.#options.recorder?.applied(changes, signingKeys)
    this.#publicKeys.apply(signingKeys)
    this.#seen = new Snapshot(snapshot)
    this.#isLoaded ||= !this.#isInPlace
    if (this.#areRecentLost && !this.#isPaging) {
      this.#recent.restart(snapshot)
      this.#areRecentLost = false
    } else this.#recent.add(changes, signingKeys, snapshot)
    const filtered = this.#ownWrites.filter(changes, snapshot)
    if (this.#missing.size === 0) return this.#noteMissing(this.#index.apply(filtered))
    // The rows that did not fit are retried, unless they have changed since.
    const known = new Set(this.#missing.keys())
    for (const change of filtered) this.#missing.delete(keyOf(change))
    const retried = [...this.#missing.values()]
    this.#missing.clear()
    const rejected = this.#index.apply([...retried, ...filtered])
    return this.#noteMissing(rejected).filter((_, i) => !known.has(keyOf(rejected[i]!.change)))
  }

  /**
   * Discards `#recent`. From now on, the pages deliver the machines of every deleted license, but a read of other organizations may deliver
   * the deletion of the license itself. If a crash undoes this deletion, `#recent` would lack the machines.
   */
  beginPages(): void {
    this.#options.recorder?.interrupt()
    this.#isPaging = true
    this.#areRecentLost = true
    this.#recent.restart(null)
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
    this.#isPaging = false
    this.#index.finishPages()
  }

  abandonPages(): void {
    this.#isPaging = false
  }

  /** Clears `#missing`, and the count of the other rows that did not fit before the reload. Returns the rows of `#missing`. */
  #forgetMissing(): Change[] {
    const missing = [...this.#missing.values()]
    this.#missing.clear()
    this.#forgotten = { now: this.#forgotten.now - this.#forgotten.atReload, atReload: 0 }
    return missing
  }

  /** Records the rows that did not fit, and the rows that were rejected because they refer to a missing row. */
  #noteMissing(rejected: readonly Rejected[]): SkippedRow[] {
    const isFull = this.#missing.size > 0 || rejected.some(({ reason }) => reason === INDEX_IS_FULL)
    for (const { change } of isFull ? rejected : []) {
      if (this.#missing.size < MAX_MISSING) this.#missing.set(keyOf(change), change)
      else this.#forgotten.now++
    }
    return rejected.map(describeRejected)
  }

  /**
   * Applies a claim or release that this validator made in transaction `xid`. Ignores the write if a feed read has already delivered its
   * transaction, because the delivered row may be newer, for example if another validator has released the machine. During a reload of an
   * index without a position in the change log, the write is applied even if the snapshot of the reload contains its transaction. Its
   * machine is then unsettled, and is read again before the reload ends.
   */
  applyOwn(change: OwnChange, xid: bigint): void {
    if (this.#seen?.contains(xid) === true) {
      if (this.#early === null) return
      this.#early.set(keyOf(change), rowOf(change))
      this.#index.apply([change])
      return
    }
    this.#ownWrites.add(change, xid)
    this.#recent.addOwn(change, xid)
    this.#index.apply([change])
  }

  /** Applies a machine's state as transaction `xid` read it. Ignores the state if the snapshot of the last feed read contains `xid`. */
  applySeen(change: MachineChange, xid: bigint): void {
    if (this.#seen?.contains(xid) === true) return
    this.#recent.addOwn(change, xid)
    this.#index.apply([change])
  }
}

function keyOf(change: Change): string {
  if (change.entity === 'machine') return machineKey(change.licenseId, change.machineId)
  return `${change.entity} ${toHex(change.id)}`
}

function describeRejected({ change, reason }: Rejected): SkippedRow {
  return { entity: change.entity, id: toHex(change.entity === 'machine' ? change.licenseId : change.id), reason }
}

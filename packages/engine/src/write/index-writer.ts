/**
 * Writes an index. An index has one writer and any number of readers. Changes are applied in write sections: readers see a section
 * completely or not at all. Capacity is checked before a section, because a full index still accepts every change that needs no row.
 */

import { readWord } from '../memory/bits.ts'
import { IndexStore } from '../memory/index-store.ts'
import { Journal } from '../memory/journal.ts'
import { KIND_CREDENTIAL, KIND_CUSTOMER, KIND_LICENSE, KIND_ORGANIZATION, KIND_PRODUCT } from '../memory/layout.ts'
import { createShared, type Reserve, type SharedIndex } from '../memory/shared-memory.ts'
import type { Change, Rejected } from '../model.ts'
import { Capacity, INDEX_IS_FULL } from './capacity.ts'
import { DraftRegion } from './draft.ts'
import { ExtensionWriter } from './extension-writer.ts'
import { type ImagePart, partsOf, restoreParts } from './image.ts'
import { LicenseWriter } from './license-writer.ts'
import { KINDS, Placement } from './placement.ts'
import { ReferenceWriter } from './reference-writer.ts'
import { Differences, markAll, removeUnmarkedMachines, sweep } from './reload.ts'
import { RowWriter } from './row-writer.ts'
import { RuleWriter } from './rule-writer.ts'
import { ScopeWriter } from './scope-writer.ts'
import {
  dependencyOrder,
  type Section,
  SECTION_LIMITS,
  type SectionLimits,
  sectionsOf,
  slices,
  unguardedSectionsOf,
} from './section-order.ts'
import { type IndexStats, statsOf } from './stats.ts'
import { Transition } from './transition.ts'
import { validationError } from './validation.ts'
import { WriteLock } from './write-lock.ts'

export interface IndexOptions {
  /**
   * The secret key of all hashes, 16 random bytes. The default makes hashes predictable, which is acceptable only in tests and
   * measurements.
   */
  hashKey?: Uint8Array
  /** The address space to reserve: `large` (default) for a service, or `small` (1/1024) or `tiny` (1/8192) for tests. */
  reserve?: Reserve
  /**
   * Called after every write section, when readers can see its changes. Tests use it to check every intermediate state.
   */
  onSection?: () => void
  /**
   * Called when the index has become unusable, because a write section did not end. Every later section throws. The process should be
   * restarted.
   */
  onUnusable?: () => void
  /** The limits of a write section. Tests that need several sections pass smaller limits. */
  sections?: SectionLimits
}

export class IndexWriter {
  /** The memory of the index. Other threads receive it by `postMessage` and open it with `openIndex`. */
  readonly shared: SharedIndex
  readonly #store: IndexStore
  readonly #lock: WriteLock
  readonly #rows: RowWriter
  readonly #references: ReferenceWriter
  readonly #licenses: LicenseWriter
  readonly #rules: RuleWriter
  readonly #capacity: Capacity
  readonly #limits: SectionLimits
  /** The transition of the change that is being written in pages. */
  readonly #pages = new Transition()
  /** The differences that the current reload has found, 'in place' when the reload is written as it arrives, or null without a reload. */
  #reload: Differences | 'in place' | null = null
  /** Whether rows may have different marks, as during a reload and after an abandoned reload. */
  #isMarkMixed = false
  readonly #section = (write: () => void): void => this.#lock.section(write, this.#reload === 'in place')

  constructor(options: IndexOptions = {}) {
    const { hashKey = new Uint8Array(16), reserve = 'large', sections = SECTION_LIMITS } = options
    if (hashKey.length !== 16) throw new RangeError(`hashKey must have 16 bytes; got ${hashKey.length}.`)
    const key = [0, 4, 8, 12].map((at) => readWord(hashKey, at))
    this.#limits = sections
    this.shared = createShared(key, reserve)
    this.#lock = new WriteLock(new Int32Array(this.shared.control), new Journal(this.shared), {
      onSection: options.onSection,
      onUnusable: options.onUnusable,
      onDiscard: () => this.#discarded(),
    })
    const { draft } = this.#lock
    this.#store = new IndexStore(this.shared, (part, number) => new DraftRegion(draft, part, number))
    this.#store.initialize()
    const scopes = new ScopeWriter(this.#store)
    this.#rows = new RowWriter(this.#store)
    this.#references = new ReferenceWriter(this.#rows, scopes)
    this.#licenses = new LicenseWriter(this.#rows, scopes, new ExtensionWriter(this.#store))
    this.#rules = new RuleWriter(this.#rows, scopes)
    this.#capacity = new Capacity(this.#store)
  }

  /**
   * Applies a batch of changes. Of several changes of one row or machine, only the last is applied, and otherwise the order has no effect.
   * Skips the changes that cannot be applied, and returns them with the reason: an invalid value, a reference to an unknown row, the removal of a row that other rows refer to, or an index that is
   * too full. Applying a batch again changes nothing.
   *
   * Readers see the changes of an organization in one step, or in several steps if more than 5,000 of its rows change.
   * No intermediate state allows a check that both the state before and the state after reject (`section-order.ts`).
   */
  apply(changes: readonly Change[]): Rejected[] {
    if (this.#reload === 'in place') return this.#write(unguardedSectionsOf(changes, this.#limits))
    if (this.#reload !== null) for (const change of changes) this.#reload.noteWritten(change)
    return this.#writeBatch(changes)
  }

  /**
   * Writes a page of a change that is too large for memory. The pages must be in the order of `section-order.ts`:
   * restrict, apply, loosen. Between the pages, `apply` must not change the same organizations, except for claims and
   * releases of machine slots. `finishPages` or `endReload` ends the change.
   */
  applyPage(changes: readonly Change[], step: Section['step']): Rejected[] {
    if (this.#reload instanceof Differences) for (const change of changes) this.#reload.noteWritten(change)
    const batch = this.#rules.transition
    this.#rules.transition = this.#pages
    try {
      return this.#write(slices(changes, this.#limits.rows, step))
    } finally {
      this.#rules.transition = batch
    }
  }

  /** Ends a change in pages: removes the rules that the pages have kept in force. */
  finishPages(): void {
    const batch = this.#rules.transition
    this.#rules.transition = this.#pages
    this.#rules.finish(this.#limits.rows, this.#section)
    this.#rules.transition = batch
  }

  /**
   * Begins a reload. If a reload is in progress, starts it over. `receive` accepts the rows of the reload, and `endReload` makes the index
   * equal to them. Rows that `apply` writes meanwhile are newer than those of the reload.
   *
   * With `inPlace`, rows are written as they arrive, without a comparison. No thread may decide checks from the index
   * until the reload has ended.
   */
  beginReload({ inPlace = false }: { inPlace?: boolean } = {}): void {
    if (this.#reload === null && !this.#isMarkMixed) this.#rows.mark ^= 1
    else markAll(this.#rows, this.#rows.mark ^ 1)
    this.#isMarkMixed = true
    if (inPlace) this.finishPages()
    this.#reload = inPlace ? 'in place' : new Differences()
  }

  /**
   * Receives rows of a reload. Returns the rejected rows if the reload is in place. Otherwise `endReload` returns them.
   */
  receive(changes: readonly Change[]): Rejected[] {
    if (this.#reload === null) throw new Error('No reload has begun: call beginReload first.')
    // A removal here represents a row that could not be read. The row in the index stays unmarked, so the end of the reload removes it.
    if (this.#reload === 'in place') {
      return this.apply(changes.filter((change) => change.entity === 'machine' || change.row !== null))
    }
    for (const change of changes) if (!this.#markEqual(change)) this.#reload.add(change)
    return []
  }

  /** Abandons a reload without any further write. */
  abandonReload(): void {
    this.#reload = null
  }

  /**
   * Searches at most `rows` rows and buckets of the index for rows that the reload did not contain. Returns whether the whole index has
   * been searched. Once the whole reload has arrived, repeat the call until it returns true. Otherwise `endReload` searches all remaining
   * rows at once.
   */
  searchUnmarked(rows: number): boolean {
    return this.#reload instanceof Differences ? this.#reload.unmarked.search(this.#rows, rows) : true
  }

  /** The number of rows of the reload that differ from the index so far, or 0 when the reload is written in place. */
  get differences(): number {
    return this.#reload instanceof Differences ? this.#reload.size : 0
  }

  /** Whether a compared reload that has arrived completely equals the index, so that `endReload` only writes the changes since its snapshot. */
  get isReloadEqual(): boolean {
    const reload = this.#reload
    if (!(reload instanceof Differences) || reload.toWrite((id) => this.#licenses.usedOf(id)).next().done !== true)
      return false
    reload.unmarked.search(this.#rows, Infinity)
    const { buckets } = reload.unmarked
    return buckets.length === 0 && reload.unmarked.removals(this.#rows).every((change) => reload.isWritten(change))
  }

  /**
   * The number of rows and machines that `apply` has written since the reload began. Their ids stay in memory until the reload ends.
   */
  get writtenSinceReload(): number {
    return this.#reload instanceof Differences ? this.#reload.written : 0
  }

  /**
   * Writes the differences found so far, and from now on writes the reload as it arrives. This bounds the memory of a
   * reload with many differences. No thread may decide checks from the index until the reload has ended.
   */
  continueInPlace(): Rejected[] {
    const reload = this.#reload
    if (!(reload instanceof Differences))
      throw new Error('No compared reload has begun: call beginReload without inPlace first.')
    this.#reload = 'in place'
    this.finishPages()
    const rows = [...reload.toWrite((id) => this.#licenses.usedOf(id))]
    return this.#write(unguardedSectionsOf(rows, this.#limits))
  }

  /**
   * Ends a reload. `since` contains the changes since the reload's snapshot.
   *
   * A compared reload writes the rows that differ and removes the rows that it did not contain, together with `since`,
   * as one batch of `apply`. Readers therefore never see a row of the snapshot that `since` replaces. If many machines
   * must be removed, the reload removes them first. A reload in place has already written its rows: it removes the
   * unmarked rows and then applies `since`.
   */
  endReload(since: readonly Change[] = []): Rejected[] {
    const reload = this.#reload
    if (reload === null) throw new Error('No reload has begun: call beginReload first.')
    if (reload === 'in place') sweep(this.#rows, (kind, row) => this.#removeRow(kind, row), this.#section)
    this.#reload = null
    this.#isMarkMixed = false
    if (reload === 'in place') return this.apply(since)
    const rejected = this.#writeReload(reload, since)
    this.finishPages()
    return rejected
  }

  stats(): IndexStats {
    return statsOf(this.#store)
  }

  /**
   * Returns the parts of an image. The caller must copy them before the next write, or compare the word IMAGE_VERSION of the first part
   * before and after. Returns null between the pages of a change, and from
   * the start of a reload until a reload has ended, because the index then contains parts of two states.
   */
  image(): ImagePart[] | null {
    const isWhole = this.#reload === null && !this.#isMarkMixed && this.#pages.isEmpty
    return isWhole ? partsOf(this.#store) : null
  }

  /**
   * Restores an image into a new index that was created with the image's hash key. `fill` writes the parts, which have
   * the sizes of the image's parts, and returns whether they are intact. If they are not intact or do not fit, the
   * index stays empty and the result is false.
   */
  restore(sizes: readonly number[], fill: (parts: readonly Uint8Array[]) => boolean): boolean {
    const isRestored = restoreParts(this.#store, sizes, fill)
    if (isRestored) this.#rules.rebuild()
    return isRestored
  }

  #writeReload(reload: Differences, since: readonly Change[]): Rejected[] {
    const { rows } = this.#limits
    for (const change of since) reload.noteWritten(change)
    reload.unmarked.search(this.#rows, Infinity)
    const removals = reload.unmarked.removals(this.#rows).filter((change) => !reload.isWritten(change))
    const batch = [...reload.toWrite((id) => this.#licenses.usedOf(id)), ...since, ...removals]
    const { buckets } = reload.unmarked
    if (batch.length + buckets.length <= rows) {
      const rejected: Rejected[] = []
      const only = { changes: dependencyOrder(batch), step: 'apply' } as const
      this.#writeSection(only, rejected, () => removeUnmarkedMachines(this.#rows, buckets))
      return rejected
    }
    // The organizations of these machines are unknown. Removing a machine can only restrict, so the removals come first.
    for (let from = 0; from < buckets.length; from += rows) {
      this.#section(() => removeUnmarkedMachines(this.#rows, buckets.slice(from, from + rows)))
    }
    return this.#writeBatch(batch)
  }

  #writeBatch(changes: readonly Change[]): Rejected[] {
    const rejected = this.#write(sectionsOf(changes, (part) => new Placement(this.#store, part), this.#limits))
    this.#rules.finish(this.#limits.rows, this.#section)
    return rejected
  }

  #write(sections: Iterable<Section>): Rejected[] {
    const rejected: Rejected[] = []
    const { rows } = this.#limits
    for (const section of sections) {
      if (section.step !== 'restrict') this.#rules.endRestricting(rows, this.#section)
      if (section.step === 'loosen') this.#rules.beginLoosening(rows, this.#section)
      this.#writeSection(section, rejected)
    }
    return rejected
  }

  /** Writes one section. `first` runs before the changes, in the same write section. */
  #writeSection({ changes, step }: Section, rejected: Rejected[], first?: () => void): void {
    // A restricting section does not report rejections, because a later section writes the same changes and reports their rejections.
    const report = (change: Change, reason: string): void => {
      if (step !== 'restrict') rejected.push({ change, reason })
    }
    const sound = changes.filter((change) => {
      const reason = validationError(change)
      if (reason !== null) report(change, reason)
      return reason === null
    })
    const takesRow = (change: Change): boolean => this.#takesRow(change, step === 'restrict')
    const fitting = this.#capacity.select(sound, takesRow, (change) => report(change, INDEX_IS_FULL))
    if (fitting.length === 0 && first === undefined) return
    this.#section(() => {
      first?.()
      if (step === 'loosen') this.#rules.removeDetached(this.#limits.rows)
      for (const change of fitting) {
        const reason = step === 'restrict' ? this.#restrictOne(change) : this.#applyOne(change)
        if (reason !== null) report(change, reason)
      }
    })
  }

  /**
   * Restores the writer's own data after a section was discarded. Returns false when the section belonged to a change in phases, because
   * only the writer's data contains what such a change keeps in force.
   */
  #discarded(): boolean {
    this.#rules.rebuild()
    return this.#rules.transition.isEmpty
  }

  /** Returns whether writing the change needs a new row. */
  #takesRow(change: Change, restricts: boolean): boolean {
    if (change.entity === 'machine') return !this.#licenses.hasMachine(change)
    if (change.entity === 'rule' && change.row !== null) return this.#rules.takesRow(change.row, restricts)
    return this.#store.lookup.findId(KINDS[change.entity], change.id) === 0
  }

  /** Writes only the restricting part of a change. */
  #restrictOne(change: Change): null {
    if (change.entity === 'rule') this.#rules.restrict(change)
    else if (change.entity === 'credential') this.#references.restrictCredential(change)
    else if (change.entity === 'machine') this.#licenses.applyMachine({ ...change, used: null })
    else if (change.entity === 'license' && change.row !== null) this.#licenses.addRevoked(change.row)
    return null
  }

  /** Marks the row or machine of a change in the index. Returns whether the row or machine in the index equals the change. */
  #markEqual(change: Change): boolean {
    if (change.entity === 'machine') return this.#licenses.markMachine(change)
    if (change.row === null || validationError(change) !== null) return change.row === null
    const kind = KINDS[change.entity]
    const row = this.#store.lookup.findId(kind, change.id)
    if (row !== 0) this.#rows.setMark(kind, row, this.#rows.mark)
    return this.#findEqual(change) !== 0
  }

  #findEqual(change: Exclude<Change, { entity: 'machine' }>): number {
    if (change.entity === 'license') return change.row === null ? 0 : this.#licenses.findEqual(change.row)
    if (change.entity === 'rule') return change.row === null ? 0 : this.#rules.findEqual(change.row)
    return this.#references.findEqual(change)
  }

  /** Applies a change. Returns null, or the reason for its rejection. */
  #applyOne(change: Change): string | null {
    if (change.entity === 'machine') return this.#licenses.applyMachine(change)
    if (change.row === null) {
      const kind = KINDS[change.entity]
      const row = this.#store.lookup.findId(kind, change.id)
      const reason = row === 0 ? null : this.#removeRow(kind, row)
      if (reason === null || this.#reload === null) return reason
      // The reload may lack the rows that refer to this row. Then the end of the reload removes all of them.
      this.#rows.setMark(kind, row, this.#rows.mark ^ 1)
      return null
    }
    switch (change.entity) {
      case 'organization':
        return this.#references.upsertOrganization(change.row.id)
      case 'credential':
        return this.#references.upsertCredential(change.row)
      case 'product':
        return this.#references.upsertProduct(change.row)
      case 'customer':
        return this.#references.upsertCustomer(change.row)
      case 'license':
        return this.#licenses.upsert(change.row)
      case 'rule':
        return this.#rules.upsert(change.row)
      default:
        return change satisfies never
    }
  }

  #removeRow(kind: number, row: number): string | null {
    switch (kind) {
      case KIND_ORGANIZATION:
        return this.#references.removeOrganization(row)
      case KIND_CREDENTIAL:
        return this.#references.removeCredential(row)
      case KIND_PRODUCT:
        return this.#references.removeProduct(row)
      case KIND_CUSTOMER:
        return this.#references.removeCustomer(row)
      case KIND_LICENSE:
        return this.#licenses.remove(row)
      default:
        return this.#rules.remove(row)
    }
  }
}

/** Creates an empty index and returns its only writer. */
export function createIndex(options?: IndexOptions): IndexWriter {
  return new IndexWriter(options)
}

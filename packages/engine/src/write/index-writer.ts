/**
 * Writes an index: one writer for all threads. Changes are applied in place, in write sections that readers see whole or
 * not at all. Capacity is checked before a section opens, so that nothing inside one can fail half-way.
 */

import { readWord } from '../memory/bits.ts'
import { IndexStore } from '../memory/index-store.ts'
import {
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
} from '../memory/layout.ts'
import { WriteLock } from '../memory/seqlock.ts'
import { createShared, REGION_NAMES, type SharedIndex } from '../memory/shared-memory.ts'
import type { Change, Rejected } from '../model.ts'
import { Capacity } from './capacity.ts'
import { LicenseWriter } from './license-writer.ts'
import { ReferenceWriter } from './reference-writer.ts'
import { markAll, sweep } from './reload.ts'
import { RowWriter } from './row-writer.ts'
import { RuleWriter } from './rule-writer.ts'
import { ScopeWriter } from './scope-writer.ts'
import { sectionsOf } from './section-order.ts'
import { validationError } from './validation.ts'

/** The reason for which a row is rejected that does not fit into the index. */
export const INDEX_IS_FULL = 'the index is full'

export interface IndexOptions {
  /**
   * 16 random bytes, secret and new in every process. Without them the hashes are predictable, which is acceptable in
   * tests and dry runs only.
   */
  hashKey?: Uint8Array
  /** How much address space to reserve: 'large' (default) for a service, 'small' (1/1024) for a dry run. */
  reserve?: 'small' | 'large'
  /** Called after every write section, when readers can see it. For tests that check every intermediate state. */
  onSection?: () => void
}

export interface IndexStats {
  rows: Record<Change['entity'] | 'scope' | 'trieNode', number>
  /** Bytes in use, by slab and table. */
  bytes: Record<string, number>
  /** Bytes in use, all together. */
  usedBytes: number
  /** Address space. The system provides memory only for the part in use. */
  reservedBytes: number
}

const KINDS = {
  organization: KIND_ORGANIZATION,
  credential: KIND_CREDENTIAL,
  product: KIND_PRODUCT,
  customer: KIND_CUSTOMER,
  license: KIND_LICENSE,
  rule: KIND_RULE,
} as const satisfies Record<Exclude<Change['entity'], 'machine'>, number>

export class IndexWriter {
  /** The memory of the index: post it to another thread and open it there with `openIndex`. */
  readonly shared: SharedIndex
  readonly #store: IndexStore
  readonly #lock: WriteLock
  readonly #rows: RowWriter
  readonly #references: ReferenceWriter
  readonly #licenses: LicenseWriter
  readonly #rules: RuleWriter
  readonly #capacity: Capacity
  #reloading = false

  constructor(options: IndexOptions = {}) {
    const { hashKey = new Uint8Array(16), reserve = 'large', onSection } = options
    if (hashKey.length !== 16) throw new RangeError(`hashKey must have 16 bytes; got ${hashKey.length}.`)
    const key = [0, 4, 8, 12].map((at) => readWord(hashKey, at))
    this.shared = createShared(key, reserve)
    this.#store = new IndexStore(this.shared)
    this.#store.byId.initialize()
    this.#store.byKey.initialize()
    this.#store.byRule.initialize()
    this.#store.machines.table.initialize()
    this.#lock = new WriteLock(this.#store.memory.control, onSection)
    const scopes = new ScopeWriter(this.#store)
    this.#rows = new RowWriter(this.#store)
    this.#references = new ReferenceWriter(this.#rows, scopes)
    this.#licenses = new LicenseWriter(this.#rows, scopes)
    this.#rules = new RuleWriter(this.#rows, scopes)
    this.#capacity = new Capacity(this.#store, (change) => this.#takesRow(change))
  }

  /**
   * Applies a batch of changes, in any order of its rows. Skips and returns, with the reason, the changes that cannot be
   * applied: a bad value, a reference to an unknown row, the removal of a row that others refer to, a new row in a full
   * index. Applying a batch again changes nothing.
   */
  apply(changes: readonly Change[]): Rejected[] {
    const rejected: Rejected[] = []
    for (const section of sectionsOf(changes)) this.#writeSection(section, rejected)
    if (this.#reloading) this.#rules.forgetOutgoing()
    else if (this.#rules.hasOutgoing) this.#lock.section(() => this.#rules.removeOutgoing())
    return rejected
  }

  /** Begins a reload: `endReload` removes the rows that `apply` does not receive until then. Called again, it starts over. */
  beginReload(): void {
    if (this.#reloading) markAll(this.#rows, this.#rows.mark ^ 1)
    else this.#rows.mark ^= 1
    this.#reloading = true
  }

  /** Ends a reload: removes the rows that it did not contain. */
  endReload(): void {
    if (!this.#reloading) throw new Error('No reload has begun: call beginReload first.')
    sweep(
      this.#rows,
      (kind, row) => this.#removeRow(kind, row),
      (write) => this.#lock.section(write),
    )
    this.#reloading = false
  }

  stats(): IndexStats {
    const store = this.#store
    const bytes: Record<string, number> = {
      organizations: store.organizations.usedBytes,
      credentials: store.credentials.usedBytes,
      products: store.products.usedBytes,
      customers: store.customers.usedBytes,
      licenses: store.licenses.usedBytes,
      extensions: store.extensions.usedBytes,
      scopes: store.scopes.usedBytes,
      rules: store.rules.usedBytes,
      trieNodes: store.nodes.usedBytes,
      byId: store.byId.usedBytes,
      byKey: store.byKey.usedBytes,
      byRule: store.byRule.usedBytes,
      machines: store.machines.table.usedBytes,
    }
    return {
      rows: {
        organization: store.organizations.live,
        credential: store.credentials.live,
        product: store.products.live,
        customer: store.customers.live,
        license: store.licenses.live,
        machine: store.machines.table.entries,
        rule: store.rules.live,
        scope: store.scopes.live,
        trieNode: store.nodes.live,
      },
      bytes,
      usedBytes: Object.values(bytes).reduce((sum, part) => sum + part, 0),
      reservedBytes: REGION_NAMES.reduce((sum, name) => sum + this.#store.memory.regions[name].words.byteLength, 0),
    }
  }

  #writeSection(changes: readonly Change[], rejected: Rejected[]): void {
    const sound = changes.filter((change) => {
      const reason = validationError(change)
      if (reason !== null) rejected.push({ change, reason })
      return reason === null
    })
    const fitting = this.#capacity.select(sound, (change) => rejected.push({ change, reason: INDEX_IS_FULL }))
    if (fitting.length === 0) return
    this.#lock.section(() => {
      for (const change of fitting) {
        const reason = this.#applyOne(change)
        if (reason !== null) rejected.push({ change, reason })
      }
    })
  }

  /** Returns whether writing the change needs a new row. */
  #takesRow(change: Change): boolean {
    if (change.entity === 'machine') return !this.#licenses.hasMachine(change)
    if (change.entity === 'rule' && change.row !== null) return this.#rules.takesRow(change.row)
    return this.#store.lookup.findId(KINDS[change.entity], change.id) === 0
  }

  /** Applies a change. Returns the reason for which it is rejected, or null. */
  #applyOne(change: Change): string | null {
    if (change.entity === 'machine') return this.#licenses.applyMachine(change)
    if (change.row === null) {
      // The batch's additions are applied by now, and a merged customer can be removed only without its rules.
      if (!this.#reloading) this.#rules.removeOutgoing()
      const kind = KINDS[change.entity]
      const row = this.#store.lookup.findId(kind, change.id)
      const reason = row === 0 ? null : this.#removeRow(kind, row)
      if (reason === null || !this.#reloading) return reason
      // The rows that refer to it are not part of the reload so far: the end of the reload removes all of them.
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

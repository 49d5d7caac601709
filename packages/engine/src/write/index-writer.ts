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
import { unreachable } from '../unreachable.ts'
import { Room } from './capacity.ts'
import { LicenseWriter } from './license-writer.ts'
import { TenantWriter } from './reference-writer.ts'
import { stampAll, sweep } from './reload.ts'
import { RowWriter } from './row-writer.ts'
import { RuleWriter } from './rule-writer.ts'
import { ScopeWriter } from './scope-writer.ts'
/**
 * Writing an index, one writer for all threads. Changes are applied in place, in write sections that readers see whole
 * or not at all. Whether there is room is asked before a section opens, so that nothing inside one can fail half-way.
 */
import { sectionsOf } from './section-order.ts'
import { faultOf } from './validation.ts'

/** Why a row is rejected that there is no room for. */
export const INDEX_IS_FULL = 'the index is full'

export interface IndexOptions {
  /**
   * 16 random bytes, secret and new for every process. Without them the hashes are predictable, which only suits tests
   * and dry runs.
   */
  hashKey?: Uint8Array
  /** How much address space to reserve: 'large' for a service, 'small' (1/1024) for a dry run. Default 'large'. */
  reserve?: 'small' | 'large'
}

export interface IndexStats {
  rows: Record<Change['entity'] | 'scope' | 'trieNode', number>
  /** Bytes in use, by structure. */
  bytes: Record<string, number>
  /** Bytes in use, and address space; the system gives memory as it is used. */
  usedBytes: number
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
  /** Post it to another thread and open it there. */
  readonly shared: SharedIndex
  private readonly store: IndexStore
  private readonly lock: WriteLock
  private readonly rows: RowWriter
  private readonly tenants: TenantWriter
  private readonly licenses: LicenseWriter
  private readonly rules: RuleWriter
  private readonly room: Room
  private reloading = false

  constructor(options: IndexOptions = {}) {
    const { hashKey = new Uint8Array(16), reserve = 'large' } = options
    if (hashKey.length !== 16) throw new RangeError('the hash key is not 16 bytes long')
    const key = [0, 4, 8, 12].map((at) => readWord(hashKey, at))
    this.shared = createShared(key, reserve)
    this.store = new IndexStore(this.shared)
    this.store.byId.initialize()
    this.store.byKey.initialize()
    this.store.byRule.initialize()
    this.store.machines.table.initialize()
    this.lock = new WriteLock(this.store.memory.control)
    const scopes = new ScopeWriter(this.store)
    this.rows = new RowWriter(this.store)
    this.tenants = new TenantWriter(this.rows, scopes)
    this.licenses = new LicenseWriter(this.rows, scopes)
    this.rules = new RuleWriter(this.rows, scopes)
    this.room = new Room(this.store, (change) => this.takesRow(change))
  }

  /**
   * Applies a batch, in any order of its rows. What cannot be applied is skipped and returned with the reason: a bad
   * value, a parent that is unknown, a row that others still refer to, a new row where the index is full.
   */
  apply(changes: readonly Change[]): Rejected[] {
    const rejected: Rejected[] = []
    for (const section of sectionsOf(changes)) this.writeSection(section, rejected)
    if (this.reloading) this.rules.forgetOutgoing()
    else if (this.rules.hasOutgoing) this.lock.section(() => this.rules.removeOutgoing())
    return rejected
  }

  /** From here on rows that `apply` is not told of count as gone. Begun again, a reload starts over. */
  beginReload(): void {
    if (this.reloading) stampAll(this.rows, this.rows.stamp ^ 1)
    else this.rows.stamp ^= 1
    this.reloading = true
  }

  /** Removes what the reload did not tell of. */
  endReload(): void {
    if (!this.reloading) throw new Error('no reload has begun')
    sweep(
      this.rows,
      (kind, row) => this.removeRow(kind, row),
      (write) => this.lock.section(write),
    )
    this.reloading = false
  }

  stats(): IndexStats {
    const { store } = this
    const bytes: Record<string, number> = {
      organizations: store.organizations.usedBytes,
      credentials: store.credentials.usedBytes,
      products: store.products.usedBytes,
      customers: store.customers.usedBytes,
      licenses: store.licenses.usedBytes,
      scopes: store.scopes.usedBytes,
      rules: store.rules.usedBytes,
      trieNodes: store.trieNodes.usedBytes,
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
        trieNode: store.trieNodes.live,
      },
      bytes,
      usedBytes: Object.values(bytes).reduce((sum, part) => sum + part, 0),
      reservedBytes: REGION_NAMES.reduce((sum, name) => sum + this.store.memory.regions[name].words.byteLength, 0),
    }
  }

  private writeSection(changes: readonly Change[], rejected: Rejected[]): void {
    const sound = changes.filter((change) => {
      const reason = faultOf(change)
      if (reason !== null) rejected.push({ change, reason })
      return reason === null
    })
    const fitting = this.room.fitting(sound, (change) => rejected.push({ change, reason: INDEX_IS_FULL }))
    if (fitting.length === 0) return
    this.lock.section(() => {
      for (const change of fitting) {
        const reason = this.applyOne(change)
        if (reason !== null) rejected.push({ change, reason })
      }
    })
  }

  /** Whether writing the change needs a row more than there are. */
  private takesRow(change: Change): boolean {
    if (change.entity === 'machine') return !this.licenses.hasMachine(change)
    if (change.entity === 'rule' && change.row !== null) return this.rules.takesRow(change.row)
    return this.store.directory.findId(KINDS[change.entity], change.id) === 0
  }

  /** The reason for which the change is rejected, or null. */
  private applyOne(change: Change): string | null {
    if (change.entity === 'machine') return this.licenses.applyMachine(change)
    if (change.row === null) {
      // All that comes has come, and a merged customer can only go without its rules.
      if (!this.reloading) this.rules.removeOutgoing()
      const kind = KINDS[change.entity]
      const row = this.store.directory.findId(kind, change.id)
      const reason = row === 0 ? null : this.removeRow(kind, row)
      if (reason === null || !this.reloading) return reason
      // What still refers to it has not been told of, so both go when the reload ends.
      this.rows.setStamp(kind, row, this.rows.stamp ^ 1)
      return null
    }
    switch (change.entity) {
      case 'organization':
        return this.tenants.upsertOrganization(change.row.id)
      case 'credential':
        return this.tenants.upsertCredential(change.row)
      case 'product':
        return this.tenants.upsertProduct(change.row)
      case 'customer':
        return this.tenants.upsertCustomer(change.row)
      case 'license':
        return this.licenses.upsert(change.row)
      case 'rule':
        return this.rules.upsert(change.row)
      default:
        return unreachable(change)
    }
  }

  private removeRow(kind: number, row: number): string | null {
    switch (kind) {
      case KIND_ORGANIZATION:
        return this.tenants.removeOrganization(row)
      case KIND_CREDENTIAL:
        return this.tenants.removeCredential(row)
      case KIND_PRODUCT:
        return this.tenants.removeProduct(row)
      case KIND_CUSTOMER:
        return this.tenants.removeCustomer(row)
      case KIND_LICENSE:
        return this.licenses.remove(row)
      default:
        return this.rules.remove(row)
    }
  }
}

/** Makes an empty index and its one writer. */
export function createIndex(options?: IndexOptions): IndexWriter {
  return new IndexWriter(options)
}

import { readWord } from '../memory/bits.ts'
import {
  CUSTOMER_CHILDREN,
  CUSTOMER_ORGANIZATION,
  CUSTOMER_WORDS,
  EXPIRY,
  ID,
  KEY_HASH,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  LICENSE_CUSTOMER,
  LICENSE_MAX,
  LICENSE_PRODUCT,
  LICENSE_SCOPE_SHIFT,
  LICENSE_STATE,
  LICENSE_STATUS_SHIFT,
  LICENSE_USED,
  PRODUCT_ORGANIZATION,
  ROW_DOUBLES,
  ROW_WORDS,
  GENERATION,
  STATUS_ACTIVE,
  STATUS_REVOKED,
  STATUS_SUSPENDED,
  TENANT_CHILDREN,
} from '../memory/layout.ts'
/**
 * Writes licenses and the machines that hold their slots.
 */
import type { Id, LicenseRecord, LicenseStatus, MachineChange } from '../model.ts'
import type { RowWriter } from './row-writer.ts'
import type { ScopeWriter } from './scope-writer.ts'

const STATUS: Record<LicenseStatus, number> = {
  active: STATUS_ACTIVE,
  suspended: STATUS_SUSPENDED,
  revoked: STATUS_REVOKED,
}

export class LicenseWriter {
  private readonly rows: RowWriter
  private readonly scopes: ScopeWriter
  /** Whose machine was applied last: in a load, the machines of one license mostly stand together. */
  private latest = 0

  constructor(rows: RowWriter, scopes: ScopeWriter) {
    this.rows = rows
    this.scopes = scopes
  }

  /** The reason for which the row is rejected, or null. */
  upsert(record: LicenseRecord): string | null {
    const { directory, hash, organizations, products, customers } = this.rows.store
    const organization = directory.findId(KIND_ORGANIZATION, record.organizationId)
    if (organization === 0) return 'the organization is unknown'
    const product = directory.findId(KIND_PRODUCT, record.productId)
    if (product === 0 || products.region.words[product * ROW_WORDS + PRODUCT_ORGANIZATION] !== organization) {
      return 'the product is unknown in the organization'
    }
    const customer = directory.findId(KIND_CUSTOMER, record.customerId)
    if (customer === 0 || customers.region.words[customer * CUSTOMER_WORDS + CUSTOMER_ORGANIZATION] !== organization) {
      return 'the customer is unknown in the organization'
    }
    hash.hash(record.key, record.key.length)
    directory.combineKey(hash.words, organizations.region.words[organization * ROW_WORDS + GENERATION]!)
    this.write(record, product, customer)
    return null
  }

  remove(row: number): null {
    this.scopes.abandon(KIND_LICENSE, row)
    this.unlink(row)
    this.rows.destroy(KIND_LICENSE, row)
    return null
  }

  hasMachine({ licenseId, machineId }: MachineChange): boolean {
    const { hash, licenses, machines } = this.rows.store
    const row = this.find(licenseId)
    hash.hash(machineId, machineId.length)
    return row !== 0 && machines.has(row, licenses.region.words[row * ROW_WORDS + GENERATION]!, hash.words)
  }

  /** A slot given back by a license that is gone is no fault: its deletion may have come first. */
  applyMachine(change: MachineChange): string | null {
    const { directory, hash, licenses, machines } = this.rows.store
    const { words } = licenses.region
    if (!hasId(words, this.latest, change.licenseId)) this.latest = directory.findId(KIND_LICENSE, change.licenseId)
    const row = this.latest
    if (row === 0) return change.held ? 'the license is unknown' : null
    const generation = words[row * ROW_WORDS + GENERATION]!
    hash.hash(change.machineId, change.machineId.length)
    if (change.held) machines.add(row, generation, hash.words, this.rows.stamp)
    else machines.remove(row, generation, hash.words)
    if (change.used !== null) words[row * ROW_WORDS + LICENSE_USED] = change.used
    return null
  }

  /** Writes the record; its key is `directory.key`. */
  private write(record: LicenseRecord, product: number, customer: number): void {
    const { directory, licenses } = this.rows.store
    let row = this.find(record.id)
    const scope = row === 0 ? 0 : this.scopes.find(KIND_LICENSE, row)
    if (row === 0) row = this.rows.create(KIND_LICENSE, record.id)
    else this.unlink(row)
    const { words, doubles } = licenses.region
    const base = row * ROW_WORDS
    for (let i = 0; i < 4; i++) words[base + KEY_HASH + i] = directory.key[i]!
    words[base + LICENSE_PRODUCT] = product
    words[base + LICENSE_CUSTOMER] = customer
    words[base + LICENSE_MAX] = record.maxMachines ?? -1
    words[base + LICENSE_USED] = record.used
    words[base + LICENSE_STATE] =
      (scope << LICENSE_SCOPE_SHIFT) | (STATUS[record.status] << LICENSE_STATUS_SHIFT) | this.rows.stamp
    doubles[row * ROW_DOUBLES + EXPIRY] = record.expiresAtMs
    directory.addLicenseKey(row)
    this.countAtParents(row, 1)
  }

  private unlink(row: number): void {
    this.rows.store.directory.removeLicenseKey(row)
    this.countAtParents(row, -1)
  }

  private countAtParents(row: number, by: 1 | -1): void {
    const { licenses, products, customers } = this.rows.store
    const { words } = licenses.region
    const product = words[row * ROW_WORDS + LICENSE_PRODUCT]!
    const customer = words[row * ROW_WORDS + LICENSE_CUSTOMER]!
    products.region.words[product * ROW_WORDS + TENANT_CHILDREN]! += by
    customers.region.words[customer * CUSTOMER_WORDS + CUSTOMER_CHILDREN]! += by
  }

  private find(id: Id): number {
    return this.rows.store.directory.findId(KIND_LICENSE, id)
  }
}

/** Whether a license with this id is in the row now; a freed row holds zeros. */
function hasId(words: Int32Array, row: number, id: Id): boolean {
  const base = row * ROW_WORDS
  if (words[base + GENERATION] === 0) return false
  for (let i = 0; i < 4; i++) if (words[base + ID + i] !== readWord(id, 4 * i)) return false
  return true
}

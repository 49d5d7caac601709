/**
 * Writes licenses and the machines that hold their slots.
 */

import { readWord } from '../memory/bits.ts'
import {
  CUSTOMER_CHILDREN,
  CUSTOMER_ORGANIZATION,
  CUSTOMER_WORDS,
  EXPIRY,
  GENERATION,
  ID,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  LICENSE_CUSTOMER,
  LICENSE_EXTENSION,
  LICENSE_KEY_HASH,
  LICENSE_KEY_HASH_WORDS,
  LICENSE_MAX,
  LICENSE_PRODUCT,
  LICENSE_SCOPE_SHIFT,
  LICENSE_STATE,
  LICENSE_STATUS_SHIFT,
  LICENSE_USED,
  PRODUCT_CHILDREN,
  PRODUCT_ORGANIZATION,
  ROW_DOUBLES,
  ROW_WORDS,
  STATUS_ACTIVE,
  STATUS_REVOKED,
  STATUS_SUSPENDED,
} from '../memory/layout.ts'
import { bindKey } from '../memory/lookup.ts'
import type { Id, LicenseRecord, LicenseStatus, MachineChange } from '../model.ts'
import type { RowWriter } from './row-writer.ts'
import type { ScopeWriter } from './scope-writer.ts'

const STATUS: Record<LicenseStatus, number> = {
  active: STATUS_ACTIVE,
  suspended: STATUS_SUSPENDED,
  revoked: STATUS_REVOKED,
}

export class LicenseWriter {
  readonly #rows: RowWriter
  readonly #scopes: ScopeWriter
  /** The hash of the license key or machine id that is being written; passed on explicitly, and never kept. */
  readonly #scratch = new Int32Array(4)
  /** Row of the license whose machine was applied last: in a load, the machines of a license mostly follow each other. */
  #latest = 0

  constructor(rows: RowWriter, scopes: ScopeWriter) {
    this.#rows = rows
    this.#scopes = scopes
  }

  /** Adds or replaces a license. Returns the reason for which it is rejected, or null. */
  upsert(record: LicenseRecord): string | null {
    const { lookup, hash, organizations, products, customers } = this.#rows.store
    const organization = lookup.findId(KIND_ORGANIZATION, record.organizationId)
    if (organization === 0) return 'organizationId refers to no organization'
    const product = lookup.findId(KIND_PRODUCT, record.productId)
    if (product === 0 || products.region.words[product * ROW_WORDS + PRODUCT_ORGANIZATION] !== organization) {
      return 'productId refers to no product of the organization'
    }
    const customer = lookup.findId(KIND_CUSTOMER, record.customerId)
    if (customer === 0 || customers.region.words[customer * CUSTOMER_WORDS + CUSTOMER_ORGANIZATION] !== organization) {
      return 'customerId refers to no customer of the organization'
    }
    const key = this.#scratch
    hash.hash(record.key, record.key.length, key)
    bindKey(key, organizations.region.words[organization * ROW_WORDS + GENERATION]!)
    this.#write(record, key, product, customer)
    return null
  }

  remove(row: number): null {
    this.#scopes.abandon(KIND_LICENSE, row)
    this.#unlink(row)
    const { extensions, licenses } = this.#rows.store
    const extension = licenses.region.words[row * ROW_WORDS + LICENSE_EXTENSION]!
    if (extension !== 0) extensions.free(extension)
    this.#rows.destroy(KIND_LICENSE, row)
    return null
  }

  /** Returns whether the license is known and the machine holds one of its slots. */
  hasMachine({ licenseId, machineId }: MachineChange): boolean {
    const { hash, licenses, machines } = this.#rows.store
    const row = this.#find(licenseId)
    const machineHash = this.#scratch
    hash.hash(machineId, machineId.length, machineHash)
    return row !== 0 && machines.has(row, licenses.region.words[row * ROW_WORDS + GENERATION]!, machineHash)
  }

  /**
   * Applies a change of a machine. Returns the reason for which it is rejected, or null. A slot that is given back on an
   * unknown license is no error: the license's deletion may have come first.
   */
  applyMachine(change: MachineChange): string | null {
    const { lookup, hash, licenses, machines } = this.#rows.store
    const { words } = licenses.region
    if (!hasId(words, this.#latest, change.licenseId)) this.#latest = lookup.findId(KIND_LICENSE, change.licenseId)
    const row = this.#latest
    if (row === 0) return change.held ? 'licenseId refers to no license' : null
    const generation = words[row * ROW_WORDS + GENERATION]!
    const machineHash = this.#scratch
    hash.hash(change.machineId, change.machineId.length, machineHash)
    if (change.held) machines.add(row, generation, machineHash, this.#rows.mark)
    else machines.remove(row, generation, machineHash)
    if (change.used !== null) words[row * ROW_WORDS + LICENSE_USED] = change.used
    return null
  }

  #write(record: LicenseRecord, key: Int32Array, product: number, customer: number): void {
    const { lookup, licenses } = this.#rows.store
    let row = this.#find(record.id)
    const scope = row === 0 ? 0 : this.#scopes.find(KIND_LICENSE, row)
    if (row === 0) row = this.#rows.create(KIND_LICENSE, record.id)
    else this.#unlink(row)
    const { words, doubles } = licenses.region
    const base = row * ROW_WORDS
    for (let i = 0; i < LICENSE_KEY_HASH_WORDS; i++) words[base + LICENSE_KEY_HASH + i] = key[i]!
    words[base + LICENSE_PRODUCT] = product
    words[base + LICENSE_CUSTOMER] = customer
    words[base + LICENSE_MAX] = record.maxMachines ?? -1
    words[base + LICENSE_USED] = record.used
    words[base + LICENSE_STATE] =
      (scope << LICENSE_SCOPE_SHIFT) | (STATUS[record.status] << LICENSE_STATUS_SHIFT) | this.#rows.mark
    doubles[row * ROW_DOUBLES + EXPIRY] = record.expiresAtMs
    lookup.addLicenseKey(row)
    this.#countAtParents(row, 1)
  }

  /** Removes what leads to the row or counts it, except its id. */
  #unlink(row: number): void {
    this.#rows.store.lookup.removeLicenseKey(row)
    this.#countAtParents(row, -1)
  }

  #countAtParents(row: number, by: 1 | -1): void {
    const { licenses, products, customers } = this.#rows.store
    const { words } = licenses.region
    const product = words[row * ROW_WORDS + LICENSE_PRODUCT]!
    const customer = words[row * ROW_WORDS + LICENSE_CUSTOMER]!
    products.region.words[product * ROW_WORDS + PRODUCT_CHILDREN]! += by
    customers.region.words[customer * CUSTOMER_WORDS + CUSTOMER_CHILDREN]! += by
  }

  #find(id: Id): number {
    return this.#rows.store.lookup.findId(KIND_LICENSE, id)
  }
}

/** Returns whether the row holds the license with this id now. */
function hasId(words: Int32Array, row: number, id: Id): boolean {
  const base = row * ROW_WORDS
  if (words[base + GENERATION] === 0) return false
  for (let i = 0; i < 4; i++) if (words[base + ID + i] !== readWord(id, 4 * i)) return false
  return true
}

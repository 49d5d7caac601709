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
  LICENSE_GRACED,
  LICENSE_KEY_HASH,
  LICENSE_KEY_HASH_WORDS,
  LICENSE_LEASED,
  LICENSE_MAX,
  LICENSE_PRODUCT,
  LICENSE_SCOPE_SHIFT,
  LICENSE_STATE,
  LICENSE_STATUS_MASK,
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
import type { Region } from '../memory/shared-memory.ts'
import { DAY_MS, type Id, type LicenseRecord, type LicenseStatus, type MachineChange } from '../model.ts'
import { INDEX_IS_FULL } from './capacity.ts'
import type { ExtensionWriter } from './extension-writer.ts'
import type { RowWriter } from './row-writer.ts'
import type { ScopeWriter } from './scope-writer.ts'

const STATUS: Record<LicenseStatus, number> = {
  active: STATUS_ACTIVE,
  suspended: STATUS_SUSPENDED,
  revoked: STATUS_REVOKED,
}

/**
 * The rows that a record refers to, and the bound hash of its key, which is valid until the next record is resolved.
 */
interface Target {
  key: Int32Array
  product: number
  customer: number
}

export class LicenseWriter {
  readonly #rows: RowWriter
  readonly #scopes: ScopeWriter
  readonly #extensions: ExtensionWriter
  /** A buffer for the hash of the license key or machine id that is being written. */
  readonly #scratch = new Int32Array(4)
  /** Row of the license whose machine was applied last. In a load, most machines of a license are consecutive. */
  #latest = 0

  constructor(rows: RowWriter, scopes: ScopeWriter, extensions: ExtensionWriter) {
    this.#rows = rows
    this.#scopes = scopes
    this.#extensions = extensions
  }

  /**
   * Adds or replaces a license. Returns null, or the reason for its rejection. A license whose extension does not fit is written without
   * the extension, and is still reported as rejected.
   */
  upsert(record: LicenseRecord): string | null {
    const target = this.#resolve(record)
    if (typeof target === 'string') return target
    const row = this.#write(record, target)
    return this.#extensions.write(row, record) ? null : INDEX_IS_FULL
  }

  /** Returns the license's row if all of its fields equal the record's, otherwise 0. */
  findEqual(record: LicenseRecord): number {
    const row = this.#find(record.id)
    if (row === 0) return 0
    const target = this.#resolve(record)
    if (typeof target === 'string') return 0
    const words = this.#rows.store.licenses.region
    const base = row * ROW_WORDS
    const status = (words.get(base + LICENSE_STATE) >>> LICENSE_STATUS_SHIFT) & LICENSE_STATUS_MASK
    const isSame =
      this.#hasLinks(row, target) &&
      words.get(base + LICENSE_MAX) === (record.maxMachines ?? -1) &&
      words.get(base + LICENSE_USED) === record.used &&
      status === STATUS[record.status] &&
      words.getDouble(row * ROW_DOUBLES + EXPIRY) === endOf(record) &&
      this.#extensions.isEqual(row, record)
    return isSame ? row : 0
  }

  /** Returns the number of taken machine slots of a license, or -1 when the license is unknown. */
  usedOf(id: Id): number {
    const row = this.#find(id)
    return row === 0 ? -1 : this.#rows.store.licenses.region.get(row * ROW_WORDS + LICENSE_USED)
  }

  /**
   * Adds a license as revoked, so that rules can refer to it and its checks are rejected. Does not change an existing license.
   */
  addRevoked(record: LicenseRecord): void {
    if (this.#find(record.id) === 0) this.upsert({ ...record, status: 'revoked' })
  }

  remove(row: number): null {
    this.#scopes.abandon(KIND_LICENSE, row)
    this.#unlink(row)
    this.#extensions.remove(row)
    this.#rows.destroy(KIND_LICENSE, row)
    return null
  }

  /** Returns whether the license is known and the machine holds one of its slots. */
  hasMachine(change: MachineChange): boolean {
    const row = this.#findLatest(change.licenseId)
    if (row === 0) return false
    const { licenses, machines } = this.#rows.store
    return machines.has(row, licenses.region.get(row * ROW_WORDS + GENERATION), this.#hashMachine(change))
  }

  /** Sets the mark of a machine that holds a slot. Returns false when the machine holds no slot. */
  markMachine(change: MachineChange): boolean {
    const row = this.#findLatest(change.licenseId)
    if (row === 0) return false
    const { licenses, machines } = this.#rows.store
    const generation = licenses.region.get(row * ROW_WORDS + GENERATION)
    return machines.mark(row, generation, this.#hashMachine(change), this.#rows.mark)
  }

  /**
   * Applies a change of a machine. Returns null, or the reason for its rejection. The release of a slot of an unknown
   * license is accepted, because the license may have been deleted first.
   */
  applyMachine(change: MachineChange): string | null {
    const { licenses, machines } = this.#rows.store
    const words = licenses.region
    const row = this.#findLatest(change.licenseId)
    if (row === 0) return change.held ? 'licenseId refers to no license' : null
    const generation = words.get(row * ROW_WORDS + GENERATION)
    const machineHash = this.#hashMachine(change)
    if (change.held) machines.add(row, generation, machineHash, this.#rows.mark)
    else machines.remove(row, generation, machineHash)
    if (change.used !== null) words.set(row * ROW_WORDS + LICENSE_USED, change.used)
    return null
  }

  /** Returns the rows that a record refers to, or the reason for its rejection. */
  #resolve(record: LicenseRecord): Target | string {
    const { lookup, hash, organizations, products, customers } = this.#rows.store
    const organization = lookup.findId(KIND_ORGANIZATION, record.organizationId)
    if (organization === 0) return 'organizationId refers to no organization'
    const product = lookup.findId(KIND_PRODUCT, record.productId)
    if (product === 0 || products.region.get(product * ROW_WORDS + PRODUCT_ORGANIZATION) !== organization) {
      return 'productId refers to no product of the organization'
    }
    const customer = lookup.findId(KIND_CUSTOMER, record.customerId)
    if (customer === 0 || customers.region.get(customer * CUSTOMER_WORDS + CUSTOMER_ORGANIZATION) !== organization) {
      return 'customerId refers to no customer of the organization'
    }
    const key = this.#scratch
    hash.hash(record.key, record.key.length, key)
    bindKey(key, organizations.region.get(organization * ROW_WORDS + GENERATION))
    return { key, product, customer }
  }

  #write(record: LicenseRecord, target: Target): number {
    const { key, product, customer } = target
    const { lookup, licenses } = this.#rows.store
    let row = this.#find(record.id)
    const scope = row === 0 ? 0 : this.#scopes.find(KIND_LICENSE, row)
    // Most changes of a license keep its key, product and customer, and so its entry in the lookup and the counts of its parents.
    const isLinked = row !== 0 && this.#hasLinks(row, target)
    if (row === 0) row = this.#rows.create(KIND_LICENSE, record.id)
    else if (!isLinked) this.#unlink(row)
    const { region } = licenses
    const base = region.claim(row * ROW_WORDS)
    const words = region.located
    for (let i = 0; i < LICENSE_KEY_HASH_WORDS; i++) words[base + LICENSE_KEY_HASH + i] = key[i]!
    words[base + LICENSE_PRODUCT] = product
    words[base + LICENSE_CUSTOMER] = customer
    words[base + LICENSE_MAX] = record.maxMachines ?? -1
    words[base + LICENSE_USED] = record.used
    const status = STATUS[record.status] << LICENSE_STATUS_SHIFT
    const traits = leasedBit(record) | (record.graceDays === null ? 0 : LICENSE_GRACED)
    words[base + LICENSE_STATE] = (scope << LICENSE_SCOPE_SHIFT) | status | traits | this.#rows.mark
    region.setDouble(row * ROW_DOUBLES + EXPIRY, endOf(record))
    if (isLinked) return row
    lookup.addLicenseKey(row)
    this.#countAtParents(row, 1)
    return row
  }

  /** Returns whether a license has this key, product and customer. */
  #hasLinks(row: number, { key, product, customer }: Target): boolean {
    const { region } = this.#rows.store.licenses
    const base = region.locate(row * ROW_WORDS)
    const words = region.located
    for (let i = 0; i < LICENSE_KEY_HASH_WORDS; i++) if (words[base + LICENSE_KEY_HASH + i] !== key[i]) return false
    return words[base + LICENSE_PRODUCT] === product && words[base + LICENSE_CUSTOMER] === customer
  }

  /** Removes the row from the lookup of keys and from the counts of its parents. The row can still be found by its id. */
  #unlink(row: number): void {
    this.#rows.store.lookup.removeLicenseKey(row)
    this.#countAtParents(row, -1)
  }

  #countAtParents(row: number, by: 1 | -1): void {
    const { licenses, products, customers } = this.#rows.store
    const words = licenses.region
    const product = words.get(row * ROW_WORDS + LICENSE_PRODUCT)
    const customer = words.get(row * ROW_WORDS + LICENSE_CUSTOMER)
    products.region.add(product * ROW_WORDS + PRODUCT_CHILDREN, by)
    customers.region.add(customer * CUSTOMER_WORDS + CUSTOMER_CHILDREN, by)
  }

  #find(id: Id): number {
    return this.#rows.store.lookup.findId(KIND_LICENSE, id)
  }

  #findLatest(id: Id): number {
    if (!hasId(this.#rows.store.licenses.region, this.#latest, id)) this.#latest = this.#find(id)
    return this.#latest
  }

  #hashMachine({ machineId }: MachineChange): Int32Array {
    this.#rows.store.hash.hash(machineId, machineId.length, this.#scratch)
    return this.#scratch
  }
}

/** Returns the end of the grace period. Checks compare only this time, so a grace period does not slow them down. */
function endOf({ expiresAtMs, graceDays }: LicenseRecord): number {
  return expiresAtMs + (graceDays ?? 0) * DAY_MS
}

function leasedBit({ leaseSeconds, maxMachines }: LicenseRecord): number {
  return leaseSeconds !== null && maxMachines !== null ? LICENSE_LEASED : 0
}

/** Returns whether the row currently contains the license with this id. */
function hasId(region: Region, row: number, id: Id): boolean {
  const base = region.locate(row * ROW_WORDS)
  const words = region.located
  if (words[base + GENERATION] === 0) return false
  for (let i = 0; i < 4; i++) if (words[base + ID + i] !== readWord(id, 4 * i)) return false
  return true
}

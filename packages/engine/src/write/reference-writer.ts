/**
 * Writes organizations, products, customers and credentials. An organization, product or customer counts the rows that
 * refer to it and cannot be removed before them, so no row number in the index refers to a free row.
 */

import { readWord } from '../memory/bits.ts'
import {
  CREDENTIAL_ORGANIZATION_SHIFT,
  CREDENTIAL_PRODUCT,
  CREDENTIAL_SECRET,
  CREDENTIAL_SECRET_WORDS,
  CREDENTIAL_STATE,
  CUSTOMER_CHILDREN,
  CUSTOMER_ORGANIZATION,
  CUSTOMER_WORDS,
  EXPIRY,
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  MARK,
  ORGANIZATION_CHILDREN,
  PRODUCT_CHILDREN,
  PRODUCT_ENTITLEMENTS,
  PRODUCT_ORGANIZATION,
  ROW_DOUBLES,
  ROW_WORDS,
} from '../memory/layout.ts'
import type { Change, CredentialChange, CredentialRecord, CustomerRecord, Id, ProductRecord } from '../model.ts'
import { INDEX_IS_FULL } from './capacity.ts'
import type { RowWriter } from './row-writer.ts'
import type { ScopeWriter } from './scope-writer.ts'

const UNKNOWN_ORGANIZATION = 'organizationId refers to no organization'
const UNKNOWN_PRODUCT = 'productId refers to no product of the organization'
const OTHER_ORGANIZATION = 'organizationId must not change'
const IN_USE = 'other rows refer to the row'

/** Methods that add, replace or remove a row return null, or the reason for the rejection. */
export class ReferenceWriter {
  readonly #rows: RowWriter
  readonly #scopes: ScopeWriter

  constructor(rows: RowWriter, scopes: ScopeWriter) {
    this.#rows = rows
    this.#scopes = scopes
  }

  upsertOrganization(id: Id): string | null {
    const row = this.#find(KIND_ORGANIZATION, id)
    if (row === 0) this.#rows.create(KIND_ORGANIZATION, id)
    else this.#rows.setMark(KIND_ORGANIZATION, row, this.#rows.mark)
    return null
  }

  /** Adds or replaces a product. If its new entitlements do not fit, the product keeps its former ones and the change is rejected. */
  upsertProduct(record: ProductRecord): string | null {
    const reason = this.#upsertOwned(KIND_PRODUCT, record, ROW_WORDS, PRODUCT_ORGANIZATION)
    if (reason !== null) return reason
    const { products, values } = this.#rows.store
    const value = record.entitlements === null ? 0 : values.acquire(record.entitlements)
    if (value === 0 && record.entitlements !== null) return INDEX_IS_FULL
    const at = this.#find(KIND_PRODUCT, record.id) * ROW_WORDS + PRODUCT_ENTITLEMENTS
    const former = products.region.get(at)
    products.region.set(at, value)
    if (former !== 0) values.release(former)
    return null
  }

  upsertCustomer(record: CustomerRecord): string | null {
    return this.#upsertOwned(KIND_CUSTOMER, record, CUSTOMER_WORDS, CUSTOMER_ORGANIZATION)
  }

  upsertCredential(record: CredentialRecord): string | null {
    const organization = this.#find(KIND_ORGANIZATION, record.organizationId)
    if (organization === 0) return UNKNOWN_ORGANIZATION
    const product = this.#productOf(record, organization)
    if (product === null) return UNKNOWN_PRODUCT
    const { lookup, credentials } = this.#rows.store
    let row = this.#find(KIND_CREDENTIAL, record.id)
    if (row === 0) row = this.#rows.create(KIND_CREDENTIAL, record.id)
    else {
      lookup.removeSecret(row)
      this.#countAtParents(row, -1)
    }
    const words = credentials.region
    const base = row * ROW_WORDS
    const isSame = this.#hasSecret(row, record.secretHash)
    for (let i = 0; i < CREDENTIAL_SECRET_WORDS; i++) {
      words.set(base + CREDENTIAL_SECRET + i, readWord(record.secretHash, 4 * i))
    }
    // A reader that has stored the row number for the former secret must look the secret up again.
    if (!isSame) this.#rows.renewGeneration(KIND_CREDENTIAL, row)
    words.set(base + CREDENTIAL_PRODUCT, product)
    words.set(base + CREDENTIAL_STATE, (organization << CREDENTIAL_ORGANIZATION_SHIFT) | this.#rows.mark)
    words.setDouble(row * ROW_DOUBLES + EXPIRY, record.expiresAtMs)
    lookup.addSecret(row)
    this.#countAtParents(row, 1)
    return null
  }

  /**
   * Returns the row of the organization, product, customer or credential if all of its fields equal the change's,
   * otherwise 0.
   */
  findEqual(change: Extract<Change, { entity: 'organization' | 'product' | 'customer' | 'credential' }>): number {
    if (change.entity === 'organization') return change.row === null ? 0 : this.#find(KIND_ORGANIZATION, change.id)
    if (change.row === null) return 0
    const organization = this.#find(KIND_ORGANIZATION, change.row.organizationId)
    const { credentials, customers, products, values } = this.#rows.store
    switch (change.entity) {
      case 'product': {
        const row = this.#find(KIND_PRODUCT, change.id)
        const { entitlements } = change.row
        const value = entitlements === null ? 0 : values.find(entitlements)
        if (value === 0 && entitlements !== null) return 0
        if (products.region.get(row * ROW_WORDS + PRODUCT_ENTITLEMENTS) !== value) return 0
        return products.region.get(row * ROW_WORDS + PRODUCT_ORGANIZATION) === organization ? row : 0
      }
      case 'customer': {
        const row = this.#find(KIND_CUSTOMER, change.id)
        return customers.region.get(row * CUSTOMER_WORDS + CUSTOMER_ORGANIZATION) === organization ? row : 0
      }
      case 'credential': {
        const row = this.#find(KIND_CREDENTIAL, change.id)
        if (row === 0 || !this.#hasSecret(row, change.row.secretHash)) return 0
        const words = credentials.region
        const state = organization << CREDENTIAL_ORGANIZATION_SHIFT
        const isSame =
          words.get(row * ROW_WORDS + CREDENTIAL_PRODUCT) === this.#productOf(change.row, organization) &&
          (words.get(row * ROW_WORDS + CREDENTIAL_STATE) & ~MARK) === state &&
          words.getDouble(row * ROW_DOUBLES + EXPIRY) === change.row.expiresAtMs
        return isSame ? row : 0
      }
      default:
        return change satisfies never
    }
  }

  /** Writes only the restricting part of a credential's change. `upsertCredential` completes the change later. */
  restrictCredential({ id, row: record }: CredentialChange): void {
    const row = this.#find(KIND_CREDENTIAL, id)
    if (row === 0) return
    const words = this.#rows.store.credentials.region
    if (record === null || !this.#hasSecret(row, record.secretHash)) {
      this.removeCredential(row)
      return
    }
    // A credential that moves to another product is valid for neither product until the change is complete.
    const bound = words.get(row * ROW_WORDS + CREDENTIAL_PRODUCT)
    const product = this.#productOf(record, this.#organizationOfCredential(row))
    if (product !== 0 && product !== bound) {
      this.removeCredential(row)
      return
    }
    words.setDouble(
      row * ROW_DOUBLES + EXPIRY,
      Math.min(words.getDouble(row * ROW_DOUBLES + EXPIRY), record.expiresAtMs),
    )
  }

  removeOrganization(row: number): string | null {
    const words = this.#rows.store.organizations.region
    if (words.get(row * ROW_WORDS + ORGANIZATION_CHILDREN) !== 0) return IN_USE
    this.#scopes.abandon(KIND_ORGANIZATION, row)
    this.#rows.destroy(KIND_ORGANIZATION, row)
    return null
  }

  removeProduct(row: number): string | null {
    const words = this.#rows.store.products.region
    if (words.get(row * ROW_WORDS + PRODUCT_CHILDREN) !== 0) return IN_USE
    this.#addChild(words.get(row * ROW_WORDS + PRODUCT_ORGANIZATION), -1)
    const value = words.get(row * ROW_WORDS + PRODUCT_ENTITLEMENTS)
    if (value !== 0) this.#rows.store.values.release(value)
    this.#scopes.abandon(KIND_PRODUCT, row)
    this.#rows.destroy(KIND_PRODUCT, row)
    return null
  }

  removeCustomer(row: number): string | null {
    const words = this.#rows.store.customers.region
    if (words.get(row * CUSTOMER_WORDS + CUSTOMER_CHILDREN) !== 0) return IN_USE
    this.#addChild(words.get(row * CUSTOMER_WORDS + CUSTOMER_ORGANIZATION), -1)
    this.#rows.destroy(KIND_CUSTOMER, row)
    return null
  }

  removeCredential(row: number): string | null {
    this.#countAtParents(row, -1)
    this.#rows.store.lookup.removeSecret(row)
    this.#rows.destroy(KIND_CREDENTIAL, row)
    return null
  }

  #upsertOwned(kind: number, record: CustomerRecord, rowWords: number, organizationWord: number): string | null {
    const organization = this.#find(KIND_ORGANIZATION, record.organizationId)
    if (organization === 0) return UNKNOWN_ORGANIZATION
    const words = this.#rows.store.lookup.slab(kind).region
    const known = this.#find(kind, record.id)
    if (known !== 0) {
      if (words.get(known * rowWords + organizationWord) !== organization) return OTHER_ORGANIZATION
      this.#rows.setMark(kind, known, this.#rows.mark)
      return null
    }
    const row = this.#rows.create(kind, record.id)
    words.set(row * rowWords + organizationWord, organization)
    this.#addChild(organization, 1)
    return null
  }

  #hasSecret(row: number, secretHash: Uint8Array): boolean {
    const words = this.#rows.store.credentials.region
    for (let i = 0; i < CREDENTIAL_SECRET_WORDS; i++) {
      if (words.get(row * ROW_WORDS + CREDENTIAL_SECRET + i) !== readWord(secretHash, 4 * i)) return false
    }
    return true
  }

  #organizationOfCredential(row: number): number {
    const words = this.#rows.store.credentials.region
    return words.get(row * ROW_WORDS + CREDENTIAL_STATE) >>> CREDENTIAL_ORGANIZATION_SHIFT
  }

  /** Returns the row of the product that a credential is bound to, 0 for none, or null when the product is unknown. */
  #productOf({ productId }: CredentialRecord, organization: number): number | null {
    if (productId === null) return 0
    const words = this.#rows.store.products.region
    const product = this.#find(KIND_PRODUCT, productId)
    return product !== 0 && words.get(product * ROW_WORDS + PRODUCT_ORGANIZATION) === organization ? product : null
  }

  /** Adds `by` to the child counts of a credential's organization and of the product that the credential is bound to. */
  #countAtParents(credential: number, by: 1 | -1): void {
    this.#addChild(this.#organizationOfCredential(credential), by)
    const { credentials, products } = this.#rows.store
    const product = credentials.region.get(credential * ROW_WORDS + CREDENTIAL_PRODUCT)
    if (product !== 0) products.region.add(product * ROW_WORDS + PRODUCT_CHILDREN, by)
  }

  #addChild(organization: number, count: number): void {
    const words = this.#rows.store.organizations.region
    words.add(organization * ROW_WORDS + ORGANIZATION_CHILDREN, count)
  }

  #find(kind: number, id: Id): number {
    return this.#rows.store.lookup.findId(kind, id)
  }
}

import { readWord } from '../memory/bits.ts'
import {
  CREDENTIAL_ORGANIZATION_SHIFT,
  CREDENTIAL_REVOKED,
  CREDENTIAL_STATE,
  CUSTOMER_CHILDREN,
  CUSTOMER_ORGANIZATION,
  CUSTOMER_WORDS,
  EXPIRY,
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  PRODUCT_ORGANIZATION,
  ROW_DOUBLES,
  ROW_WORDS,
  SECRET,
  TENANT_CHILDREN,
} from '../memory/layout.ts'
/**
 * Writes organizations, products, customers and credentials. Each knows how many rows hang on it and is not removed
 * while there are any, so that no row number in the index ever points at nothing.
 */
import type { CredentialRecord, CustomerRecord, Id, ProductRecord } from '../model.ts'
import type { RowWriter } from './row-writer.ts'
import type { ScopeWriter } from './scope-writer.ts'

const UNKNOWN_ORGANIZATION = 'the organization is unknown'
const OTHER_ORGANIZATION = 'the row belongs to another organization'
const IN_USE = 'other rows refer to it'

export class TenantWriter {
  private readonly rows: RowWriter
  private readonly scopes: ScopeWriter

  constructor(rows: RowWriter, scopes: ScopeWriter) {
    this.rows = rows
    this.scopes = scopes
  }

  /** All of these give the reason for which the row is rejected, or null. */
  upsertOrganization(id: Id): string | null {
    const row = this.find(KIND_ORGANIZATION, id)
    if (row === 0) this.rows.create(KIND_ORGANIZATION, id)
    else this.rows.setStamp(KIND_ORGANIZATION, row, this.rows.stamp)
    return null
  }

  upsertProduct(record: ProductRecord): string | null {
    return this.upsertOwned(KIND_PRODUCT, record, ROW_WORDS, PRODUCT_ORGANIZATION)
  }

  upsertCustomer(record: CustomerRecord): string | null {
    return this.upsertOwned(KIND_CUSTOMER, record, CUSTOMER_WORDS, CUSTOMER_ORGANIZATION)
  }

  upsertCredential(record: CredentialRecord): string | null {
    const organization = this.find(KIND_ORGANIZATION, record.organizationId)
    if (organization === 0) return UNKNOWN_ORGANIZATION
    const { directory, credentials } = this.rows.store
    let row = this.find(KIND_CREDENTIAL, record.id)
    if (row === 0) row = this.rows.create(KIND_CREDENTIAL, record.id)
    else {
      directory.removeSecret(row)
      this.addChild(this.organizationOfCredential(row), -1)
    }
    const { words, doubles } = credentials.region
    let isSame = true
    for (let i = 0; i < 8; i++) {
      const word = readWord(record.secretHash, 4 * i)
      isSame &&= words[row * ROW_WORDS + SECRET + i] === word
      words[row * ROW_WORDS + SECRET + i] = word
    }
    // Who remembers which row a secret led to must look it up again.
    if (!isSame) this.rows.renewGeneration(KIND_CREDENTIAL, row)
    words[row * ROW_WORDS + CREDENTIAL_STATE] =
      (organization << CREDENTIAL_ORGANIZATION_SHIFT) | (record.revoked ? CREDENTIAL_REVOKED : 0) | this.rows.stamp
    doubles[row * ROW_DOUBLES + EXPIRY] = record.expiresAtMs
    directory.addSecret(row)
    this.addChild(organization, 1)
    return null
  }

  removeOrganization(row: number): string | null {
    const { words } = this.rows.store.organizations.region
    if (words[row * ROW_WORDS + TENANT_CHILDREN] !== 0) return IN_USE
    this.scopes.abandon(KIND_ORGANIZATION, row)
    this.rows.destroy(KIND_ORGANIZATION, row)
    return null
  }

  removeProduct(row: number): string | null {
    const { words } = this.rows.store.products.region
    if (words[row * ROW_WORDS + TENANT_CHILDREN] !== 0) return IN_USE
    this.addChild(words[row * ROW_WORDS + PRODUCT_ORGANIZATION]!, -1)
    this.scopes.abandon(KIND_PRODUCT, row)
    this.rows.destroy(KIND_PRODUCT, row)
    return null
  }

  removeCustomer(row: number): string | null {
    const { words } = this.rows.store.customers.region
    if (words[row * CUSTOMER_WORDS + CUSTOMER_CHILDREN] !== 0) return IN_USE
    this.addChild(words[row * CUSTOMER_WORDS + CUSTOMER_ORGANIZATION]!, -1)
    this.rows.destroy(KIND_CUSTOMER, row)
    return null
  }

  removeCredential(row: number): string | null {
    this.addChild(this.organizationOfCredential(row), -1)
    this.rows.store.directory.removeSecret(row)
    this.rows.destroy(KIND_CREDENTIAL, row)
    return null
  }

  private upsertOwned(
    kind: number,
    record: ProductRecord | CustomerRecord,
    rowWords: number,
    organizationWord: number,
  ): string | null {
    const organization = this.find(KIND_ORGANIZATION, record.organizationId)
    if (organization === 0) return UNKNOWN_ORGANIZATION
    const { words } = this.rows.store.directory.arena(kind).region
    const known = this.find(kind, record.id)
    if (known !== 0) {
      if (words[known * rowWords + organizationWord] !== organization) return OTHER_ORGANIZATION
      this.rows.setStamp(kind, known, this.rows.stamp)
      return null
    }
    const row = this.rows.create(kind, record.id)
    words[row * rowWords + organizationWord] = organization
    this.addChild(organization, 1)
    return null
  }

  private organizationOfCredential(row: number): number {
    const { words } = this.rows.store.credentials.region
    return words[row * ROW_WORDS + CREDENTIAL_STATE]! >>> CREDENTIAL_ORGANIZATION_SHIFT
  }

  private addChild(organization: number, count: number): void {
    const { words } = this.rows.store.organizations.region
    words[organization * ROW_WORDS + TENANT_CHILDREN]! += count
  }

  private find(kind: number, id: Id): number {
    return this.rows.store.directory.findId(kind, id)
  }
}

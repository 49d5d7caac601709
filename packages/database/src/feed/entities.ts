// What the feed hands on: one change an entity, with its row as it is now, or null when it is gone. The shapes fit those
// of the decision engine; an access rule carries its value as it is stored, to be read by whoever compiles it.

/** The 16 bytes of a UUID. */
export type Id = Uint8Array

export interface OrganizationRow {
  readonly id: Id
}
export interface CredentialRow {
  readonly id: Id
  readonly organizationId: Id
  /** SHA-256, 32 bytes. */
  readonly secretHash: Uint8Array
  /** Milliseconds since 1970; Infinity: never. */
  readonly expiresAtMs: number
  readonly revoked: boolean
}
export interface SigningKeyRow {
  readonly id: Id
  readonly organizationId: Id
  readonly keyId: string
  readonly publicKey: Uint8Array
  readonly createdAtMs: number
  /** Infinity: it is the current one. */
  readonly retiredAtMs: number
  /** Infinity: its files are trusted. */
  readonly withdrawnAtMs: number
}
export interface ProductRow {
  readonly id: Id
  readonly organizationId: Id
}
export interface CustomerRow {
  readonly id: Id
  readonly organizationId: Id
}
export interface LicenseRow {
  readonly id: Id
  readonly organizationId: Id
  readonly productId: Id
  readonly customerId: Id
  readonly key: Uint8Array
  readonly status: 'active' | 'suspended' | 'revoked'
  readonly expiresAtMs: number
  readonly maxMachines: number | null
  readonly used: number
}
export interface RuleRow {
  readonly id: Id
  readonly organizationId: Id
  readonly kind: 'BLACKLIST' | 'EXCLUSION'
  /** `IP`, `HWID`, `COUNTRY`, `CUSTOMER`, or whatever else stands in the table. */
  readonly type: string
  /** Canonical: the text of an address or network, a machine id, a country, a customer's id. */
  readonly value: Uint8Array
  readonly scope: 'LICENSE' | 'PRODUCT' | 'ORGANIZATION'
  readonly scopeId: Id | null
  readonly customerId: Id | null
  readonly expiresAtMs: number
  readonly allowSuspendedOrExpired: boolean
}

interface Rows {
  organization: OrganizationRow
  credential: CredentialRow
  signingKey: SigningKeyRow
  product: ProductRow
  customer: CustomerRow
  license: LicenseRow
  rule: RuleRow
}

/** A row whose words nobody knows, such as a status from a later version; to be reported, the rest goes on. */
export interface UnreadableChange {
  readonly entity: 'unreadable'
  readonly of: keyof Rows
  readonly id: Id
  readonly reason: string
}

/**
 * Whether the machine holds a slot (or is recorded) now, and how many slots its license has taken; null in a full load,
 * where the license's row says it.
 */
export interface MachineChange {
  readonly entity: 'machine'
  readonly licenseId: Id
  readonly machineId: Uint8Array
  readonly held: boolean
  readonly used: number | null
}

type RowChange = {
  [Entity in keyof Rows]: { readonly entity: Entity; readonly id: Id; readonly row: Rows[Entity] | null }
}[keyof Rows]

export type FeedChange = RowChange | MachineChange | UnreadableChange

/** The words of a license and of a rule as they are stored, told from junk. */
export function licenseChange(row: Omit<LicenseRow, 'status'>, status: string): FeedChange {
  if (status === 'active' || status === 'suspended' || status === 'revoked')
    return { entity: 'license', id: row.id, row: { ...row, status } }
  return { entity: 'unreadable', of: 'license', id: row.id, reason: `unknown status ${status}` }
}

export function ruleChange(row: Omit<RuleRow, 'kind' | 'scope'>, kind: string, scope: string): FeedChange {
  const { id } = row
  if (kind !== 'BLACKLIST' && kind !== 'EXCLUSION')
    return { entity: 'unreadable', of: 'rule', id, reason: `unknown kind ${kind}` }
  if (scope !== 'LICENSE' && scope !== 'PRODUCT' && scope !== 'ORGANIZATION')
    return { entity: 'unreadable', of: 'rule', id, reason: `unknown scope ${scope}` }
  return { entity: 'rule', id, row: { ...row, kind, scope } }
}

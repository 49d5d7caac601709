/**
 * The rows that a verdict depends on, and changes of them. A change contains the whole new row, or null for a deleted
 * one, so applying it twice has the effect of applying it once.
 */

/** The 16 bytes of a UUID. Of two rules, the one with the smaller id is older. */
export type Id = Uint8Array

export interface OrganizationRecord {
  id: Id
}

/** An API key of an organization. */
export interface CredentialRecord {
  id: Id
  organizationId: Id
  /** SHA-256 of the secret: 32 bytes. */
  secretHash: Uint8Array
  /** Licenses of other products are unknown to the credential. null: it is bound to no product. */
  productId: Id | null
  /** Infinity: never expires. */
  expiresAtMs: number
}

export interface ProductRecord {
  id: Id
  organizationId: Id
  /** The defaults of its licenses: up to 8,192 bytes, which the engine does not interpret. null: none. */
  entitlements: Uint8Array | null
}

export interface CustomerRecord {
  id: Id
  organizationId: Id
}

/** The `expiresAtMs` of a license whose term starts with its first `VALID` check and has not started yet. */
export const NOT_STARTED = -Infinity

export type LicenseStatus = 'active' | 'suspended' | 'revoked'

export interface LicenseRecord {
  id: Id
  organizationId: Id
  productId: Id
  customerId: Id
  /** The license key, compared byte for byte. */
  key: Uint8Array
  status: LicenseStatus
  /** Infinity: never expires. NOT_STARTED: the term has not started. */
  expiresAtMs: number
  /** null: no machine limit. */
  maxMachines: number | null
  /** Machine slots taken, or machines recorded where there is no limit. */
  used: number
  /** What it changes in its product's entitlements, in the same form. null: nothing. */
  entitlements: Uint8Array | null
  /**
   * How many seconds a machine holds its slot after Postgres has renewed it; null: until it is released. Without a machine limit
   * it has no effect.
   */
  leaseSeconds: number | null
}

/** An address range; big-endian uint32 words, host bits zero. */
export type Network =
  | { family: 4; words: readonly [number]; prefixLength: number }
  | { family: 6; words: readonly [number, number, number, number]; prefixLength: number }

export type RuleKind = 'BLACKLIST' | 'EXCLUSION' | 'RESTRICTION'
/** A rule with MONITOR matches and never decides. */
export type RuleMode = 'ENFORCE' | 'MONITOR'
export type RuleScope = 'LICENSE' | 'PRODUCT' | 'ORGANIZATION'

/** The type and value of a rule. A restriction has no CUSTOMER, an exclusion neither COUNTRY nor CUSTOMER. */
export type RuleMatch =
  | { type: 'IP'; network: Network }
  | { type: 'HWID'; machineId: Uint8Array }
  | { type: 'COUNTRY'; country: string }
  | { type: 'CUSTOMER'; customerId: Id }

export type RuleType = RuleMatch['type']

export type AccessRuleRecord = {
  id: Id
  organizationId: Id
  kind: RuleKind
  mode: RuleMode
  scope: RuleScope
  /** The license or the product; null with the scope ORGANIZATION. */
  scopeId: Id | null
  /** From this millisecond on the rule does not match. Infinity: it never expires. */
  expiresAtMs: number
  allowSuspendedOrExpired: boolean
} & RuleMatch

export type OrganizationChange = { entity: 'organization'; id: Id; row: OrganizationRecord | null }
export type CredentialChange = { entity: 'credential'; id: Id; row: CredentialRecord | null }
export type ProductChange = { entity: 'product'; id: Id; row: ProductRecord | null }
export type CustomerChange = { entity: 'customer'; id: Id; row: CustomerRecord | null }
export type LicenseChange = { entity: 'license'; id: Id; row: LicenseRecord | null }
export type RuleChange = { entity: 'rule'; id: Id; row: AccessRuleRecord | null }

/**
 * A machine took (`held`) or gave back a machine slot. `used` is the license's count after that; null: the license's row
 * already contains it, as in a full load.
 */
export type MachineChange = {
  entity: 'machine'
  licenseId: Id
  machineId: Uint8Array
  held: boolean
  used: number | null
}

export type Change =
  | OrganizationChange
  | CredentialChange
  | ProductChange
  | CustomerChange
  | LicenseChange
  | RuleChange
  | MachineChange

/** A change that was skipped because it cannot be applied. The others of its batch were applied. */
export interface Rejected {
  change: Change
  reason: string
}

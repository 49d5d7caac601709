/**
 * The rows that a verdict depends on, and the changes of these rows. A change contains the whole new row, null for a deletion, or
 * whether a machine has a slot. So changes are idempotent.
 */

/** The 16 bytes of a UUID. The older of two rules has the smaller id. */
export type Id = Uint8Array

export interface OrganizationRecord {
  id: Id
}

/** An API key of an organization. */
export interface CredentialRecord {
  id: Id
  organizationId: Id
  /** The SHA-256 of the secret, 32 bytes. */
  secretHash: Uint8Array
  /**
   * The product that the credential is bound to, or null for an unbound credential. Licenses of other products are unknown to a bound
   * credential.
   */
  productId: Id | null
  /** The time at which the credential expires, or Infinity if it never expires. */
  expiresAtMs: number
}

export interface ProductRecord {
  id: Id
  organizationId: Id
  /**
   * The default entitlements of the product's licenses, up to 8,192 bytes, or null. The engine does not interpret the
   * bytes.
   */
  entitlements: Uint8Array | null
}

export interface CustomerRecord {
  id: Id
  organizationId: Id
}

/** The `expiresAtMs` of a license whose term has not started. The first `VALID` check starts the term. */
export const NOT_STARTED = -Infinity

/** A day of a grace period has 24 hours. */
export const DAY_MS = 86_400_000

export type LicenseStatus = 'active' | 'suspended' | 'revoked'

export interface LicenseRecord {
  id: Id
  organizationId: Id
  productId: Id
  customerId: Id
  /** The license key, compared byte for byte. */
  key: Uint8Array
  status: LicenseStatus
  /** The time at which the license expires, Infinity for never, or NOT_STARTED before its term starts. */
  expiresAtMs: number
  /** The machine limit, or null when there is none. */
  maxMachines: number | null
  /** The number of machine slots taken, or of machines recorded for a license without a limit. */
  used: number
  /** The license's own entitlements, up to 8,192 bytes, or null. They override the entitlements of the product. */
  entitlements: Uint8Array | null
  /**
   * The number of seconds for which a machine holds its slot after each claim or renewal, or null when it holds the slot
   * until the release. The field has no effect without a machine limit.
   */
  leaseSeconds: number | null
  /** The number of days of 24 hours for which checks stay valid after `expiresAtMs`, or null for none. */
  graceDays: number | null
}

/** An address range as big-endian uint32 words whose host bits are 0. */
export type Network =
  | { family: 4; words: readonly [number]; prefixLength: number }
  | { family: 6; words: readonly [number, number, number, number]; prefixLength: number }

export type RuleKind = 'BLACKLIST' | 'EXCLUSION' | 'RESTRICTION'
/** The mode of a rule. A rule with MONITOR matches and never decides. */
export type RuleMode = 'ENFORCE' | 'MONITOR'
export type RuleScope = 'LICENSE' | 'PRODUCT' | 'ORGANIZATION'

/**
 * The type and value of a rule. The type of a restriction cannot be CUSTOMER. The type of an exclusion cannot be
 * COUNTRY or CUSTOMER.
 */
export type RuleMatch =
  | { type: 'IP'; network: Network }
  | { type: 'HWID'; machineId: Uint8Array }
  | { type: 'COUNTRY'; country: string }
  | { type: 'CUSTOMER'; customerId: Id }

export type RuleType = RuleMatch['type']

/** The types that a restriction may have, in the order of the bits of `Verdict.restrictedTypes`. */
export const RESTRICTION_TYPES = ['IP', 'HWID', 'COUNTRY'] as const satisfies readonly RuleType[]

export type AccessRuleRecord = {
  id: Id
  organizationId: Id
  kind: RuleKind
  mode: RuleMode
  scope: RuleScope
  /** The id of the license or product, or null with the scope ORGANIZATION. */
  scopeId: Id | null
  /** The time from which the rule no longer matches, or Infinity if the rule never expires. */
  expiresAtMs: number
  allowSuspendedOrExpired: boolean
} & RuleMatch

type OrganizationChange = { entity: 'organization'; id: Id; row: OrganizationRecord | null }
export type CredentialChange = { entity: 'credential'; id: Id; row: CredentialRecord | null }
type ProductChange = { entity: 'product'; id: Id; row: ProductRecord | null }
type CustomerChange = { entity: 'customer'; id: Id; row: CustomerRecord | null }
type LicenseChange = { entity: 'license'; id: Id; row: LicenseRecord | null }
export type RuleChange = { entity: 'rule'; id: Id; row: AccessRuleRecord | null }

/**
 * A change of a machine, which has taken (`held`) or released a slot. `used` is the license's new count of used slots, or null when the
 * license's row already contains the count, as in a load.
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

/** A change that was skipped because it cannot be applied. The other changes of its batch were applied. */
export interface Rejected {
  change: Change
  reason: string
}

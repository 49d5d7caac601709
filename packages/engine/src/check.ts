/**
 * The input and the result of a decision. Callers create one of each and reuse them for every check, so that a decision allocates nothing.
 * A row is identified by its number and its generation. The number of a deleted row is reused with another generation. So a row number
 * with an outdated generation refers to a former row.
 */

import { MAX_VALUE_BYTES } from './memory/value-set.ts'

/** A validation request whose caller is authenticated. */
export interface Check {
  /** Row of the organization that the credential belongs to. */
  organization: number
  /** Row of the product that the credential is bound to, or 0 for an unbound credential. Licenses of other products are `NOT_FOUND`. */
  product: number
  /** A buffer whose first `licenseKeyLength` bytes are the license key. */
  licenseKey: Uint8Array
  licenseKeyLength: number
  /** A buffer whose first `machineIdLength` bytes are the machine id. */
  machineId: Uint8Array
  /** Length of the machine id in bytes, or 0 without a machine id. */
  machineIdLength: number
  /**
   * Whether the caller has determined the address and the country. If not, they are unknown, and the verdict may have `needsOrigin`.
   */
  hasOrigin: boolean
  /** The family of the address. 0 means that the address is unknown, so no IP rule matches. */
  addressFamily: 0 | 4 | 6
  /** The address in big-endian words, signed or unsigned. An IPv4 address is in `a0` alone. */
  a0: number
  a1: number
  a2: number
  a3: number
  /**
   * The two upper-case ASCII letters of the country as `c0 << 8 | c1`. 0 means that the country is unknown, so no
   * country rule matches.
   */
  country: number
}

/** The `Verdict.slot` that requires no action by the caller. */
export const NO_SLOT = 0
/** The `Verdict.slot` of a machine that holds no slot of a license with a machine limit. The caller must claim a slot. */
export const CLAIM_SLOT = 1
/** The `Verdict.slot` of a machine that is not recorded yet, for a license without a machine limit. */
export const RECORD_MACHINE = 2
/** The `Verdict.slot` of a check that starts the license's term. The caller must send a claim, although the machine needs no slot. */
export const START_TERM = 3
/**
 * The `Verdict.slot` of a machine that holds a slot by a lease of `leaseSeconds`. The check is VALID only if the lease has not ended. If
 * the caller cannot verify that, the caller must claim a slot.
 */
export const HOLDS_LEASE = 4

export interface Verdict {
  /**
   * Whether the writer was writing during each of 1,000 attempts to decide. If so, the other fields have no meaning, and the caller
   * responds with 503.
   */
  busy: boolean
  /**
   * Whether the check has no origin, and the organization has rules that depend on it. If so, the other fields have no meaning, and the
   * caller determines the origin and decides the check again.
   */
  needsOrigin: boolean
  /**
   * The outcome, as a value of CODE. With CLAIM_SLOT, it is VALID if the index counts a free slot, otherwise TOO_MANY_MACHINES.
   */
  code: number
  slot: typeof NO_SLOT | typeof CLAIM_SLOT | typeof RECORD_MACHINE | typeof START_TERM | typeof HOLDS_LEASE
  /** Whether an exclusion decided the check. An excluded check takes no slot and is not recorded (docs/api.md#v7). */
  excluded: boolean
  /** Row of the license, or -1 with NOT_FOUND. */
  license: number
  licenseGeneration: number
  /** Row of the license's product, or -1 with NOT_FOUND. */
  product: number
  productGeneration: number
  /** The time at which the license expires, Infinity for never, or NOT_STARTED before its term starts. */
  expiresAtMs: number
  /** The end of the grace period during the period, otherwise 0 (docs/api.md#v16). */
  graceEndsAtMs: number
  /** The number of machine slots taken, or of machines recorded for a license without a limit. */
  used: number
  /** The machine limit, or -1 when there is none. */
  max: number
  /**
   * The length of the license's leases in seconds, set only with CLAIM_SLOT and HOLDS_LEASE. 0 means that the license has no
   * leases, or that the index was too full to store their length.
   */
  leaseSeconds: number
  /**
   * The first half of the machine id's keyed hash, which identifies the machine in this process. Both words are 0
   * without a machine id.
   */
  machineHash0: number
  machineHash1: number
  /** Row of the deciding rule, or -1 when no rule decided or only restrictions did. */
  decidedBy: number
  /**
   * The types of the deciding scope's restrictions that the check does not satisfy, as a sum of 1 for addresses, 2 for machine ids and 4
   * for countries. The sum is 0 when no restriction rejects the check.
   */
  restrictedTypes: number
  /** The scope of these restrictions. The field has no meaning when `restrictedTypes` is 0. */
  restrictedScope: number
  /** The number of entries of `matched` that are in use. */
  matchedCount: number
  /** Rows of all unexpired rules in any scope that matched the check. */
  matched: Int32Array
  matchedGenerations: Int32Array
}

/**
 * The capacity of a verdict for matched rules. A check can match 393 values in each of the three scopes, 1,179 in all: one value of each of
 * the three kinds for each of 129 prefix lengths, three for the machine, two for the country and one for the customer. Several rules may
 * have the same value. Rules beyond the capacity decide the check, and their matches are not counted.
 */
export const MATCHED_CAPACITY = 2048

/** Values of `Verdict.restrictedScope`. */
export const OF_LICENSE = 0
export const OF_PRODUCT = 1
export const OF_ORGANIZATION = 2

export function createCheck(): Check {
  return {
    organization: -1,
    product: 0,
    licenseKey: new Uint8Array(128),
    licenseKeyLength: 0,
    machineId: new Uint8Array(512),
    machineIdLength: 0,
    hasOrigin: true,
    addressFamily: 0,
    a0: 0,
    a1: 0,
    a2: 0,
    a3: 0,
    country: 0,
  }
}

export function createVerdict(): Verdict {
  return {
    busy: false,
    needsOrigin: false,
    code: 0,
    slot: 0,
    excluded: false,
    license: -1,
    licenseGeneration: 0,
    product: -1,
    productGeneration: 0,
    expiresAtMs: 0.5, // a fraction makes V8 store the field as a double from the start
    graceEndsAtMs: 0.5,
    used: 0,
    max: -1,
    leaseSeconds: 0,
    machineHash0: 0,
    machineHash1: 0,
    decidedBy: -1,
    restrictedTypes: 0,
    restrictedScope: 0,
    matchedCount: 0,
    matched: new Int32Array(MATCHED_CAPACITY),
    matchedGenerations: new Int32Array(MATCHED_CAPACITY),
  }
}

/** The fields of the caller's credential that a check needs. */
export interface CredentialView {
  /** The generation of the row. If the generation has changed since the caller stored it, the row contains another credential or secret. */
  generation: number
  /** Row of the organization. */
  organization: number
  /** Row of the product that the credential is bound to, or 0 for an unbound credential. */
  product: number
  expiresAtMs: number
  /** Whether the organization has an IP or COUNTRY rule in any scope. If so, verdicts depend on the caller's address. */
  addressRules: boolean
}

export function createCredentialView(): CredentialView {
  return { generation: 0, organization: -1, product: 0, expiresAtMs: 0.5, addressRules: false }
}

/**
 * The two stored values of a license's entitlements: the defaults of its product, and the overrides of the license. Each value has a row
 * and a generation, which identify its bytes for the lifetime of the index.
 */
export interface EntitlementsView {
  /** Row of the product's value, or 0 if the product has no entitlements. */
  product: number
  productGeneration: number
  /** Row of the license's own value, or 0 if the license has none. */
  license: number
  licenseGeneration: number
  /** A buffer whose first `productLength` bytes are the product's value. */
  productBytes: Uint8Array
  productLength: number
  /** A buffer whose first `licenseLength` bytes are the license's own value. */
  licenseBytes: Uint8Array
  licenseLength: number
}

export function createEntitlementsView(): EntitlementsView {
  return {
    product: 0,
    productGeneration: 0,
    license: 0,
    licenseGeneration: 0,
    productBytes: new Uint8Array(MAX_VALUE_BYTES),
    productLength: 0,
    licenseBytes: new Uint8Array(MAX_VALUE_BYTES),
    licenseLength: 0,
  }
}

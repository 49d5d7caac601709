/**
 * The input and the result of a decision. Callers create one of each and reuse them for every check, so that a decision
 * allocates nothing. A row is identified by its number and its generation: a number is reused after a deletion, but with
 * another generation, so a pair that no longer matches means that the row was removed.
 */

import { MAX_VALUE_BYTES } from './memory/value-set.ts'

/** A validation request after the caller was authenticated and its address and country were found. */
export interface Check {
  /** Row of the organization that the credential belongs to. */
  organization: number
  /** Row of the product that the credential is bound to: licenses of other products are unknown. 0: bound to none. */
  product: number
  /** Holds the license key in its first `licenseKeyLength` bytes. */
  licenseKey: Uint8Array
  licenseKeyLength: number
  /** Holds the machine id in its first `machineIdLength` bytes. */
  machineId: Uint8Array
  /** 0: the request has no machine id. */
  machineIdLength: number
  /** 0: the address is unknown, and no IP rule matches. */
  addressFamily: 0 | 4 | 6
  /** The address in big-endian words, signed or unsigned; IPv4 in `a0` alone. */
  a0: number
  a1: number
  a2: number
  a3: number
  /** Two upper-case ASCII letters as `c0 << 8 | c1`; 0: unknown, and no country rule matches. */
  country: number
}

/** `Verdict.slot`: the caller has nothing to do. */
export const NO_SLOT = 0
/** `Verdict.slot`: the license has a machine limit and the machine holds no slot, so the caller must claim one. */
export const CLAIM_SLOT = 1
/** `Verdict.slot`: the license has no machine limit, and the machine is not recorded yet. */
export const RECORD_MACHINE = 2
/** `Verdict.slot`: the check starts the license's term. The caller must claim, although the machine needs no slot. */
export const START_TERM = 3
/**
 * `Verdict.slot`: the machine holds a slot by a lease of `leaseSeconds`. The check is VALID only if the caller knows that the lease
 * is alive; otherwise it must claim.
 */
export const HOLDS_LEASE = 4

export interface Verdict {
  /** The writer was writing during each of 1,000 attempts. The rest of the verdict is undefined: respond 503. */
  busy: boolean
  /** A number of CODE. With CLAIM_SLOT, VALID while the index counts free slots, else TOO_MANY_MACHINES. */
  code: number
  slot: typeof NO_SLOT | typeof CLAIM_SLOT | typeof RECORD_MACHINE | typeof START_TERM | typeof HOLDS_LEASE
  /** An exclusion decided: the check takes no slot and is not recorded (docs/api.md#v7). */
  excluded: boolean
  /** Row of the license; -1: the key is unknown. */
  license: number
  licenseGeneration: number
  /** Row of the license's product; -1: the key is unknown. */
  product: number
  productGeneration: number
  /** When the license expires; Infinity: never; NOT_STARTED: its term has not started. */
  expiresAtMs: number
  /** Machine slots taken, or machines recorded where there is no limit. */
  used: number
  /** The machine limit; -1: none. */
  max: number
  /** With HOLDS_LEASE and CLAIM_SLOT: the length of the license's leases. 0: none; with HOLDS_LEASE: unknown. */
  leaseSeconds: number
  /** Half of the machine id's keyed hash, which identifies the machine in this process; 0 and 0 without a machine id. */
  machineHash0: number
  machineHash1: number
  /** Row of the deciding rule; -1: no rule decided, or only restrictions did. */
  decidedBy: number
  /**
   * The types whose restrictions reject the check, because it matches none of them: 1 for addresses, 2 for machine ids and 4
   * for countries, added up. 0: no restriction rejects it.
   */
  restrictedTypes: number
  /** The scope of these restrictions. The value means nothing without them. */
  restrictedScope: number
  /** How many entries of `matched` are in use. */
  matchedCount: number
  /** Rows of all unexpired rules that matched, in any scope. */
  matched: Int32Array
  matchedGenerations: Int32Array
}

/**
 * The most rules that a verdict lists. Each of the three scopes can match one rule of each of the three kinds for every
 * prefix length of an address (129 of them) and for the machine, two for the country and one for the customer: 1,179 in all.
 */
export const MATCHED_CAPACITY = 2048

/** `Verdict.restrictedScope`. */
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
    code: 0,
    slot: 0,
    excluded: false,
    license: -1,
    licenseGeneration: 0,
    product: -1,
    productGeneration: 0,
    expiresAtMs: 0.5, // a fraction makes V8 store the field as a double from the start
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
  /** Another one than the caller remembers: the row holds another credential now. */
  generation: number
  /** Row of the organization. */
  organization: number
  /** Row of the product that it is bound to; 0: none. */
  product: number
  expiresAtMs: number
  /** The organization has an IP or COUNTRY rule in some scope, so checks depend on the client's address. */
  addressRules: boolean
}

export function createCredentialView(): CredentialView {
  return { generation: 0, organization: -1, product: 0, expiresAtMs: 0.5, addressRules: false }
}

/**
 * The entitlements of a license in two parts, as they are stored: the defaults of its product, and its own. Each value has a
 * row and a generation, which identify its bytes for the life of the index.
 */
export interface EntitlementsView {
  /** Row of the product's value; 0: it has none. */
  product: number
  productGeneration: number
  /** Row of the license's own value; 0: it has none. */
  license: number
  licenseGeneration: number
  /** Holds the product's value in its first `productLength` bytes. */
  productBytes: Uint8Array
  productLength: number
  /** Holds the license's own value in its first `licenseLength` bytes. */
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

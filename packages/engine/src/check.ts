/**
 * What goes into a decision and what comes out of it. Both are made once and used again for every check, so that a
 * decision allocates nothing. Rows are named by number and generation: a row number is used again after a deletion, a
 * generation never, so a pair that no longer belongs together means that the row is gone.
 */

/** One validation call, resolved: the caller's organization, and what its app has sent. */
export interface Check {
  /** Row of the organization, from its credential. */
  organization: number
  /** Holds the license key in its first `licenseKeyLength` bytes. */
  licenseKey: Uint8Array
  licenseKeyLength: number
  /** Holds the machine id in its first `machineIdLength` bytes. */
  machineId: Uint8Array
  /** 0: no machine id. */
  machineIdLength: number
  /** 0: the address is unknown, and no IP rule matches. */
  addressFamily: 0 | 4 | 6
  /** The address in big-endian words; IPv4 fills `a0` alone. Signed or unsigned does not matter. */
  a0: number
  a1: number
  a2: number
  a3: number
  /** Two upper-case ASCII letters as `c0 << 8 | c1`; 0: unknown, and no country rule matches. */
  country: number
}

export const NO_SLOT = 0
export const CLAIM_SLOT = 1
export const RECORD_MACHINE = 2

export interface Verdict {
  /** The index was being written all along (1,000 attempts). Nothing else of the verdict counts; answer 503. */
  busy: boolean
  /** Index in CODES. */
  code: number
  /**
   * NO_SLOT: nothing to do. CLAIM_SLOT: a limited license, and the machine holds no slot; `code` is what memory
   * believes, VALID while slots are free, else TOO_MANY_MACHINES. RECORD_MACHINE: no limit, machine not recorded yet.
   */
  slot: 0 | 1 | 2
  /** An exclusion decided: no slot, no alert, no analytics, no activity (API document, States and transitions rule 2). */
  excluded: boolean
  /** Row of the license, -1 when the key is unknown. */
  license: number
  licenseGeneration: number
  /** Row of the license's product, -1 when the key is unknown. */
  product: number
  productGeneration: number
  /** Infinity: never. */
  expiresAtMs: number
  used: number
  /** -1: no machine limit. */
  max: number
  /** Half of the machine id's keyed hash, by which it may be told from others in this process; 0 and 0 without one. */
  machineHash0: number
  machineHash1: number
  /** Row of the deciding rule, -1 when none matched. */
  decidedBy: number
  /** How many entries of `matched` count. */
  matchedCount: number
  /** Rows of all unexpired rules that matched, whatever their scope. */
  matched: Int32Array
  matchedGenerations: Int32Array
}

/**
 * A scope can match one rule of each kind for every prefix length of an address (129 of them), two of the machine, one
 * of the country, one of the customer; there are three scopes.
 */
export const MATCHED_CAPACITY = 1024

export function createCheck(): Check {
  return {
    organization: -1,
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
    expiresAtMs: 0.5, // a fraction, so that the engine stores the field as a double from the start
    used: 0,
    max: -1,
    machineHash0: 0,
    machineHash1: 0,
    decidedBy: -1,
    matchedCount: 0,
    matched: new Int32Array(MATCHED_CAPACITY),
    matchedGenerations: new Int32Array(MATCHED_CAPACITY),
  }
}

/** What a check needs of the credential that it came with. */
export interface CredentialView {
  /** Differs from the one remembered: the row now holds another credential. */
  generation: number
  /** Row of the organization. */
  organization: number
  revoked: boolean
  expiresAtMs: number
  /** The organization has an IP or COUNTRY rule in some scope, so the client's address matters. */
  addressRules: boolean
}

export function createCredentialView(): CredentialView {
  return { generation: 0, organization: -1, revoked: false, expiresAtMs: 0.5, addressRules: false }
}

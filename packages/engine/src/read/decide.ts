/**
 * The verdict of a check: a pure function of the index, the check and the time (docs/api.md#v1 to #v9, #v12, #v14 and #v15).
 * The naive model in `test/support/naive.ts` is the same function over plain arrays. It is easier to read, so start
 * there. Tests check that the two agree.
 *
 * The function only reads the index and allocates nothing. During a concurrent write it may compute a wrong verdict,
 * but it always terminates. The caller's seqlock detects the write, and the caller discards the verdict.
 */

import {
  type Check,
  CLAIM_SLOT,
  HOLDS_LEASE,
  NO_SLOT,
  OF_LICENSE,
  OF_ORGANIZATION,
  OF_PRODUCT,
  RECORD_MACHINE,
  START_TERM,
  type Verdict,
} from '../check.ts'
import { CODE } from '../codes.ts'
import type { ReadStore } from '../memory/index-store.ts'
import {
  EXPIRY,
  EXTENSION_GRACE_DAYS,
  EXTENSION_LEASE_SECONDS,
  EXTENSION_WORDS,
  GENERATION,
  LICENSE_CUSTOMER,
  LICENSE_EXTENSION,
  LICENSE_GRACED,
  LICENSE_LEASED,
  LICENSE_MAX,
  LICENSE_PRODUCT,
  LICENSE_SCOPE_SHIFT,
  LICENSE_STATE,
  LICENSE_STATUS_MASK,
  LICENSE_STATUS_SHIFT,
  LICENSE_USED,
  ORGANIZATION_ADDRESS_RULES,
  ORGANIZATION_SCOPE,
  PRODUCT_SCOPE,
  ROW_DOUBLES,
  ROW_WORDS,
  RULE_ALLOW,
  RULE_EXCLUSION,
  RULE_TRAITS,
  STATUS_REVOKED,
  STATUS_SUSPENDED,
} from '../memory/layout.ts'
import { DAY_MS, NOT_STARTED } from '../model.ts'
import { RESTRICTED, type RuleMatching } from './rule-matching.ts'

/** The result of `stateCode` for an active license whose term has not started. No code has this number. */
const UNSTARTED = -1

/**
 * Decides a check. `key` is the hash of the license key after `bindKey`. `machineHash` is the hash of the machine id,
 * if there is one.
 */
export function decide(
  store: ReadStore,
  matching: RuleMatching,
  check: Check,
  key: Int32Array,
  machineHash: Int32Array,
  nowMs: number,
  verdict: Verdict,
): void {
  const organization = check.organization * ROW_WORDS
  const { words } = store.organizations.region
  verdict.busy = false
  verdict.needsOrigin = !check.hasOrigin && words[organization + ORGANIZATION_ADDRESS_RULES] !== 0
  verdict.slot = NO_SLOT
  verdict.excluded = false
  verdict.decidedBy = -1
  verdict.restrictedTypes = 0
  verdict.matchedCount = 0
  const isOrganization = words[organization + GENERATION]
  const license = isOrganization ? store.lookup.findLicense(key, machineHash) : 0
  if (license === 0 || (check.product !== 0 && check.product !== productOf(store, license))) {
    setNotFound(verdict)
    return
  }
  readLicense(store, license, nowMs, verdict)
  const rule = decidingRule(store, matching, license, check, machineHash, nowMs, verdict)
  if (rule === 0) decideWithoutRule(store, license, check, machineHash, nowMs, verdict)
  else decideByRule(store, license, rule, nowMs, verdict)
}

function productOf(store: ReadStore, license: number): number {
  return store.licenses.region.words[license * ROW_WORDS + LICENSE_PRODUCT]! | 0
}

/** Sets the verdict for a key with which the caller's credential finds no license. No rule is evaluated (docs/api.md#v1). */
function setNotFound(verdict: Verdict): void {
  verdict.code = CODE.NOT_FOUND
  verdict.license = -1
  verdict.licenseGeneration = 0
  verdict.product = -1
  verdict.productGeneration = 0
  verdict.expiresAtMs = Infinity
  verdict.graceEndsAtMs = 0
  verdict.used = 0
  verdict.max = -1
}

function readLicense(store: ReadStore, license: number, nowMs: number, verdict: Verdict): void {
  const { words, doubles } = store.licenses.region
  const base = license * ROW_WORDS
  const product = words[base + LICENSE_PRODUCT]! | 0
  verdict.license = license
  verdict.licenseGeneration = words[base + GENERATION]! | 0
  verdict.product = product
  verdict.productGeneration = store.products.region.words[product * ROW_WORDS + GENERATION]! | 0
  verdict.expiresAtMs = doubles[license * ROW_DOUBLES + EXPIRY] ?? 0
  verdict.used = words[base + LICENSE_USED]! | 0
  verdict.max = words[base + LICENSE_MAX]! | 0
  verdict.graceEndsAtMs = 0
  if ((words[base + LICENSE_STATE]! & LICENSE_GRACED) !== 0) readGrace(store, license, nowMs, verdict)
}

/** Sets the expiry of a license with a grace period, and the end of the period if the license is in it (docs/api.md#v16). */
function readGrace(store: ReadStore, license: number, nowMs: number, verdict: Verdict): void {
  const endsAtMs = verdict.expiresAtMs
  verdict.expiresAtMs = endsAtMs - extensionNumber(store, license, EXTENSION_GRACE_DAYS) * DAY_MS
  if (verdict.expiresAtMs <= nowMs && nowMs < endsAtMs) verdict.graceEndsAtMs = endsAtMs
}

/**
 * Collects the matching rules of all three scopes. Returns the deciding rule, RESTRICTED when only restrictions reject
 * the check, or 0. The rules of the deciding scope alone decide (docs/api.md#v3).
 */
function decidingRule(
  store: ReadStore,
  matching: RuleMatching,
  license: number,
  check: Check,
  machineHash: Int32Array,
  nowMs: number,
  verdict: Verdict,
): number {
  const { words } = store.licenses.region
  const base = license * ROW_WORDS
  const customer = words[base + LICENSE_CUSTOMER]!
  const licenseScope = words[base + LICENSE_STATE]! >>> LICENSE_SCOPE_SHIFT
  const productScope = store.products.region.words[verdict.product * ROW_WORDS + PRODUCT_SCOPE]!
  const organizationScope = store.organizations.region.words[check.organization * ROW_WORDS + ORGANIZATION_SCOPE]!
  if (productScope !== 0) matching.prefetch(productScope, customer, check, machineHash)
  if (organizationScope !== 0) matching.prefetch(organizationScope, customer, check, machineHash)
  let rule = 0
  if (licenseScope !== 0) {
    rule = matching.match(licenseScope, customer, check, machineHash, nowMs, verdict)
    if (matching.unsatisfied !== 0) setRestricted(verdict, matching, OF_LICENSE)
  }
  if (productScope !== 0) {
    const found = matching.match(productScope, customer, check, machineHash, nowMs, verdict)
    if (rule === 0) {
      rule = found
      if (matching.unsatisfied !== 0) setRestricted(verdict, matching, OF_PRODUCT)
    }
  }
  if (organizationScope !== 0) {
    const found = matching.match(organizationScope, customer, check, machineHash, nowMs, verdict)
    if (rule === 0) {
      rule = found
      if (matching.unsatisfied !== 0) setRestricted(verdict, matching, OF_ORGANIZATION)
    }
  }
  return rule
}

function setRestricted(verdict: Verdict, matching: RuleMatching, scope: number): void {
  verdict.restrictedTypes = matching.unsatisfied
  verdict.restrictedScope = scope
}

/**
 * Sets the verdict of a check that rules decide. A blacklist rejects the check (docs/api.md#v5), as do restrictions
 * that the check does not satisfy (docs/api.md#v15). An exclusion skips blacklists, restrictions and the machine limit. The
 * license's own state still counts, unless the exclusion allows suspended and expired licenses (docs/api.md#v6).
 */
function decideByRule(store: ReadStore, license: number, rule: number, nowMs: number, verdict: Verdict): void {
  if (rule === RESTRICTED) {
    verdict.code = CODE.BLACKLISTED
    return
  }
  verdict.decidedBy = rule
  const traits = store.rules.region.words[rule * ROW_WORDS + RULE_TRAITS]!
  if ((traits & RULE_EXCLUSION) === 0) {
    verdict.code = CODE.BLACKLISTED
    return
  }
  verdict.excluded = true
  const state = stateCode(store, license, nowMs)
  const code = state === UNSTARTED ? CODE.VALID : state
  verdict.code = code !== CODE.REVOKED && (traits & RULE_ALLOW) !== 0 ? CODE.VALID : code
}

/** Decides by status, then by expiry, then by the machine limit (docs/api.md#v8). */
function decideWithoutRule(
  store: ReadStore,
  license: number,
  check: Check,
  machineHash: Int32Array,
  nowMs: number,
  verdict: Verdict,
): void {
  const code = stateCode(store, license, nowMs)
  if (code === UNSTARTED) {
    decideUnstarted(store, license, check, machineHash, verdict)
    return
  }
  verdict.code = code
  if (code !== CODE.VALID) return
  const limited = verdict.max >= 0
  if (check.machineIdLength === 0) {
    if (limited) verdict.code = CODE.FINGERPRINT_REQUIRED
    return
  }
  if (store.machines.has(license, verdict.licenseGeneration, machineHash)) {
    if ((store.licenses.region.words[license * ROW_WORDS + LICENSE_STATE]! & LICENSE_LEASED) !== 0) {
      verdict.slot = HOLDS_LEASE
      verdict.leaseSeconds = extensionNumber(store, license, EXTENSION_LEASE_SECONDS)
    }
    return
  }
  if (!limited) {
    verdict.slot = RECORD_MACHINE
    return
  }
  verdict.slot = CLAIM_SLOT
  verdict.leaseSeconds = extensionNumber(store, license, EXTENSION_LEASE_SECONDS)
  if (verdict.used >= verdict.max) verdict.code = CODE.TOO_MANY_MACHINES
}

/**
 * Decides by the machine limit of a license whose term has not started. A check that becomes VALID starts the term
 * (docs/api.md#l1).
 */
function decideUnstarted(
  store: ReadStore,
  license: number,
  check: Check,
  machineHash: Int32Array,
  verdict: Verdict,
): void {
  const limited = verdict.max >= 0
  verdict.code = limited && check.machineIdLength === 0 ? CODE.FINGERPRINT_REQUIRED : CODE.VALID
  if (verdict.code !== CODE.VALID) return
  verdict.slot = START_TERM
  if (!limited || store.machines.has(license, verdict.licenseGeneration, machineHash)) return
  verdict.slot = CLAIM_SLOT
  verdict.leaseSeconds = extensionNumber(store, license, EXTENSION_LEASE_SECONDS)
  if (verdict.used >= verdict.max) verdict.code = CODE.TOO_MANY_MACHINES
}

/** Returns a number of the license's extension, or 0 when the license has none or the index was too full to store it. */
function extensionNumber({ licenses, extensions }: ReadStore, license: number, word: number): number {
  const extension = licenses.region.words[license * ROW_WORDS + LICENSE_EXTENSION]!
  return extension === 0 ? 0 : extensions.region.words[extension * EXTENSION_WORDS + word]! | 0
}

/**
 * Returns the code of the license's own state: revoked before suspended before expired (docs/api.md#v9), or UNSTARTED. The stored time is
 * the end of the grace period.
 */
function stateCode(store: ReadStore, license: number, nowMs: number): number {
  const { words, doubles } = store.licenses.region
  const status = (words[license * ROW_WORDS + LICENSE_STATE]! >>> LICENSE_STATUS_SHIFT) & LICENSE_STATUS_MASK
  if (status === STATUS_REVOKED) return CODE.REVOKED
  if (status === STATUS_SUSPENDED) return CODE.SUSPENDED
  const endsAtMs = doubles[license * ROW_DOUBLES + EXPIRY]!
  if (endsAtMs > nowMs) return CODE.VALID
  return endsAtMs === NOT_STARTED ? UNSTARTED : CODE.EXPIRED
}

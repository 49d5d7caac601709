/**
 * The verdict of a check: a pure function of the index, the check and the time. It reads and never writes the index,
 * allocates nothing, and on memory that is being written it may come to nonsense but always to an end; the caller's
 * lock throws that away.
 */
import { type Check, CLAIM_SLOT, NO_SLOT, RECORD_MACHINE, type Verdict } from '../check.ts'
import { CODE } from '../codes.ts'
import type { IndexStore } from '../memory/index-store.ts'
import {
  EXPIRY,
  LICENSE_CUSTOMER,
  LICENSE_MAX,
  LICENSE_PRODUCT,
  LICENSE_SCOPE_SHIFT,
  LICENSE_STATE,
  LICENSE_STATUS_SHIFT,
  LICENSE_USED,
  ROW_DOUBLES,
  ROW_WORDS,
  RULE_ALLOW,
  RULE_EXCLUSION,
  RULE_TRAITS,
  GENERATION,
  STATUS_REVOKED,
  STATUS_SUSPENDED,
  TENANT_SCOPE,
} from '../memory/layout.ts'
import type { RuleMatching } from './rule-matching.ts'

/** `machineHash`: the keyed hash of the check's machine id. The license key's is in the directory, see `readKey`. */
export function decide(
  store: IndexStore,
  matching: RuleMatching,
  check: Check,
  machineHash: Int32Array,
  nowMs: number,
  verdict: Verdict,
): void {
  verdict.busy = false
  verdict.slot = NO_SLOT
  verdict.excluded = false
  verdict.decidedBy = -1
  verdict.matchedCount = 0
  const license = store.organizations.region.words[check.organization * ROW_WORDS + GENERATION]
    ? store.directory.findLicense(machineHash)
    : 0
  if (license === 0) {
    answerUnknown(verdict)
    return
  }
  readLicense(store, license, verdict)
  const rule = decidingRule(store, matching, license, check, machineHash, nowMs, verdict)
  if (rule === 0) decideWithoutRule(store, license, check, machineHash, nowMs, verdict)
  else decideByRule(store, license, rule, nowMs, verdict)
}

/** No license of the organization has this key, so no rule is looked at (API document, Endpoints rule 4.1). */
function answerUnknown(verdict: Verdict): void {
  verdict.code = CODE.NOT_FOUND
  verdict.license = -1
  verdict.licenseGeneration = 0
  verdict.product = -1
  verdict.productGeneration = 0
  verdict.expiresAtMs = Infinity
  verdict.used = 0
  verdict.max = -1
}

function readLicense(store: IndexStore, license: number, verdict: Verdict): void {
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
}

/** A blacklist refuses; an exclusion lets through what the license's own state allows (API document, Endpoints rule 4). */
function decideByRule(store: IndexStore, license: number, rule: number, nowMs: number, verdict: Verdict): void {
  verdict.decidedBy = rule
  const traits = store.rules.region.words[rule * ROW_WORDS + RULE_TRAITS]!
  if ((traits & RULE_EXCLUSION) === 0) {
    verdict.code = CODE.BLACKLISTED
    return
  }
  verdict.excluded = true
  const code = stateCode(store, license, nowMs)
  verdict.code = code !== CODE.REVOKED && (traits & RULE_ALLOW) !== 0 ? CODE.VALID : code
}

/**
 * Collects the matching rules of all three scopes and gives the one that decides, 0 when none matches: the most
 * specific scope that has a match decides alone (API document, Endpoints rule 4.2).
 */
function decidingRule(
  store: IndexStore,
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
  const productScope = store.products.region.words[verdict.product * ROW_WORDS + TENANT_SCOPE]!
  const organizationScope = store.organizations.region.words[check.organization * ROW_WORDS + TENANT_SCOPE]!
  if (productScope !== 0) matching.touch(productScope, customer, check, machineHash)
  if (organizationScope !== 0) matching.touch(organizationScope, customer, check, machineHash)
  let rule = 0
  if (licenseScope !== 0) rule = matching.match(licenseScope, customer, check, machineHash, nowMs, verdict)
  if (productScope !== 0) {
    const found = matching.match(productScope, customer, check, machineHash, nowMs, verdict)
    if (rule === 0) rule = found
  }
  if (organizationScope !== 0) {
    const found = matching.match(organizationScope, customer, check, machineHash, nowMs, verdict)
    if (rule === 0) rule = found
  }
  return rule
}

/** Status, then expiry, then the machine limit (API document, Endpoints rule 4.5). */
function decideWithoutRule(
  store: IndexStore,
  license: number,
  check: Check,
  machineHash: Int32Array,
  nowMs: number,
  verdict: Verdict,
): void {
  const code = stateCode(store, license, nowMs)
  verdict.code = code
  if (code !== CODE.VALID) return
  const limited = verdict.max >= 0
  if (check.machineIdLength === 0) {
    if (limited) verdict.code = CODE.FINGERPRINT_REQUIRED
    return
  }
  if (store.machines.has(license, verdict.licenseGeneration, machineHash)) return
  if (!limited) {
    verdict.slot = RECORD_MACHINE
    return
  }
  verdict.slot = CLAIM_SLOT
  if (verdict.used >= verdict.max) verdict.code = CODE.TOO_MANY_MACHINES
}

/** What the license's own state says: revoked before suspended before expired. */
function stateCode(store: IndexStore, license: number, nowMs: number): number {
  const { words, doubles } = store.licenses.region
  const status = (words[license * ROW_WORDS + LICENSE_STATE]! >>> LICENSE_STATUS_SHIFT) & 3
  if (status === STATUS_REVOKED) return CODE.REVOKED
  if (status === STATUS_SUSPENDED) return CODE.SUSPENDED
  return doubles[license * ROW_DOUBLES + EXPIRY]! > nowMs ? CODE.VALID : CODE.EXPIRED
}

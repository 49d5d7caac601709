/**
 * The specification of a verdict as a program over plain arrays: rules V1 to V9, V12 to V16, L1, L3, F3, F4 and F8 of docs/api.md.
 * Start reading here. The engine (`src/read/decide.ts`) computes the same verdict from its index, and tests check that
 * the two agree over random worlds. This file uses only types and constants of the engine.
 */

import {
  type AccessRuleRecord,
  type Code,
  type Id,
  type LicenseRecord,
  type Network,
  NOT_STARTED,
  type ProductRecord,
  type RuleScope,
  type RuleType,
} from '../../src/index.ts'

/** The stored rows. */
export interface World {
  products: ProductRecord[]
  licenses: LicenseRecord[]
  rules: AccessRuleRecord[]
  /** The machines that hold a slot, or are recorded where the license has no machine limit. */
  machines: { licenseId: Id; machineId: Uint8Array }[]
}

/** The request of an app whose API key is authenticated and whose address and country are determined. */
export interface NaiveCheck {
  organizationId: Id
  /** The product that the API key is bound to, or null for an unbound key. */
  productId: Id | null
  licenseKey: Uint8Array
  machineId: Uint8Array | null
  /** The caller's address, or null when it is unknown. */
  address: Network | null
  /** The caller's country, or null when it is unknown. */
  country: string | null
}

export interface NaiveVerdict {
  code: Code
  license: LicenseRecord | null
  /** The end of the license's grace period during the period, otherwise 0. */
  graceEndsAtMs: number
  /** All matching rules of all scopes. */
  matched: AccessRuleRecord[]
  /** The deciding rule: the first one of the deciding scope in the order of `byPrecedence`. */
  decidedBy: AccessRuleRecord | null
  /** The types whose restrictions in the deciding scope reject the check. */
  restricted: RestrictionType[]
  excluded: boolean
  /**
   * `claim`: the machine needs a slot. `record`: the machine is only recorded, because the license has no limit. `start`: the check starts
   * the term. `lease`: the machine holds a slot by a lease, and the caller must verify that the lease has not ended.
   */
  slot: 'none' | 'claim' | 'record' | 'start' | 'lease'
}

export type FileCode = Code | 'NOT_STARTED' | 'MACHINE_NOT_ACTIVE'

const SCOPES = ['LICENSE', 'PRODUCT', 'ORGANIZATION'] as const

export const RESTRICTION_TYPES = ['IP', 'HWID', 'COUNTRY'] as const satisfies RuleType[]
export type RestrictionType = (typeof RESTRICTION_TYPES)[number]

/** Decides a check at `nowMs`. */
export function naiveDecide(world: World, check: NaiveCheck, nowMs: number): NaiveVerdict {
  // V1: an unknown key is NOT_FOUND, and no rule is evaluated. V12: a bound API key finds only licenses of its product.
  const license = world.licenses.find(
    (one) =>
      same(one.organizationId, check.organizationId) &&
      same(one.key, check.licenseKey) &&
      (check.productId === null || same(one.productId, check.productId)),
  )
  if (license === undefined) {
    const nothing = {
      license: null,
      graceEndsAtMs: 0,
      matched: [],
      decidedBy: null,
      restricted: [],
      excluded: false,
      slot: 'none',
    } as const
    return { ...nothing, code: 'NOT_FOUND', matched: [], restricted: [] }
  }

  // V2: only unexpired rules in scope match. A rule has no effect from the millisecond `expiresAtMs` on.
  const inForce = world.rules.filter((rule) => isInScope(rule, license) && rule.expiresAtMs > nowMs)
  const matched = inForce.filter((rule) => matches(rule, license, check))

  // V14: a monitored rule matches and never decides. V15: a restriction that matches never decides.
  const enforced = matched.filter((rule) => rule.mode === 'ENFORCE')
  const deciding = enforced.filter((rule) => rule.kind !== 'RESTRICTION')

  // V15: a scope whose restrictions of a type do not match rejects the check, as a blacklist of that scope would.
  const unsatisfied = (scope: RuleScope): RestrictionType[] =>
    RESTRICTION_TYPES.filter((type) => {
      const isOfType = (rule: AccessRuleRecord): boolean =>
        rule.kind === 'RESTRICTION' && rule.mode === 'ENFORCE' && rule.scope === scope && rule.type === type
      return inForce.some(isOfType) && !matched.some(isOfType)
    })

  // V3: the most specific scope with a deciding rule or an unsatisfied restriction decides alone. V4: in that scope, an
  // exclusion beats everything else.
  const scope = SCOPES.find((one) => deciding.some((rule) => rule.scope === one) || unsatisfied(one).length > 0)
  const decidedBy = deciding.filter((rule) => rule.scope === scope).toSorted(byPrecedence)[0] ?? null
  const excluded = decidedBy?.kind === 'EXCLUSION'
  const restricted = scope === undefined || excluded ? [] : unsatisfied(scope)
  // V16: the grace period begins at the expiry.
  const isInGrace = license.expiresAtMs <= nowMs && nowMs < endOf(license)
  const graceEndsAtMs = isInGrace ? endOf(license) : 0
  const verdict = { license, graceEndsAtMs, matched, decidedBy, restricted, excluded, slot: 'none' } as const

  // V5, V15: a blacklist or an unsatisfied restriction rejects the check, whatever the license's state.
  if (decidedBy?.kind === 'BLACKLIST' || restricted.length > 0) return { ...verdict, code: 'BLACKLISTED' }

  // V6: an exclusion skips blacklists, restrictions and the machine limit. The license's state decides, unless the
  // exclusion allows suspended and expired licenses.
  const state = stateOf(license, nowMs)
  if (excluded) {
    const isAllowed = state !== 'REVOKED' && decidedBy.allowSuspendedOrExpired
    return { ...verdict, code: isAllowed ? 'VALID' : state }
  }

  // V8: status, then expiry, then the machine limit.
  if (state !== 'VALID') return { ...verdict, code: state }
  const { machineId } = check
  const limit = license.maxMachines
  if (machineId === null && limit !== null) return { ...verdict, code: 'FINGERPRINT_REQUIRED' }
  const needsSlot = limit !== null && machineId !== null && !isKnown(world, license, machineId)

  // L1: a check that is VALID starts the term. If the machine needs a slot, the claim also starts the term.
  if (license.expiresAtMs === NOT_STARTED && !needsSlot) return { ...verdict, code: 'VALID', slot: 'start' }
  // L3: the slot of a known machine may be leased.
  const isLeased = limit !== null && license.leaseSeconds !== null
  if (machineId === null) return { ...verdict, code: 'VALID' }
  if (isKnown(world, license, machineId)) return { ...verdict, code: 'VALID', slot: isLeased ? 'lease' : 'none' }
  if (limit === null) return { ...verdict, code: 'VALID', slot: 'record' }
  return { ...verdict, code: license.used < limit ? 'VALID' : 'TOO_MANY_MACHINES', slot: 'claim' }
}

/** Decides whether the app of a check gets a license file (F3, F4). `verdict` is the verdict of the check. */
export function naiveAppFile({ code, license, slot }: NaiveVerdict, nowMs: number): FileCode {
  if (code !== 'VALID' || license === null) return code
  if (slot === 'claim' && license.expiresAtMs !== NOT_STARTED) return 'MACHINE_NOT_ACTIVE'
  return fileCodeOf(license, nowMs)
}

/** Decides whether a machine gets a license file of its own, and whether it takes a slot (F8). No access rule applies. */
export function naiveMachineFile(world: World, check: NaiveCheck, nowMs: number): { code: FileCode; isClaim: boolean } {
  const { code, license, slot } = naiveDecide({ ...world, rules: [] }, { ...check, productId: null }, nowMs)
  const stateCode = license === null ? code : fileCodeOf(license, nowMs)
  return stateCode === 'VALID'
    ? { code, isClaim: code === 'VALID' && slot === 'claim' }
    : { code: stateCode, isClaim: false }
}

/** F3: the license must be usable, and its term must have started. */
function fileCodeOf(license: LicenseRecord, nowMs: number): FileCode {
  const state = stateOf(license, nowMs)
  return state === 'VALID' && license.expiresAtMs === NOT_STARTED ? 'NOT_STARTED' : state
}

/** Returns the entitlements of a license's product and those of the license itself (V13). The engine does not merge them. */
export function naiveEntitlements(world: World, license: LicenseRecord): [product: string, own: string] {
  const product = world.products.find((one) => same(one.id, license.productId))
  return [hex(product?.entitlements ?? new Uint8Array(0)), hex(license.entitlements ?? new Uint8Array(0))]
}

/** Returns the time from which checks are EXPIRED: the expiry, or the end of the grace period after it (V16). */
function endOf({ expiresAtMs, graceDays }: LicenseRecord): number {
  return expiresAtMs + (graceDays ?? 0) * 86_400_000
}

/**
 * Returns the code of a license's state: revoked before suspended before expired (V9). A license expires at the
 * millisecond `expiresAtMs` or at the end of its grace period (V16), but never before its term starts (L1).
 */
function stateOf(license: LicenseRecord, nowMs: number): Code {
  if (license.status === 'revoked') return 'REVOKED'
  if (license.status === 'suspended') return 'SUSPENDED'
  return endOf(license) <= nowMs && license.expiresAtMs !== NOT_STARTED ? 'EXPIRED' : 'VALID'
}

function isKnown(world: World, license: LicenseRecord, machineId: Uint8Array): boolean {
  return world.machines.some((one) => same(one.licenseId, license.id) && same(one.machineId, machineId))
}

function isInScope(rule: AccessRuleRecord, license: LicenseRecord): boolean {
  switch (rule.scope) {
    case 'LICENSE':
      return rule.scopeId !== null && same(rule.scopeId, license.id)
    case 'PRODUCT':
      return rule.scopeId !== null && same(rule.scopeId, license.productId)
    case 'ORGANIZATION':
      return same(rule.organizationId, license.organizationId)
    default:
      return rule.scope satisfies never
  }
}

/** Returns whether a rule matches a check. An unknown address or country matches nothing. */
function matches(rule: AccessRuleRecord, license: LicenseRecord, check: NaiveCheck): boolean {
  switch (rule.type) {
    case 'IP':
      return check.address !== null && contains(rule.network, check.address)
    case 'HWID':
      return check.machineId !== null && same(rule.machineId, check.machineId)
    case 'COUNTRY':
      return check.country === rule.country
    case 'CUSTOMER':
      return same(rule.customerId, license.customerId)
    default:
      return rule satisfies never
  }
}

/**
 * Orders the rules of one scope: exclusions before blacklists (V4), then rules that allow suspended and expired licenses (V6), then the
 * longest prefix, then the oldest rule. Prefix and age only determine which rule a verdict names.
 */
function byPrecedence(a: AccessRuleRecord, b: AccessRuleRecord): number {
  return (
    Number(b.kind === 'EXCLUSION') - Number(a.kind === 'EXCLUSION') ||
    Number(b.allowSuspendedOrExpired) - Number(a.allowSuspendedOrExpired) ||
    prefixLengthOf(b) - prefixLengthOf(a) ||
    (hex(a.id) < hex(b.id) ? -1 : 1)
  )
}

function prefixLengthOf(rule: AccessRuleRecord): number {
  return rule.type === 'IP' ? rule.network.prefixLength : -1
}

/** Returns whether a network contains an address, which is a network of full length. */
export function contains(network: Network, address: Network): boolean {
  return network.family === address.family && bitsOf(address).startsWith(bitsOf(network).slice(0, network.prefixLength))
}

/** Returns all bits of an address or network as a string of zeros and ones. */
export function bitsOf(network: Network): string {
  return network.words.map((word) => (word >>> 0).toString(2).padStart(32, '0')).join('')
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}

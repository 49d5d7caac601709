/**
 * The verdict again, over plain arrays and written to be read: what the engine must agree with. Nothing here is shared
 * with the engine but the records and the names of the codes.
 */
import type { AccessRuleRecord, Code, Id, LicenseRecord, Network } from '../../src/index.ts'
import { unreachable } from '../../src/unreachable.ts'

export interface World {
  licenses: LicenseRecord[]
  rules: AccessRuleRecord[]
  machines: { licenseId: Id; machineId: Uint8Array }[]
}

export interface NaiveCheck {
  organizationId: Id
  licenseKey: Uint8Array
  machineId: Uint8Array | null
  address: Network | null
  country: string | null
}

export interface NaiveVerdict {
  code: Code
  decidedBy: AccessRuleRecord | null
  matched: AccessRuleRecord[]
  slot: 'none' | 'claim' | 'record'
  excluded: boolean
  license: LicenseRecord | null
}

export function naiveDecide(world: World, check: NaiveCheck, nowMs: number): NaiveVerdict {
  const license = world.licenses.find(
    (one) => same(one.organizationId, check.organizationId) && same(one.key, check.licenseKey),
  )
  const none = { decidedBy: null, matched: [], slot: 'none', excluded: false } as const
  if (license === undefined) return { ...none, code: 'NOT_FOUND', matched: [], license: null }

  const matched = world.rules.filter((rule) => inScope(rule, license) && matches(rule, license, check, nowMs))
  const scope = (['LICENSE', 'PRODUCT', 'ORGANIZATION'] as const).find((one) => matched.some((r) => r.scope === one))
  const inDecidingScope = matched.filter((rule) => rule.scope === scope).toSorted(byPrecedence)
  const exclusion = inDecidingScope.find((rule) => rule.kind === 'EXCLUSION')
  const decidedBy = exclusion ?? inDecidingScope[0] ?? null
  const result = { decidedBy, matched, license, excluded: exclusion !== undefined, slot: 'none' } as const

  const status = stateOf(license, nowMs)
  if (exclusion !== undefined) {
    const through = status !== 'REVOKED' && inDecidingScope.some((rule) => rule.allowSuspendedOrExpired)
    return { ...result, code: through ? 'VALID' : status }
  }
  if (decidedBy !== null) return { ...result, code: 'BLACKLISTED' }
  if (status !== 'VALID') return { ...result, code: status }
  const { machineId } = check
  const limit = license.maxMachines
  if (machineId === null) return { ...result, code: limit === null ? 'VALID' : 'FINGERPRINT_REQUIRED' }
  const held = world.machines.some((one) => same(one.licenseId, license.id) && same(one.machineId, machineId))
  if (held) return { ...result, code: 'VALID' }
  if (limit === null) return { ...result, code: 'VALID', slot: 'record' }
  return { ...result, code: license.used < limit ? 'VALID' : 'TOO_MANY_MACHINES', slot: 'claim' }
}

function stateOf(license: LicenseRecord, nowMs: number): Code {
  if (license.status === 'revoked') return 'REVOKED'
  if (license.status === 'suspended') return 'SUSPENDED'
  return license.expiresAtMs <= nowMs ? 'EXPIRED' : 'VALID'
}

function inScope(rule: AccessRuleRecord, license: LicenseRecord): boolean {
  if (rule.scope === 'LICENSE') return rule.scopeId !== null && same(rule.scopeId, license.id)
  if (rule.scope === 'PRODUCT') return rule.scopeId !== null && same(rule.scopeId, license.productId)
  return same(rule.organizationId, license.organizationId)
}

function matches(rule: AccessRuleRecord, license: LicenseRecord, check: NaiveCheck, nowMs: number): boolean {
  if (rule.expiresAtMs <= nowMs) return false
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
      return unreachable(rule)
  }
}

/** All bits of an address or network, as a string of zeros and ones. */
export function bitsOf(network: Network): string {
  return network.words.map((word) => (word >>> 0).toString(2).padStart(32, '0')).join('')
}

export function contains(network: Network, address: Network): boolean {
  return network.family === address.family && bitsOf(address).startsWith(bitsOf(network).slice(0, network.prefixLength))
}

function byPrecedence(a: AccessRuleRecord, b: AccessRuleRecord): number {
  const allow = Number(b.allowSuspendedOrExpired) - Number(a.allowSuspendedOrExpired)
  const length = (rule: AccessRuleRecord): number => (rule.type === 'IP' ? rule.network.prefixLength : -1)
  return (
    Number(a.kind === 'BLACKLIST') - Number(b.kind === 'BLACKLIST') ||
    allow ||
    length(b) - length(a) ||
    (hex(a.id) < hex(b.id) ? -1 : 1)
  )
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}

/** Computes the verdict of a check in a state of the simulated database, by the rules V1 to V8 of docs/api.md. */

import { type License, licenseOf, type Rule, type State } from './world.ts'

export interface WatchedCheck {
  readonly organization: number
  /** The number of the license key. */
  readonly license: number
  readonly machine: string
  readonly address: string
  readonly country: string
}

/** The verdict before machine slots are considered. `SLOT` means that the machine slots of the license decide. */
export type Policy = 'NOT_FOUND' | 'BLACKLISTED' | 'REVOKED' | 'SUSPENDED' | 'VALID' | 'SLOT'

export function policyOf(state: State, check: WatchedCheck): Policy {
  const found = licenseOf(state, check.license)
  if (found?.[1].organization !== check.organization) return 'NOT_FOUND'
  const [number, license] = found
  const matching = [...state.rule.values()].filter((rule) => matches(rule, number, license, check))
  const scope = (['LICENSE', 'PRODUCT', 'ORGANIZATION'] as const).find((one) =>
    matching.some((rule) => rule.scope === one),
  )
  const deciding = matching.filter((rule) => rule.scope === scope)
  const exclusions = deciding.filter(({ kind }) => kind === 'EXCLUSION')
  if (deciding.length > 0 && exclusions.length === 0) return 'BLACKLISTED'
  if (license.status === 'revoked') return 'REVOKED'
  const isForgiven = exclusions.some((rule) => rule.allowSuspendedOrExpired)
  if (license.status === 'suspended' && !isForgiven) return 'SUSPENDED'
  return exclusions.length > 0 ? 'VALID' : 'SLOT'
}

function matches(rule: Rule, number: number, license: License, check: WatchedCheck): boolean {
  if (rule.organization !== license.organization) return false
  const scopeIds = { LICENSE: number, PRODUCT: license.product, ORGANIZATION: null }
  if (rule.scopeId !== scopeIds[rule.scope]) return false
  switch (rule.type) {
    case 'IP':
      return contains(rule.value, check.address)
    case 'HWID':
      return rule.value === check.machine
    case 'COUNTRY':
      return rule.value === check.country
    case 'CUSTOMER':
      return rule.value === String(license.customer)
    default:
      return rule.type satisfies never
  }
}

function contains(network: string, address: string): boolean {
  const [base = '', length = '32'] = network.split('/')
  const hostBits = 2 ** (32 - Number(length))
  return Math.floor(wordOf(base) / hostBits) === Math.floor(wordOf(address) / hostBits)
}

/** Returns an IPv4 address as a number of 32 bits. */
export function wordOf(address: string): number {
  return address.split('.').reduce((word, part) => word * 256 + Number(part), 0)
}

import type { CreateAccessRule } from '@keyward/contract/management/access-rules'

import { letters } from './chance.ts'
import { DAY_MS, type Plan } from './plan.ts'

/** The ids of the objects that rules refer to. */
export interface Known {
  readonly products: readonly string[]
  readonly customers: readonly string[]
  readonly licenses: readonly string[]
}

/** A rule in the JSON of a request. */
type PlannedRule = Omit<CreateAccessRule, 'expiresAt'> & { readonly expiresAt?: string }

/** The machine id that a cracked build of the app sends. */
export const CRACKED = 'MAC-0000-PATCHED'
/** The index of the customer whose checks a rule rejects. */
export const BLOCKED_CUSTOMER = 17
/** The index of a license that can be used only from the network and the country of its owner. */
const RESTRICTED_LICENSE = 42

const organization = { scope: 'ORGANIZATION' } as const

/** Returns the rules outside of sets, in groups that are created together. */
export function planRules({ nowMs, licenses }: Plan, known: Known): Record<'first' | 'watched' | 'support', PlannedRule[]> {
  const inDays = (days: number) => ({ expiresAt: new Date(nowMs + days * DAY_MS).toISOString() })
  const product = (i: number) => ({ scope: 'PRODUCT', scopeId: known.products[i]! }) as const
  const license = (i: number) => ({ scope: 'LICENSE', scopeId: known.licenses[i]! }) as const
  const expired = licenses.findIndex(({ endsMs }) => endsMs !== null && endsMs < nowMs)
  const overused = licenses.findIndex(({ fate }) => fate === 'overused')
  return {
    first: [
      { kind: 'BLACKLIST', type: 'IP', value: '203.0.113.0/24', ...organization, note: 'Abuse reported by our host' },
      { kind: 'BLACKLIST', type: 'IP', value: '198.51.100.23', ...organization, note: 'Tries keys', ...inDays(20) },
      { kind: 'BLACKLIST', type: 'IP', value: '2001:db8:bad::/48', ...organization, note: 'Abuse reported by our host' },
      { kind: 'BLACKLIST', type: 'HWID', value: CRACKED, ...organization, note: 'Machine id of a cracked build' },
      { kind: 'BLACKLIST', type: 'COUNTRY', value: 'KP', ...organization, note: 'Export control' },
      { kind: 'EXCLUSION', type: 'HWID', value: 'BUILD-SERVER-01', ...organization, note: 'Our own tests' },
      { kind: 'EXCLUSION', type: 'IP', value: '192.0.2.10', ...organization, note: 'Our office' },
    ],
    watched: [
      { kind: 'BLACKLIST', mode: 'MONITOR', type: 'IP', value: '100.64.0.0/10', ...organization, note: 'How many checks come from carrier networks?' },
      { kind: 'BLACKLIST', mode: 'MONITOR', type: 'COUNTRY', value: 'AQ', ...product(1), note: 'Before we close the region' },
      { kind: 'BLACKLIST', type: 'CUSTOMER', value: known.customers[BLOCKED_CUSTOMER]!, ...organization, note: 'Chargeback, waits for accounting' },
      { kind: 'RESTRICTION', type: 'IP', value: '192.0.2.128/25', ...license(RESTRICTED_LICENSE), note: 'Only from the studio' },
      { kind: 'RESTRICTION', type: 'COUNTRY', value: 'DE', ...license(RESTRICTED_LICENSE), note: 'Only from the studio' },
    ],
    support: [
      { kind: 'EXCLUSION', type: 'HWID', value: 'MAC-PREMIERE-2', ...license(overused), note: 'Second console for the premiere', ...inDays(6) },
      { kind: 'EXCLUSION', type: 'HWID', value: licenses[expired]!.machines[0]?.id ?? 'MAC-RENEWAL', ...license(expired), allowSuspendedOrExpired: true, note: 'Renewal is on its way', ...inDays(9) },
      { kind: 'EXCLUSION', type: 'IP', value: '192.0.2.64/28', ...product(1), note: 'Booth at the trade show', ...inDays(12) },
    ],
  }
} // prettier-ignore

/** Returns the sets of rules by name. */
export function planSets(): Record<string, PlannedRule[]> {
  return {
    'anonymous proxies': Array.from({ length: 180 }, (_, i) => ({
      kind: 'BLACKLIST',
      type: 'IP',
      value: i % 9 === 8 ? `2001:db8:0:${(i * 11).toString(16)}::/64` : `198.51.100.${30 + i}`,
      ...organization,
    })),
    'shared keys': Array.from({ length: 25 }, (_, i) => ({
      kind: 'BLACKLIST',
      type: 'HWID',
      value: `MAC-${letters(8, `shared ${i}`)}`,
      ...organization,
      note: 'From a forum',
    })),
  }
}

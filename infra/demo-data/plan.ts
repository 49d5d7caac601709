/**
 * Plans the customers and licenses of the demo data. The plan depends only on the time at which the data is created. The first customers
 * and licenses are created about a year before that time.
 */

import type { Entitlements, License } from '@keyward/contract'

import { COMPANIES, HOSTS, PEOPLE } from './catalog.ts'
import { between, chance, letters, pick } from './chance.ts'

export const DAY_MS = 86_400_000

/** The times at which customers and licenses are created, in days before the current time, the oldest first. */
export const ARRIVALS_DAYS = [
  352, 338, 325, 311, 297, 284, 270, 257, 243, 229, 216, 202, 188, 175, 161, 147, 134, 120, 106, 93, 79, 65, 51, 38,
  29.2, 22.4, 14.3, 8.2, 4.1, 1.1,
] as const
const CUSTOMERS = 60
const LICENSES = 200

interface PlannedCustomer {
  readonly email: string
  readonly name: string
  readonly externalId: string
  /** The index of the arrival at which the customer is created. */
  readonly arrival: number
}

export type Fate = 'active' | 'suspended' | 'revoked' | 'overused' | 'unused'

export interface PlannedLicense {
  readonly key: string
  /** The indexes of the product, the customer and the arrival. */
  readonly product: number
  readonly customer: number
  readonly arrival: number
  readonly policy: Term & { readonly maxMachines: number | null }
  readonly entitlements: Entitlements
  /** The time at which the license expires; null if it never expires or its term has not started. */
  readonly endsMs: number | null
  readonly fate: Fate
  readonly machines: readonly { readonly id: string; readonly hostname: string }[]
}

export interface Plan {
  readonly nowMs: number
  readonly customers: readonly PlannedCustomer[]
  /** The first license is the one that `npm start` creates. Its key and policy are those of `npm start`, not those of the plan. */
  readonly licenses: readonly PlannedLicense[]
}

export function planDemoData(nowMs: number): Plan {
  const customers = Array.from({ length: CUSTOMERS }, (_, i) => planCustomer(i))
  return { nowMs, customers, licenses: Array.from({ length: LICENSES }, (_, i) => planLicense(i, customers, nowMs)) }
}

function planCustomer(i: number): PlannedCustomer {
  const name = i % 2 === 0 ? COMPANIES[i / 2]! : PEOPLE[(i - 1) / 2]!
  const plain = name.normalize('NFD').replace(/\p{M}/gu, '').replace('ø', 'o').toLowerCase()
  const words = plain.split(' ')
  const email = i % 2 === 0 ? `licenses@${words.join('-')}.example` : `${words.join('.')}@example.com`
  const arrival = Math.floor((i * ARRIVALS_DAYS.length) / CUSTOMERS)
  return { email, name, externalId: `crm-${1_000 + i * 7}`, arrival }
}

/** The kinds of successive licenses. The license after the last kind has the first kind again. */
const KINDS = [
  'yearly', 'perpetual', 'yearly', 'floating', 'yearly', 'expiring', 'yearly', 'expired', 'perpetual', 'first use',
  'yearly', 'overused', 'unlimited', 'yearly', 'suspended', 'yearly', 'perpetual', 'revoked', 'yearly', 'expiring',
] as const // prettier-ignore
type Kind = (typeof KINDS)[number]

function planLicense(i: number, customers: readonly PlannedCustomer[], nowMs: number): PlannedLicense {
  const arrival = Math.floor((i * ARRIVALS_DAYS.length) / LICENSES)
  const kind = i === 0 ? 'yearly' : KINDS[i % KINDS.length]!
  const present = customers.filter((customer) => customer.arrival <= arrival).length
  const key = Array.from({ length: 4 }, (_, part) => letters(4, `key ${i} ${part}`)).join('-')
  const maxMachines = maxMachinesOf(kind, i)
  const used = usedOf(kind, maxMachines, i)
  const policy = { ...termOf(kind, i, nowMs), maxMachines }
  return {
    key,
    product: pick([0, 0, 0, 1, 1, 2], `product ${i}`),
    customer: i === 0 ? 0 : between(0, present, `customer ${i}`),
    arrival,
    policy,
    entitlements: entitlementsOf(i),
    endsMs: policy.expiresAt === undefined ? null : Date.parse(policy.expiresAt),
    fate: fateOf(kind, used),
    machines: Array.from({ length: i === 0 ? 0 : used }, (_, machine) => ({
      id: `MAC-${letters(8, `machine ${i} ${machine}`)}`,
      hostname: `${pick(HOSTS, `host ${i} ${machine}`)}-${between(1, 40, `host number ${i} ${machine}`)}`,
    })),
  }
}

interface Term {
  readonly type: License['policy']['type']
  readonly expiresAt?: string
  readonly durationDays?: number
  readonly leaseSeconds?: number
  readonly maxReleases?: number
}

function termOf(kind: Kind, i: number, nowMs: number): Term {
  const until = (days: number) => new Date(nowMs + days * DAY_MS).toISOString()
  if (kind === 'perpetual' || kind === 'unlimited') return { type: 'PERPETUAL' }
  if (kind === 'first use') return { type: 'TRIAL', durationDays: pick([14, 30], `trial ${i}`) }
  if (kind === 'floating') {
    const leaseSeconds = pick([8 * 3_600, 2 * 86_400, 7 * 86_400], `lease ${i}`)
    return { type: 'SUBSCRIPTION', expiresAt: until(between(90, 360, `term ${i}`)), leaseSeconds }
  }
  const [from, to] = kind === 'expiring' ? [2, 30] : kind === 'expired' ? [-60, -2] : [45, 360]
  const expiresAt = until(from + chance(`term ${i}`) * (to - from))
  return { type: 'SUBSCRIPTION', expiresAt, ...(i % 3 === 0 && { maxReleases: 3 }) }
}

function maxMachinesOf(kind: Kind, i: number): number | null {
  if (kind === 'unlimited') return null
  if (kind === 'floating') return between(4, 12, `seats ${i}`)
  return kind === 'first use' ? 1 : pick([1, 2, 2, 3, 5], `machines ${i}`)
}

function usedOf(kind: Kind, maxMachines: number | null, i: number): number {
  if (maxMachines === null) return between(6, 18, `used ${i}`)
  if (kind === 'overused') return maxMachines
  if (kind === 'first use') return i % 40 < 20 ? 0 : 1
  return between(0, maxMachines + 1, `used ${i}`)
}

function fateOf(kind: Kind, used: number): Fate {
  if (kind === 'suspended' || kind === 'revoked' || kind === 'overused') return kind
  return used === 0 ? 'unused' : 'active'
}

function entitlementsOf(i: number): Entitlements {
  if (i === 0 || chance(`entitlements ${i}`) > 0.25) return {}
  return pick<Entitlements>(
    [{ edition: 'pro', tracks: 128 }, { edition: 'education' }, { 'early-access': true }, { tracks: 64 }],
    `overrides ${i}`,
  )
}

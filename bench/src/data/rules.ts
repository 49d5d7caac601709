/**
 * Computes the access rules of a generated database, without duplicates. In odd-numbered organizations, half of the rules are address
 * rules. A check from `clientAddress` with a generated machine matches no rule unless the customer of its license is blocked.
 */

import {
  blockedPerOrganization,
  customersPerOrganization,
  hasAddressRules,
  PRODUCTS_PER_ORGANIZATION,
  type Shape,
} from './population.ts'
import { idText, scatter, TABLE } from './scatter.ts'

export interface RuleRow {
  organization: number
  kind: 'BLACKLIST' | 'EXCLUSION'
  type: 'IP' | 'HWID' | 'COUNTRY' | 'CUSTOMER'
  value: string
  scope: 'ORGANIZATION' | 'PRODUCT' | 'LICENSE'
  /** The ordinals of the product or license in the scope, and of the customer of a CUSTOMER rule; otherwise null. */
  product: number | null
  license: number | null
  customer: number | null
}

/**
 * The lowest first octet of networks. The highest is 127, so the loopback address, from which local checks come, is near networks of rules.
 */
const FIRST_OCTET = 64

const COUNTRIES =
  'AD AE AF AG AL AM AO AR AT AU AZ BA BB BD BE BF BG BH BI BJ BN BO BR BS BT BW BY BZ CA CD CF CG CH CI'.split(' ')

/** Returns rule number `ordinal` of the shape. Equal shapes have equal rules. */
export function ruleRow(shape: Shape, ordinal: number): RuleRow {
  const organization = ordinal % shape.organizations
  const number = Math.floor(ordinal / shape.organizations)
  const turn = number % 10
  const count = Math.floor(number / 10)
  const place = scopeOf(shape, organization, ordinal, number)
  const base = { organization, ...place, customer: null }
  if (turn < 5 && hasAddressRules(organization)) {
    const kind = turn === 4 ? 'EXCLUSION' : 'BLACKLIST'
    return { ...base, kind, type: 'IP', value: turn === 3 ? ipv6Network(count) : ipv4Network(shape.seed, turn, count) }
  }
  if (turn === 5 && hasAddressRules(organization)) {
    const country = countryRule(shape, organization, count)
    if (country !== null) return { ...base, ...country, kind: 'BLACKLIST', type: 'COUNTRY' }
  }
  if (turn === 6) {
    const customer = customerRule(shape, organization, count)
    if (customer !== null) return { ...base, ...customer, kind: 'BLACKLIST', type: 'CUSTOMER' }
  }
  const value = `ruled-${scatter(shape.seed, TABLE.rule, ordinal).toString(16).padStart(8, '0')}-${ordinal}`
  return { ...base, kind: turn === 9 ? 'EXCLUSION' : 'BLACKLIST', type: 'HWID', value }
}

/** Returns an address that shares its first 19 bits with networks of rules, but is in none of them. */
export function clientAddress(seed: number, number: number): string {
  const bits = scatter(seed, TABLE.rule, number, 5) % 2 ** 30
  const withoutTwentieth = bits - (bits & 0x1000)
  return ipv4Text(withoutTwentieth + FIRST_OCTET * 2 ** 24)
}

type Place = Pick<RuleRow, 'scope' | 'product' | 'license'>

/** Returns the scope of a rule: in six of ten cases the organization, in two a product, and in two a license. */
function scopeOf(shape: Shape, organization: number, ordinal: number, number: number): Place {
  const draw = scatter(shape.seed, TABLE.rule, ordinal, 1)
  const turn = Math.floor(number / 10) % 10
  if (turn < 6 || shape.licenses < shape.organizations) return { scope: 'ORGANIZATION', product: null, license: null }
  if (turn < 8) {
    const product = organization * PRODUCTS_PER_ORGANIZATION + (draw % PRODUCTS_PER_ORGANIZATION)
    return { scope: 'PRODUCT', product, license: null }
  }
  const license = (draw % Math.floor(shape.licenses / shape.organizations)) * shape.organizations + organization
  return { scope: 'LICENSE', product: null, license }
}

/**
 * Returns a network of 20, 24 or 32 bits whose first octet is 64 to 127. The twentieth bit of the network is 1, and the twentieth bit of
 * every client address is 0. Therefore no client address matches, although its walk through the trie is deep. Multiplying by an odd number
 * yields all networks of a length before one repeats.
 */
function ipv4Network(seed: number, turn: number, count: number): string {
  const length = turn === 0 ? 20 : turn === 1 ? 24 : 32
  const behind = length - 20
  const index = (count * 2_654_435_761 + seed + turn * 12_345_679) % 2 ** (17 + behind)
  const prefix = Math.floor(index / 2 ** behind) * 2 ** (behind + 1) + 2 ** behind + (index % 2 ** behind)
  const address = prefix * 2 ** (32 - length) + FIRST_OCTET * 2 ** 24
  return length === 32 ? ipv4Text(address) : `${ipv4Text(address)}/${length}`
}

/** Returns 2a00:gggg:gggg::/48 with groups from 1000 to 1fff, which is the canonical form. */
function ipv6Network(count: number): string {
  const index = (count * 40_503) % 2 ** 24
  return `2a00:${(0x1000 + Math.floor(index / 4096)).toString(16)}:${(0x1000 + (index % 4096)).toString(16)}::/48`
}

function ipv4Text(address: number): string {
  return [address >>> 24, (address >>> 16) & 255, (address >>> 8) & 255, address & 255].join('.')
}

/**
 * Returns a country rule, or null when all pairs of country and scope are used. The scope is the organization at first,
 * then one license after another.
 */
function countryRule(shape: Shape, organization: number, count: number): (Place & { value: string }) | null {
  const round = Math.floor(count / COUNTRIES.length)
  if (round > Math.floor(shape.licenses / shape.organizations)) return null
  const value = COUNTRIES[count % COUNTRIES.length] ?? 'AD'
  if (round === 0) return { value, scope: 'ORGANIZATION', product: null, license: null }
  return { value, scope: 'LICENSE', product: null, license: (round - 1) * shape.organizations + organization }
}

/**
 * Returns a rule about a blocked customer, or null when all pairs of customer and scope are used. The scope is the
 * organization at first, then one product after another.
 */
function customerRule(
  shape: Shape,
  organization: number,
  count: number,
): (Place & { value: string; customer: number }) | null {
  const blocked = blockedPerOrganization(shape)
  const round = Math.floor(count / blocked)
  if (round > PRODUCTS_PER_ORGANIZATION) return null
  const customers = customersPerOrganization(shape)
  const customer = organization * customers + customers - 1 - (count % blocked)
  const value = idText(shape.seed, 'customer', customer)
  if (round === 0) return { value, customer, scope: 'ORGANIZATION', product: null, license: null }
  const product = organization * PRODUCTS_PER_ORGANIZATION + round - 1
  return { value, customer, scope: 'PRODUCT', product, license: null }
}

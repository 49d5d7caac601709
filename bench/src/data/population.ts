/**
 * Computes the contents of a generated database: the organization, product, customer, key and machines of each license. License n belongs
 * to organization n mod O, where O is the number of organizations. Even-numbered organizations have no address or country rules.
 */

import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

import { scatter, TABLE } from './scatter.ts'

export interface Shape {
  seed: number
  licenses: number
  rules: number
  organizations: number
  machinesPerLicense: number
  /** The number of slots per license, or null for no limit. */
  maxMachines: number | null
}

export const PRODUCTS_PER_ORGANIZATION = 10
const LICENSES_PER_CUSTOMER = 10
/** The share of the customers of an organization that CUSTOMER rules may blacklist. */
const BLOCKED_CUSTOMERS = 0.02

/** The machine ids of two rules that every organization has in addition to the shape's rules: a blacklist and an exclusion. */
export const BLACKLISTED_MACHINE = 'bench-blacklisted'
export const EXCLUDED_MACHINE = 'bench-excluded'

interface LicenseFacts {
  organization: number
  /** The ordinals of the product and the customer, counted over all organizations. */
  product: number
  customer: number
  /** Whether a CUSTOMER rule may blacklist the license's customer. */
  blocked: boolean
}

export function customersPerOrganization(shape: Shape): number {
  return Math.max(2, Math.ceil(shape.licenses / shape.organizations / LICENSES_PER_CUSTOMER))
}

export function blockedPerOrganization(shape: Shape): number {
  return Math.max(1, Math.floor(customersPerOrganization(shape) * BLOCKED_CUSTOMERS))
}

export function hasAddressRules(organization: number): boolean {
  return organization % 2 === 1
}

export function licenseFacts(shape: Shape, license: number): LicenseFacts {
  const organization = license % shape.organizations
  const number = Math.floor(license / shape.organizations)
  const customers = customersPerOrganization(shape)
  const customer = number % customers
  return {
    organization,
    product: organization * PRODUCTS_PER_ORGANIZATION + (number % PRODUCTS_PER_ORGANIZATION),
    customer: organization * customers + customer,
    blocked: customer >= customers - blockedPerOrganization(shape),
  }
}

const KEY_LETTERS = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ'

/** Returns `XXXX-XXXX-XXXX-XXXX`, the form of the keys that the service generates. */
export function licenseKey(shape: Shape, license: number): string {
  let key = ''
  for (let letter = 0; letter < 16; letter += 1) {
    if (letter > 0 && letter % 4 === 0) key += '-'
    const bits = scatter(shape.seed, TABLE.license, license, letter >> 2) >>> ((letter & 3) * 5)
    key += KEY_LETTERS[bits & 31]!
  }
  return key
}

/** Returns 32 hexadecimal digits, the form of a hash over properties of a machine. */
export function machineId(shape: Shape, license: number, machine: number): string {
  const ordinal = license * shape.machinesPerLicense + machine
  let id = ''
  for (let word = 0; word < 4; word += 1) {
    id += scatter(shape.seed, TABLE.machine, ordinal, word).toString(16).padStart(8, '0')
  }
  return id
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Returns an organization's API key. It depends only on the seed, so use it only in databases for measurements. */
export function apiKey(shape: Shape, organization: number): string {
  const hash = createHash('sha256').update(`keyward bench ${shape.seed} ${organization}`).digest()
  const random = Array.from(hash.subarray(0, 30), (byte) => BASE62[byte % 62]).join('')
  return `kwk_${random}${base62(crc32(random), 6)}`
}

function base62(value: number, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 62)) text = BASE62[rest % 62]! + text
  return text
}

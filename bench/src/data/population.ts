// What a generated database holds, as arithmetic: which license belongs to whom, what its key and its machines are.
// License n belongs to organization n mod O. Organizations with an even number have no rule about addresses or countries.
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

import { scatter, TABLE } from './scatter.ts'

export interface Shape {
  seed: number
  licenses: number
  rules: number
  organizations: number
  machinesPerLicense: number
  /** Slots of every license; null: no limit. */
  maxMachines: number | null
}

export const PRODUCTS_PER_ORGANIZATION = 10
const LICENSES_PER_CUSTOMER = 10
// Customers that rules of type CUSTOMER name, so that all other licenses stay free of a blacklist.
const BLOCKED_CUSTOMERS = 0.02

/** Machine ids that a blacklist and an exclusion of every organization name, besides the shape's rules. */
export const BLACKLISTED_MACHINE = 'bench-blacklisted'
export const EXCLUDED_MACHINE = 'bench-excluded'

export interface LicenseFacts {
  organization: number
  /** Ordinal over all organizations, as are the following. */
  product: number
  customer: number
  /** Its customer is one that a rule may blacklist. */
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

/** `XXXX-XXXX-XXXX-XXXX`, as the service makes them. */
export function licenseKey(shape: Shape, license: number): string {
  let key = ''
  for (let letter = 0; letter < 16; letter += 1) {
    if (letter > 0 && letter % 4 === 0) key += '-'
    const bits = scatter(shape.seed, TABLE.license, license, letter >> 2) >>> ((letter & 3) * 5)
    key += KEY_LETTERS[bits & 31] ?? ''
  }
  return key
}

/** 32 hexadecimal digits, the shape of a hash over what an app finds on its machine. */
export function machineId(shape: Shape, license: number, machine: number): string {
  const ordinal = license * shape.machinesPerLicense + machine
  let id = ''
  for (let word = 0; word < 4; word += 1) {
    id += scatter(shape.seed, TABLE.machine, ordinal, word).toString(16).padStart(8, '0')
  }
  return id
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** The API key of an organization: anybody who knows the seed knows it, so it is for databases made to be measured. */
export function apiKey(shape: Shape, organization: number): string {
  const hash = createHash('sha256').update(`keyward bench ${shape.seed} ${organization}`).digest()
  const random = Array.from(hash.subarray(0, 30), (byte) => BASE62[byte % 62]).join('')
  return `kwk_${random}${base62(crc32(random), 6)}`
}

function base62(value: number, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 62)) text = (BASE62[rest % 62] ?? '') + text
  return text
}

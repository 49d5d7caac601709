/**
 * Defines the values of each type of rule: their canonical form (docs/api.md#r2), the validation error, and the value that the engine
 * matches. Rules that differ only in the spelling of the value are duplicates.
 */

import type { RuleMatch, RuleType } from '@keyward/engine'

import { parseCountryCode } from './country.ts'
import { formatNetwork } from './format.ts'
import { parseNetwork } from './network.ts'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Returns the canonical value, or null for a value that is invalid for the type. */
export function canonicalRuleValue(type: RuleType, value: string): string | null {
  switch (type) {
    case 'IP': {
      const network = parseNetwork(value)
      return network && formatNetwork(network)
    }
    case 'HWID':
      return value
    case 'COUNTRY':
      return parseCountryCode(value)
    case 'CUSTOMER':
      return UUID.test(value) ? value.toLowerCase() : null
    default:
      return type satisfies never
  }
}

/**
 * Returns the value that a stored rule matches, or the reason why the rule is unreadable. `customerId` is the customer of a rule with the
 * type CUSTOMER.
 */
export function readRuleMatch(type: RuleType, value: Uint8Array, customerId: Uint8Array | null): RuleMatch | string {
  switch (type) {
    case 'IP': {
      const network = parseNetwork(textOf(value))
      return network ? { type, network } : 'its value is not an address or range'
    }
    case 'HWID':
      return { type, machineId: value }
    case 'COUNTRY': {
      const country = parseCountryCode(textOf(value))
      return country === null ? 'its value is not a country code' : { type, country }
    }
    case 'CUSTOMER':
      return customerId ? { type, customerId } : 'its customer is missing'
    default:
      return type satisfies never
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Returns the text of a value. Returns '' for bytes that are not UTF-8, because '' is neither a network nor a country code. */
function textOf(value: Uint8Array): string {
  try {
    return utf8.decode(value)
  } catch {
    return ''
  }
}

/** The validation error of each type. The caller prepends the name of the field. */
export const RULE_VALUE_ERRORS: Record<RuleType, string> = {
  IP: 'must be an IPv4 or IPv6 address or a CIDR range',
  HWID: 'must be a machine id',
  COUNTRY: 'must be an assigned ISO 3166-1 alpha-2 country code, such as DE',
  CUSTOMER: 'must be the id of a customer of this organization',
}

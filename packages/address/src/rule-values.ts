/**
 * Converts the values of rules to their canonical form (docs/api.md#r2). The index matches this form, and rules that differ
 * only in the spelling of the value are duplicates.
 */

import type { RuleType } from '@keyward/engine'

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

/** The validation error of each type. The caller puts the name of the field before it. */
export const RULE_VALUE_ERRORS: Record<RuleType, string> = {
  IP: 'must be an IPv4 or IPv6 address or a CIDR range',
  HWID: 'must be a machine id',
  COUNTRY: 'must be an assigned ISO 3166-1 alpha-2 country code, such as DE',
  CUSTOMER: 'must be the id of a customer of this organization',
}

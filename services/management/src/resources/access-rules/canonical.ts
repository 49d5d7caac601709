/** The canonical form of a rule's value, so that two spellings of one thing are one rule and equal what the index matches. */
import { formatNetwork, parseCountryCode, parseNetwork } from '@keyward/address'
import type { RuleType } from '@keyward/contract'

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The canonical value, or null for what is none of this type. */
export function canonicalValue(type: RuleType, value: string): string | null {
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
      return uuid.test(value) ? value.toLowerCase() : null
    default:
      return type satisfies never
  }
}

/** Completes "`value` …". */
export const valueFault: Record<RuleType, string> = {
  IP: 'must be an IPv4 or IPv6 address or a CIDR range',
  HWID: 'must be a machine id',
  COUNTRY: 'must be an assigned ISO 3166-1 alpha-2 code',
  CUSTOMER: 'must be the id of a customer of this organization',
}

/** Parses addresses and ranges, and converts them to the form that the API stores. Uses the same functions as the API. */

import { contains, noAddress, parseAddress, parseNetwork } from '@keyward/address/network'
import { canonicalRuleValue } from '@keyward/address/rule-values'

interface Range {
  /** The form that the API stores, such as `10.0.0.0/8` for a range or `10.0.0.1` for a single address. */
  canonical: string
  prefixLength: number
  contains: (address: string) => boolean
}

/** Parses an IP address or a CIDR range. Returns null for any other text. */
export function parseRange(text: string): Range | null {
  const network = parseNetwork(text)
  const canonical = canonicalRuleValue('IP', text)
  if (network === null || canonical === null) return null
  return {
    canonical,
    prefixLength: network.prefixLength,
    contains: (address) => {
      const parsed = noAddress()
      return parseAddress(address, parsed) && contains(network, parsed)
    },
  }
}

/** Reads address ranges in the form that the API stores, with the functions that the API itself uses. */

import { contains, noAddress, parseAddress, parseNetwork } from '@keyward/address/network'
import { canonicalRuleValue } from '@keyward/address/rule-values'

export interface Range {
  /** The form that the API stores: `10.0.0.0/8`, or a single address. */
  canonical: string
  prefixLength: number
  /** Returns whether the range contains an address. */
  contains: (address: string) => boolean
}

/** Returns null when the text is neither an address nor a range. */
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

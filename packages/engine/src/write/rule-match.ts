/**
 * Validates the value that a rule matches, by type, and converts it to the words that the index stores. A new type of
 * rule needs code here and in `read/rule-matching.ts`.
 */

import type { KeyedHash } from '../memory/keyed-hash.ts'
import { TYPE_COUNTRY, TYPE_CUSTOMER, TYPE_HWID, TYPE_IP4, TYPE_IP6 } from '../memory/layout.ts'
import type { Id, Network, RuleMatch } from '../model.ts'

export const ID_BYTES = 16
export const ID_LENGTH = `an id must have ${ID_BYTES} bytes`
export const MACHINE_ID_EMPTY = 'machineId must not be empty'

/** Returns null, or the reason why the value is invalid. */
export function matchError(match: RuleMatch): string | null {
  switch (match.type) {
    case 'IP':
      return networkError(match.network)
    case 'HWID':
      return match.machineId.length === 0 ? MACHINE_ID_EMPTY : null
    case 'COUNTRY':
      return /^[A-Z]{2}$/.test(match.country) ? null : 'country must be two letters from A to Z'
    case 'CUSTOMER':
      return match.customerId.length === ID_BYTES ? null : ID_LENGTH
    default:
      match satisfies never
      return 'type is unknown'
  }
}

/**
 * Writes the value that a rule matches to the four words of `value`. Returns the rule's type, or -1 when its customer
 * is unknown. `customerOf` returns the row of a customer of the rule's organization, or 0.
 */
export function writeMatch(
  match: RuleMatch,
  hash: KeyedHash,
  customerOf: (id: Id) => number,
  value: Int32Array,
): number {
  value.fill(0)
  switch (match.type) {
    case 'IP':
      for (const [i, word] of match.network.words.entries()) value[i] = word
      return match.network.family === 4 ? TYPE_IP4 : TYPE_IP6
    case 'HWID':
      hash.hash(match.machineId, match.machineId.length, value)
      return TYPE_HWID
    case 'COUNTRY':
      value[0] = (match.country.charCodeAt(0) << 8) | match.country.charCodeAt(1)
      return TYPE_COUNTRY
    case 'CUSTOMER':
      value[0] = customerOf(match.customerId)
      return value[0] === 0 ? -1 : TYPE_CUSTOMER
    default:
      return match satisfies never
  }
}

function networkError(network: Network): string | null {
  const { words, prefixLength } = network
  if (words.length !== (network.family === 4 ? 1 : 4))
    return 'network.words must be one word for IPv4 and four for IPv6'
  if (!Number.isInteger(prefixLength) || prefixLength < 0 || prefixLength > 32 * words.length) {
    return 'network.prefixLength must be an integer from 0 to 32 for IPv4 and to 128 for IPv6'
  }
  const hostBitsSet = words.some((word, i) => {
    const bits = Math.min(Math.max(prefixLength - 32 * i, 0), 32)
    return bits < 32 && word << bits !== 0
  })
  return hostBitsSet ? 'network must not have host bits set' : null
}

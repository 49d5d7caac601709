/**
 * Formats addresses and networks as canonical text: IPv4 in dotted decimal, and IPv6 in the compressed lower-case form of RFC
 * 5952.
 */

import ipaddr from 'ipaddr.js'

import type { Address, Network } from './network.ts'

function formatIpv4(word: number): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`
}

function formatIpv6(words: readonly number[]): string {
  return new ipaddr.IPv6(words.flatMap((word) => [word >>> 16, word & 0xffff])).toRFC5952String()
}

/** Returns the canonical text. The text of a network with one address has no prefix length. */
export function formatNetwork(network: Network): string {
  const text = network.family === 4 ? formatIpv4(network.words[0]) : formatIpv6(network.words)
  return network.prefixLength === (network.family === 4 ? 32 : 128) ? text : `${text}/${network.prefixLength}`
}

/** Returns the canonical text, or null for an unknown address. */
export function formatAddress(address: Address): string | null {
  switch (address.addressFamily) {
    case 0:
      return null
    case 4:
      return formatIpv4(address.a0)
    case 6:
      return formatIpv6([address.a0, address.a1, address.a2, address.a3])
    default:
      return address.addressFamily satisfies never
  }
}

/** Returns the canonical text of the network and of every network that contains it, from the widest to the network itself. */
export function coveringNetworks({ family, words, prefixLength }: Network): string[] {
  return Array.from({ length: prefixLength + 1 }, (_, length) => {
    const masked = words.map((word, i) => {
      const bits = Math.min(Math.max(length - 32 * i, 0), 32)
      return bits === 0 ? 0 : (word & (-1 << (32 - bits))) >>> 0
    })
    const [w0 = 0, w1 = 0, w2 = 0, w3 = 0] = masked
    return formatNetwork(
      family === 4
        ? { family, words: [w0], prefixLength: length }
        : { family, words: [w0, w1, w2, w3], prefixLength: length },
    )
  })
}

/**
 * Parses IP addresses and CIDR ranges into numbers. The parser accepts IPv4 in dotted decimal without leading zeros, and IPv6
 * in the forms of RFC 4291. It rejects zone ids and spaces. It converts IPv6 addresses that embed an IPv4 address to IPv4 (docs/api.md#o4), so
 * all spellings of a network yield the same numbers.
 */

import { isIPv6 } from 'node:net'

import ipaddr from 'ipaddr.js'

/** A range of addresses as big-endian unsigned 32-bit words. The host bits are zero. */
export type Network =
  | { family: 4; words: readonly [number]; prefixLength: number }
  | { family: 6; words: readonly [number, number, number, number]; prefixLength: number }

/**
 * An address as unsigned 32-bit words, in an object that callers reuse. Family 4 uses `a0` alone. Family 0 means that there is
 * no address.
 */
export interface Address {
  addressFamily: 0 | 4 | 6
  a0: number
  a1: number
  a2: number
  a3: number
}

export const noAddress = (): Address => ({ addressFamily: 0, a0: 0, a1: 0, a2: 0, a3: 0 })

const DOT = 46

/** Clears `out`. Returns false, so that a parser can return the result of this call for invalid text. */
export function clearAddress(out: Address): false {
  out.addressFamily = 0
  out.a0 = out.a1 = out.a2 = out.a3 = 0
  return false
}

/**
 * Returns the IPv4 address in `text[start, end)` as an unsigned 32-bit number, or -1 if the text is invalid. The function runs
 * for every check behind a proxy, so it does not allocate.
 */
function parseIpv4(text: string, start: number, end: number): number {
  let word = 0
  let octet = -1
  let dots = 0
  for (let i = start; i < end; i++) {
    const c = text.charCodeAt(i)
    if (c === DOT) {
      if (octet < 0 || ++dots > 3) return -1
      word = word * 256 + octet
      octet = -1
      continue
    }
    if (c < 48 || c > 57 || octet === 0) return -1
    octet = octet < 0 ? c - 48 : octet * 10 + (c - 48)
    if (octet > 255) return -1
  }
  return dots === 3 && octet >= 0 ? word * 256 + octet : -1
}

/**
 * Fills `out` from an IPv6 address (RFC 4291, section 2.2). Returns false if the text is invalid. `isIPv6` rejects spellings
 * that ipaddr.js accepts.
 */
function readIpv6(text: string, out: Address): boolean {
  if (!isIPv6(text) || text.includes('%')) return false
  // A dotted tail is converted to groups first, because the library parses `::1.2.3.4` as a mapped address.
  const tail = text.lastIndexOf(':') + 1
  const v4 = parseIpv4(text, tail, text.length)
  const groups = v4 < 0 ? text : `${text.slice(0, tail)}${(v4 >>> 16).toString(16)}:${(v4 & 0xffff).toString(16)}`
  const { parts } = ipaddr.IPv6.parse(groups)
  out.addressFamily = 6
  out.a0 = wordOf(parts, 0)
  out.a1 = wordOf(parts, 2)
  out.a2 = wordOf(parts, 4)
  out.a3 = wordOf(parts, 6)
  return true
}

function wordOf(groups: readonly number[], i: number): number {
  return (((groups[i] ?? 0) << 16) | (groups[i + 1] ?? 0)) >>> 0
}

/**
 * Returns the number of bits before the IPv4 address that an IPv6 address embeds, or -1 if it embeds none: IPv4-mapped `::ffff:1.2.3.4`, NAT64
 * `64:ff9b::1.2.3.4` (RFC 6052), IPv4-compatible `::1.2.3.4` (RFC 4291), and 6to4 `2002:102:304::` (RFC 3056). Whoever is blocked by an IPv4 rule
 * could otherwise come back through a tunnel or a gateway.
 */
function bitsBeforeIpv4({ addressFamily, a0, a1, a2, a3 }: Address): number {
  if (addressFamily !== 6) return -1
  if (a0 === 0 && a1 === 0 && a2 === 0xffff) return 96
  const is6to4 = a0 >>> 16 === 0x2002
  const isTail = (a0 === 0 || a0 === 0x64_ff9b) && a1 === 0 && a2 === 0
  // No host has an address in 0.0.0.0/8. `::1` therefore embeds none.
  if (is6to4) return (a0 & 0xff00) === 0 ? -1 : 16
  return isTail && a3 >>> 24 !== 0 ? 96 : -1
}

/** Replaces an IPv6 address by the IPv4 address that it embeds. */
function toIpv4(out: Address): void {
  const bits = bitsBeforeIpv4(out)
  if (bits < 0) return
  out.addressFamily = 4
  out.a0 = bits === 16 ? ((out.a0 << 16) | (out.a1 >>> 16)) >>> 0 : out.a3
  out.a1 = out.a2 = out.a3 = 0
}

/** Fills `out` from the address in `text[start, end)`. Returns false and clears `out` if the text is not an address. */
export function parseAddress(text: string, out: Address, start = 0, end = text.length): boolean {
  if (!readAddress(text, out, start, end)) return false
  toIpv4(out)
  return true
}

function readAddress(text: string, out: Address, start: number, end: number): boolean {
  clearAddress(out)
  const v4 = parseIpv4(text, start, end)
  if (v4 >= 0) {
    out.addressFamily = 4
    out.a0 = v4
    return true
  }
  return end - start >= 2 && end - start <= 45 && readIpv6(text.slice(start, end), out)
}

/** Fills `out` from the 4 or 16 bytes of a socket's address. Returns false and clears `out` for any other length. */
export function readAddressBytes(bytes: Uint8Array, out: Address): boolean {
  clearAddress(out)
  if (bytes.length !== 4 && bytes.length !== 16) return false
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  out.a0 = view.getUint32(0)
  out.addressFamily = 4
  if (bytes.length === 4) return true
  out.addressFamily = 6
  out.a1 = view.getUint32(4)
  out.a2 = view.getUint32(8)
  out.a3 = view.getUint32(12)
  toIpv4(out)
  return true
}

/**
 * Returns `value` with all except its `bits` most significant bits cleared. If `bits` is below 1, the result is 0. If it is above 31, the
 * result is `value`.
 */
function masked(value: number, bits: number): number {
  if (bits <= 0) return 0
  return bits >= 32 ? value : (value & (-1 << (32 - bits))) >>> 0
}

const scratch = noAddress()

/**
 * Returns the network of an address or a CIDR range, with cleared host bits. Returns null for any other text. A range of IPv6 addresses that
 * embed IPv4 addresses is the range of these, unless it contains all of them: `2002::/16` must not mean every IPv4 address.
 */
export function parseNetwork(text: string): Network | null {
  const slash = text.indexOf('/')
  const end = slash < 0 ? text.length : slash
  if (!readAddress(text, scratch, 0, end)) return null
  const width = scratch.addressFamily === 4 ? 32 : 128
  let prefixLength = width
  if (slash >= 0) {
    const digits = text.slice(slash + 1)
    if (!/^(?:0|[1-9]\d{0,2})$/.test(digits) || Number(digits) > width) return null
    prefixLength = Number(digits)
  }
  const bits = bitsBeforeIpv4(scratch)
  const isMapped = scratch.a0 === 0 && scratch.a2 === 0xffff
  if (bits >= 0 && (prefixLength > bits || (isMapped && prefixLength === bits))) {
    toIpv4(scratch)
    prefixLength = Math.min(32, prefixLength - bits)
  }
  const { addressFamily, a0, a1, a2, a3 } = scratch
  if (addressFamily === 4) return { family: 4, words: [masked(a0, prefixLength)], prefixLength }
  return {
    family: 6,
    words: [
      masked(a0, prefixLength),
      masked(a1, prefixLength - 32),
      masked(a2, prefixLength - 64),
      masked(a3, prefixLength - 96),
    ],
    prefixLength,
  }
}

/** Returns whether the address is in the network. Returns false for an address of the other family. */
export function contains(network: Network, address: Address): boolean {
  if (network.family !== address.addressFamily) return false
  const bits = network.prefixLength
  if (masked(address.a0, bits) !== network.words[0]) return false
  if (network.family === 4) return true
  return (
    masked(address.a1, bits - 32) === network.words[1] &&
    masked(address.a2, bits - 64) === network.words[2] &&
    masked(address.a3, bits - 96) === network.words[3]
  )
}

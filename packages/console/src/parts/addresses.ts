/** Previews the form in which the API will store an address range. The API alone validates the range. */

import ipaddr from 'ipaddr.js'

export interface Range {
  /** The form that the API stores: `10.0.0.0/8`, or a single address. */
  canonical: string
  prefix: number
  network: ipaddr.IPv4 | ipaddr.IPv6
}

/** Returns null when the text is neither an address nor a range. */
export function parseRange(text: string): Range | null {
  const [address = '', length, ...rest] = text.split('/')
  if (rest.length > 0 || !ipaddr.isValid(address) || (length !== undefined && !/^[0-9]{1,3}$/.test(length))) return null
  const parsed = ipaddr.process(address)
  const bits = parsed.kind() === 'ipv4' ? 32 : 128
  const prefix = length === undefined ? bits : Number(length)
  if (prefix > bits) return null
  const bytes = parsed.toByteArray().map((byte, index) => {
    const kept = Math.min(8, Math.max(0, prefix - 8 * index))
    return byte & (0xff << (8 - kept)) & 0xff
  })
  const network = ipaddr.fromByteArray(bytes)
  return { canonical: prefix === bits ? network.toString() : `${network.toString()}/${prefix}`, prefix, network }
}

export function contains(range: Range, address: Range): boolean {
  if (range.network.kind() !== address.network.kind()) return false
  return address.network.match(range.network, range.prefix)
}

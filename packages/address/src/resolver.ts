/**
 * Resolves the origin of a request: the caller's address and country (docs/api.md#request-origin). Forwarding headers are
 * read only from a trusted peer, so a client can never choose its own address. Text that is not exactly an address counts
 * as an unknown address, which no IP rule matches.
 */

import { readCountry, unpackCountry } from './country.ts'
import { countryText, clientAddressEnd, EDGE_HEADERS, type EdgePreset } from './edge.ts'
import { formatAddress } from './format.ts'
import { type Address, clearAddress, contains, type Network, noAddress, parseAddress, parseNetwork } from './network.ts'

export interface OriginResolverOptions {
  /** `all`: only the edge can connect, so every peer is trusted and its address is not looked up. */
  trustedProxies: 'all' | readonly Network[]
  clientIpHeader?: string | null
  countryHeader?: string | null
  /** Sets both headers, unless they are given explicitly (docs/api.md#o3). */
  edge?: EdgePreset | null
}

/**
 * The address and country of a caller. The engine's check has these fields, so it is filled in place. `country` contains
 * two packed ASCII letters, or 0 when it is unknown.
 */
export interface RequestOrigin extends Address {
  country: number
}

/** What the resolver reads of a request. `header` takes a lower-case name; repeats are joined by commas, absent is ''. */
export interface OriginSource {
  header(name: string): string
  /** Writes the address of the TCP peer. Called only when it is needed. */
  peer(out: Address): void
}

export interface OriginResolver {
  /** The lower-case names of the headers that `resolve` may read. Empty if no peer is trusted. */
  readonly headers: readonly string[]
  resolve(source: OriginSource, out: RequestOrigin): void
  /** Returns the origin as text, for services that have the peer's address as text. */
  resolveText(peer: string | undefined, header: (name: string) => string): { ip: string | null; country: string | null }
}

/** Parses addresses and CIDR ranges separated by commas, or `all`. Returns null if an entry is neither. '' is an empty list. */
export function parseTrustedProxies(text: string): 'all' | Network[] | null {
  if (text.trim() === 'all') return 'all'
  const networks: Network[] = []
  for (const entry of text.split(',')) {
    if (entry.trim() === '') continue
    const network = parseNetwork(entry.trim())
    if (!network) return null
    networks.push(network)
  }
  return networks
}

/**
 * Parses one address as proxies write it: bare, `ip:port`, `[v6]` or `[v6]:port`, with blanks around it. For any other text
 * it returns false and clears `out`.
 */
export function parseForwarded(text: string, out: Address, from = 0, to = text.length): boolean {
  let start = from
  let end = to
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  if (text.charCodeAt(start) === 91 /* [ */) {
    const close = text.indexOf(']', start)
    if (close < 0 || close >= end || !isPort(text, close + 1, end)) return clearAddress(out)
    return parseAddress(text, out, start + 1, close) && text.slice(start, close).includes(':')
      ? true
      : clearAddress(out)
  }
  const colon = text.indexOf(':', start)
  // A single colon separates the port of an IPv4 address; several belong to an IPv6 address.
  if (colon > 0 && colon < end && text.lastIndexOf(':', end - 1) === colon) {
    if (!isPort(text, colon, end)) return clearAddress(out)
    end = colon
  }
  return parseAddress(text, out, start, end)
}

function isBlank(c: number): boolean {
  return c === 32 || c === 9
}

/** Returns whether the range is empty, or a colon and one to five digits. */
function isPort(text: string, start: number, end: number): boolean {
  return start === end || /^:\d{1,5}$/.test(text.slice(start, end))
}

export function createOriginResolver(options: OriginResolverOptions): OriginResolver {
  const { trustedProxies } = options
  const preset = options.edge ? EDGE_HEADERS[options.edge] : null
  const clientIpHeader = (options.clientIpHeader ?? preset?.clientIp)?.toLowerCase() ?? null
  const countryHeader = (options.countryHeader ?? preset?.country)?.toLowerCase() ?? null
  const isTrusted = (address: Address): boolean =>
    trustedProxies !== 'all' && trustedProxies.some((network) => contains(network, address))

  /** Finds the first untrusted address of `x-forwarded-for` from the right; if all are trusted, the leftmost. */
  function walk(forwarded: string, source: OriginSource, out: RequestOrigin): void {
    let found = false
    for (let end = forwarded.length; end >= 0;) {
      const comma = end === 0 ? -1 : forwarded.lastIndexOf(',', end - 1)
      if (forwarded.slice(comma + 1, end).trim() !== '') {
        if (!parseForwarded(forwarded, out, comma + 1, end)) return
        if (!isTrusted(out)) return
        found = true
      }
      end = comma
    }
    if (!found) source.peer(out)
  }

  function resolve(source: OriginSource, out: RequestOrigin): void {
    clearAddress(out)
    out.country = 0
    if (trustedProxies !== 'all') {
      source.peer(out)
      if (!isTrusted(out)) return
    }
    if (countryHeader !== null)
      out.country = readCountry(countryText(countryHeader, source.header(countryHeader)).trim())
    if (clientIpHeader === null) return walk(source.header('x-forwarded-for'), source, out)
    const value = source.header(clientIpHeader).trim()
    parseForwarded(value, out, 0, clientAddressEnd(clientIpHeader, value))
  }

  return {
    headers:
      trustedProxies !== 'all' && trustedProxies.length === 0
        ? []
        : [clientIpHeader ?? 'x-forwarded-for', ...(countryHeader === null ? [] : [countryHeader])],
    resolve,
    resolveText(peer, header) {
      const out: RequestOrigin = { ...noAddress(), country: 0 }
      resolve({ header, peer: (address) => void parseAddress(peer ?? '', address) }, out)
      return { ip: formatAddress(out), country: unpackCountry(out.country) }
    },
  }
}

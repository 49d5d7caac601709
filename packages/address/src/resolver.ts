/**
 * Finds the address and country of the caller of a request (docs/api.md#o1, docs/api.md#o2). Forwarding headers are read only
 * from a trusted peer, so a caller can never choose its own address. An invalid address counts as unknown, which no rule matches.
 */

import { readCountry, unpackCountry } from './country.ts'
import { countryText, clientAddressEnd, EDGE_HEADERS, type EdgePreset } from './edge-presets.ts'
import { formatAddress } from './format.ts'
import { type Address, clearAddress, contains, type Network, noAddress, parseAddress, parseNetwork } from './network.ts'

export interface OriginResolverOptions {
  /** `all`: only trusted proxies can connect, so the peer's address is not read. */
  trustedProxies: 'all' | readonly Network[]
  clientIpHeader?: string | null
  countryHeader?: string | null
  /** A preset for both headers. An explicit header takes precedence. */
  edge?: EdgePreset | null
}

/** The result, written in place: the engine's check has these fields. `country` is packed (`packCountry`); 0: unknown. */
export interface RequestOrigin extends Address {
  country: number
}

/** A request. `header` takes a lower-case name and returns repeated headers joined by commas, '' when there is none. */
export interface OriginSource {
  header(name: string): string
  /** Writes the address of the TCP peer. Called only when it is needed. */
  peer(out: Address): void
}

export interface OriginResolver {
  /** The lower-case names of the headers that `resolve` reads; none when no peer is trusted. */
  readonly headers: readonly string[]
  resolve(source: OriginSource, out: RequestOrigin): void
  /** Like `resolve`, for services that have the peer's address as text. */
  resolveText(peer: string | undefined, header: (name: string) => string): { ip: string | null; country: string | null }
}

/** Parses addresses and CIDR ranges separated by commas, or `all`. Returns null when an entry is invalid. Empty text: no proxies. */
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
 * Parses one address as proxies write it: bare, `ip:port`, `[v6]` or `[v6]:port`, with blanks around it. Anything else yields
 * false and no address.
 */
function parseForwarded(text: string, out: Address, from = 0, to = text.length): boolean {
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
  // A single colon precedes a port after IPv4; several belong to an IPv6 address.
  if (colon > 0 && colon < end && text.lastIndexOf(':', end - 1) === colon) {
    if (!isPort(text, colon, end)) return clearAddress(out)
    end = colon
  }
  return parseAddress(text, out, start, end)
}

function isBlank(c: number): boolean {
  return c === 32 || c === 9
}

/** Whether the text is empty, or a colon and one to five digits. */
function isPort(text: string, start: number, end: number): boolean {
  return start === end || /^:\d{1,5}$/.test(text.slice(start, end))
}

/** Returns a resolver for the configured proxies and headers. */
export function createOriginResolver(options: OriginResolverOptions): OriginResolver {
  const { trustedProxies } = options
  const preset = options.edge ? EDGE_HEADERS[options.edge] : null
  const clientIpHeader = (options.clientIpHeader ?? preset?.clientIp)?.toLowerCase() ?? null
  const countryHeader = (options.countryHeader ?? preset?.country)?.toLowerCase() ?? null
  const isTrusted = (address: Address): boolean =>
    trustedProxies !== 'all' && trustedProxies.some((network) => contains(network, address))

  /** Reads `x-forwarded-for` from the right to the first untrusted address; the leftmost when all are trusted. */
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

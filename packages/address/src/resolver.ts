/**
 * Determines the address and country of a request's caller (docs/api.md#o1, docs/api.md#o2). Forwarding headers are read only
 * from a trusted peer, so a caller cannot choose its address. An invalid address counts as unknown, and no rule matches it.
 */

import { readCountry, unpackCountry } from './country.ts'
import { countryText, clientAddressEnd, EDGE_HEADERS, type EdgePreset } from './edge-presets.ts'
import { formatAddress } from './format.ts'
import { type Address, clearAddress, contains, type Network, noAddress, parseAddress, parseNetwork } from './network.ts'

export interface OriginResolverOptions {
  /** The trusted peers. `all` means that every peer is trusted, because only trusted proxies can connect. */
  trustedProxies: 'all' | readonly Network[]
  clientIpHeader?: string | null
  countryHeader?: string | null
  /** The preset that sets the names of both headers. An explicit name takes precedence. */
  edge?: EdgePreset | null
  /** Whether some requests arrive over a Unix socket, whose peers are trusted (`OriginSource.isTrusted`). */
  hasUnixSocket?: boolean
}

/**
 * The address and country of a caller. The engine's check has the same fields, so the resolver writes into the check.
 * `country` is packed (`packCountry`); 0 means unknown.
 */
export interface RequestOrigin extends Address {
  country: number
}

/** The parts of a request that the resolver reads. */
export interface OriginSource {
  /** Returns the value of the header with this lower-case name. Repeated headers are joined by commas; '' means no header. */
  header(name: string): string
  /** Whether the peer is trusted without regard to its address. */
  readonly isTrusted?: boolean
  /** Writes the address of the TCP peer to `out`, or no address for another peer. The resolver calls this function only when it needs the peer's address. */
  peer(out: Address): void
}

export interface OriginResolver {
  /** The lower-case names of the headers that `resolve` reads. The list is empty when no peer is trusted. */
  readonly headers: readonly string[]
  /** Writes the address and country of the request's caller to `out`. */
  resolve(source: OriginSource, out: RequestOrigin): void
  /** Returns the address and country as text, for services that have the peer's address as text. */
  resolveText(peer: string | undefined, header: (name: string) => string): { ip: string | null; country: string | null }
}

/**
 * Parses `all`, or addresses and CIDR ranges separated by commas. Returns [] for empty text, and null if an entry is invalid.
 */
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
 * Parses an address in the forms that proxies write: bare, `ip:port`, `[v6]` or `[v6]:port`. Blanks around the address are skipped. Returns
 * false and clears `out` for anything else.
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
  // A single colon separates an IPv4 address from its port. Several colons belong to an IPv6 address.
  if (colon > 0 && colon < end && text.lastIndexOf(':', end - 1) === colon) {
    if (!isPort(text, colon, end)) return clearAddress(out)
    end = colon
  }
  return parseAddress(text, out, start, end)
}

function isBlank(c: number): boolean {
  return c === 32 || c === 9
}

/** Returns whether the text is empty, or a colon and one to five digits. */
function isPort(text: string, start: number, end: number): boolean {
  return start === end || /^:\d{1,5}$/.test(text.slice(start, end))
}

/** Returns a resolver for the configured proxies and headers. */
export function createOriginResolver(options: OriginResolverOptions): OriginResolver {
  const { trustedProxies, hasUnixSocket = false } = options
  const preset = options.edge ? EDGE_HEADERS[options.edge] : null
  const clientIpHeader = (options.clientIpHeader ?? preset?.clientIp)?.toLowerCase() ?? null
  const countryHeader = (options.countryHeader ?? preset?.country)?.toLowerCase() ?? null
  const isTrusted = (address: Address): boolean =>
    trustedProxies !== 'all' && trustedProxies.some((network) => contains(network, address))

  /**
   * Writes the rightmost untrusted address of `x-forwarded-for` to `out`, or the leftmost one when all are trusted. Writes the peer's
   * address if the header contains none.
   */
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
    if (trustedProxies !== 'all' && source.isTrusted !== true) {
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
      trustedProxies !== 'all' && trustedProxies.length === 0 && !hasUnixSocket
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

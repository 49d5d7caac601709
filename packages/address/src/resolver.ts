/**
 * Which client a request comes from, and from which country (API document: the address is compared with rules in memory and
 * discarded; the country is taken from the edge network). Forwarding headers are read only from a trusted peer, so that a
 * client can never choose its own address; whatever is not a clean address is no address, which no IP rule matches.
 */

import { readCountry, unpackCountry } from './country.ts'
import { countryText, clientAddressEnd, EDGE_HEADERS, type Edge } from './edge.ts'
import { formatAddress } from './format.ts'
import { type Address, clearAddress, contains, type Network, noAddress, parseAddress, parseNetwork } from './network.ts'

export interface ClientResolverOptions {
  /** `all`: only the edge can connect, so every peer is trusted and is not looked up. */
  trustedProxies: 'all' | readonly Network[]
  clientIpHeader?: string | null
  countryHeader?: string | null
  /** A preset for both headers; an explicit header wins. */
  edge?: Edge | null
}

/** The result, written in place: the engine's check has these fields. `country` is two ASCII letters packed, 0 unknown. */
export interface Client extends Address {
  country: number
}

/** Where a request's facts come from. `header` takes a lower-case name; repeats are joined by commas, absent is ''. */
export interface ClientSource {
  header(name: string): string
  /** Fills in the address of the TCP peer; called only when it is needed. */
  peer(out: Address): void
}

export interface ClientResolver {
  /** The lower-case names of the headers that `resolve` may ask for; none where no peer is trusted. */
  readonly headers: readonly string[]
  resolve(source: ClientSource, out: Client): void
  /** The same as text, for services that have the peer's address as text. */
  resolveText(peer: string | undefined, header: (name: string) => string): { ip: string | null; country: string | null }
}

/** A list of addresses and CIDR ranges between commas, or `all`; null when an entry is neither. Empty text: no proxies. */
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
 * One address as proxies write it: bare, `ip:port`, `[v6]` or `[v6]:port`, with blanks around it. False, and no address, for
 * anything else.
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
  // One colon is a port behind IPv4; more are an IPv6 address.
  if (colon > 0 && colon < end && text.lastIndexOf(':', end - 1) === colon) {
    if (!isPort(text, colon, end)) return clearAddress(out)
    end = colon
  }
  return parseAddress(text, out, start, end)
}

function isBlank(c: number): boolean {
  return c === 32 || c === 9
}

/** Nothing, or a colon and one to five digits. */
function isPort(text: string, start: number, end: number): boolean {
  return start === end || /^:\d{1,5}$/.test(text.slice(start, end))
}

export function createClientResolver(options: ClientResolverOptions): ClientResolver {
  const { trustedProxies } = options
  const preset = options.edge ? EDGE_HEADERS[options.edge] : null
  const clientIpHeader = (options.clientIpHeader ?? preset?.clientIp)?.toLowerCase() ?? null
  const countryHeader = (options.countryHeader ?? preset?.country)?.toLowerCase() ?? null
  const isTrusted = (address: Address): boolean =>
    trustedProxies !== 'all' && trustedProxies.some((network) => contains(network, address))

  /** Walks `x-forwarded-for` from the right past trusted addresses to the first untrusted one; all trusted: the leftmost. */
  function walk(forwarded: string, source: ClientSource, out: Client): void {
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

  function resolve(source: ClientSource, out: Client): void {
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
      const out: Client = { ...noAddress(), country: 0 }
      resolve({ header, peer: (address) => void parseAddress(peer ?? '', address) }, out)
      return { ip: formatAddress(out), country: unpackCountry(out.country) }
    },
  }
}

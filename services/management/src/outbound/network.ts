/**
 * Determines the addresses to which webhooks may be sent (docs/api.md#w6): public unicast addresses, and networks that the operator allows.
 * Vendors choose the URLs, so every other address is blocked.
 */

import ipaddr from 'ipaddr.js'

export interface WebhookNetwork {
  /** The networks that are allowed in addition to public addresses. */
  allowedNetworks: readonly Network[]
  /** The allowed ports, or null for every port. */
  allowedPorts: readonly number[] | null
  allowsHttp: boolean
}

export type Network = [ipaddr.IPv4 | ipaddr.IPv6, number]

export const DEFAULT_PORTS: number[] = [443, 8443]

/** The global unicast addresses of IPv6. All other IPv6 addresses are multicast or local, embed IPv4 addresses, or are not assigned. */
const IPV6_GLOBAL: Network = ipaddr.parseCIDR('2000::/3')
/** The address at which virtual machines in Azure reach services of the host. It is blocked although it is in a public range. */
const METADATA = new Set(['168.63.129.16'])

/** Parses addresses and CIDR ranges, such as `10.0.0.0/8`. Returns undefined when one of `parts` is neither. */
export function parseNetworks(parts: readonly string[]): Network[] | undefined {
  const networks: Network[] = []
  for (const part of parts) {
    if (ipaddr.isValidCIDR(part)) networks.push(ipaddr.parseCIDR(part))
    else if (ipaddr.isValid(part)) {
      const address = ipaddr.parse(part)
      networks.push([address, address.kind() === 'ipv4' ? 32 : 128])
    } else return undefined
  }
  return networks
}

/** Parses ports separated by commas. Returns null for `all`, and undefined when a port is invalid. */
export function parsePorts(text: string): number[] | null | undefined {
  if (text.trim() === 'all') return null
  const ports = text.split(',').map((part) => (/^\s*\d{1,5}\s*$/.test(part) ? Number(part) : 0))
  return ports.every((port) => port >= 1 && port <= 65_535) ? ports : undefined
}

/** Returns whether a webhook may be sent to the address. Returns false for text that is not an address. */
export function isAllowedAddress(text: string, { allowedNetworks }: Pick<WebhookNetwork, 'allowedNetworks'>): boolean {
  if (!ipaddr.isValid(text)) return false
  // Converts an IPv4-mapped address such as `::ffff:192.0.2.1` to IPv4.
  const address = ipaddr.process(text)
  if (allowedNetworks.some((network) => address.kind() === network[0].kind() && address.match(network))) return true
  if (METADATA.has(address.toString()) || address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || address.match(IPV6_GLOBAL)
}

/** Returns the validation error of an endpoint's URL, or null. A name is not resolved here, but at each attempt. */
export function urlError(text: string, network: WebhookNetwork): string | null {
  const url = URL.parse(text)
  if (url === null) return 'must be an absolute URL such as https://hooks.example.com/keyward'
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && network.allowsHttp)) return 'must begin with https://'
  if (url.username !== '' || url.password !== '') return 'must not have a user or a password'
  if (url.hash !== '') return 'must not have a fragment'
  const port = portOf(url)
  if (network.allowedPorts !== null && !network.allowedPorts.includes(port))
    return `must have one of the ports ${network.allowedPorts.join(', ')}; got ${port}`
  const host = hostOf(url)
  if (ipaddr.isValid(host) && !isAllowedAddress(host, network)) return 'must not have a private or reserved address'
  return null
}

export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port)
  return url.protocol === 'https:' ? 443 : 80
}

/** Returns the host without the brackets of an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

/**
 * Where webhooks may connect (docs/api.md#w6): to public unicast addresses and to networks that the operator allows. Vendors choose
 * the URLs, so every other address counts as hostile.
 */

import ipaddr from 'ipaddr.js'

export interface WebhookNetwork {
  /** Networks beyond the public ones. */
  allowedNetworks: readonly Network[]
  /** Null: every port. */
  allowedPorts: readonly number[] | null
  allowsHttp: boolean
}

export type Network = [ipaddr.IPv4 | ipaddr.IPv6, number]

export const DEFAULT_PORTS: number[] = [443, 8443]

/** All of global unicast. The rest of IPv6 is local, embeds IPv4 addresses, or is not assigned. */
const IPV6_GLOBAL: Network = ipaddr.parseCIDR('2000::/3')
/** Answers to virtual machines of one cloud, although it is of a public range. */
const METADATA = new Set(['168.63.129.16'])

/** Parses addresses and CIDR ranges, such as `10.0.0.0/8`. Returns undefined when one is not valid. */
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

/** Parses ports separated by commas. Returns null for `all`, and undefined when one is not valid. */
export function parsePorts(text: string): number[] | null | undefined {
  if (text.trim() === 'all') return null
  const ports = text.split(',').map((part) => (/^\s*\d{1,5}\s*$/.test(part) ? Number(part) : 0))
  return ports.every((port) => port >= 1 && port <= 65_535) ? ports : undefined
}

/** Whether a webhook may be sent to the address. Any text that is no address is not allowed. */
export function isAllowedAddress(text: string, { allowedNetworks }: Pick<WebhookNetwork, 'allowedNetworks'>): boolean {
  if (!ipaddr.isValid(text)) return false
  // Removes the form `::ffff:192.0.2.1`.
  const address = ipaddr.process(text)
  if (allowedNetworks.some((network) => address.kind() === network[0].kind() && address.match(network))) return true
  if (METADATA.has(address.toString()) || address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || address.match(IPV6_GLOBAL)
}

/** Returns what is wrong with the URL of an endpoint, or null. A name is only resolved when something is sent. */
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
export function hostOf({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

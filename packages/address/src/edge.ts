/**
 * Which headers the well-known edge networks set, and how they spell what they say. A preset is no more than the two header
 * names: forwarding headers are believed only from a trusted peer.
 */

export const EDGES = ['cloudflare', 'cloudfront', 'fastly', 'vercel', 'google', 'akamai'] as const
export type Edge = (typeof EDGES)[number]

export const EDGE_HEADERS: Record<Edge, { clientIp: string; country: string }> = {
  cloudflare: { clientIp: 'cf-connecting-ip', country: 'cf-ipcountry' },
  cloudfront: { clientIp: 'cloudfront-viewer-address', country: 'cloudfront-viewer-country' },
  // Fastly keeps a Fastly-Client-IP that the client sent, and sends no country: both are to be set at the edge.
  fastly: { clientIp: 'fastly-client-ip', country: 'x-country-code' },
  vercel: { clientIp: 'x-vercel-forwarded-for', country: 'x-vercel-ip-country' },
  // Custom request headers of the load balancer: {client_ip_address} and {client_region}.
  google: { clientIp: 'x-client-ip', country: 'x-client-region' },
  akamai: { clientIp: 'true-client-ip', country: 'x-akamai-edgescape' },
}

/** Where the address ends in the value of a client address header: CloudFront always appends the port, unbracketed. */
export function clientAddressEnd(header: string, value: string): number {
  if (header !== 'cloudfront-viewer-address') return value.length
  const port = /:\d{1,5}$/.exec(value)
  return port ? port.index : 0
}

/** The country in the value of a country header: Akamai's is one field of a list (`georegion=263,country_code=US,…`). */
export function countryText(header: string, value: string): string {
  if (header !== 'x-akamai-edgescape') return value
  return /(?:^|,)\s*country_code=([A-Za-z]{2})(?:,|$)/.exec(value)?.[1] ?? ''
}

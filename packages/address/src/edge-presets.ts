/**
 * The names and formats of the headers that well-known edge networks set (docs/api.md#o3). A preset selects two header names and makes no
 * peer trusted. Forwarding headers are read only from a trusted peer.
 */

export const EDGE_PRESETS = ['cloudflare', 'cloudfront', 'fastly', 'vercel', 'google', 'akamai'] as const
export type EdgePreset = (typeof EDGE_PRESETS)[number]

export const EDGE_HEADERS: Record<EdgePreset, { clientIp: string; country: string }> = {
  cloudflare: { clientIp: 'cf-connecting-ip', country: 'cf-ipcountry' },
  cloudfront: { clientIp: 'cloudfront-viewer-address', country: 'cloudfront-viewer-country' },
  // By default Fastly passes on a Fastly-Client-IP that the caller sent, and sends no country. The operator's Fastly service
  // must set both headers.
  fastly: { clientIp: 'fastly-client-ip', country: 'x-country-code' },
  vercel: { clientIp: 'x-vercel-forwarded-for', country: 'x-vercel-ip-country' },
  // The operator of the Google Cloud load balancer defines both as custom request headers, with the values {client_ip_address} and
  // {client_region}.
  google: { clientIp: 'x-client-ip', country: 'x-client-region' },
  akamai: { clientIp: 'true-client-ip', country: 'x-akamai-edgescape' },
}

/**
 * Returns the index at which the address ends in a header's value. CloudFront always appends a port, and writes IPv6 addresses
 * without brackets.
 */
export function clientAddressEnd(header: string, value: string): number {
  if (header !== 'cloudfront-viewer-address') return value.length
  const port = /:\d{1,5}$/.exec(value)
  return port ? port.index : 0
}

/** Returns the country in a header's value. Akamai sends the country as a field of a list (`georegion=263,country_code=US,…`). */
export function countryText(header: string, value: string): string {
  if (header !== 'x-akamai-edgescape') return value
  return /(?:^|,)\s*country_code=([A-Za-z]{2})(?:,|$)/.exec(value)?.[1] ?? ''
}

/**
 * The headers that well-known edge networks set, and the format of their values (docs/api.md#o3). A preset is only the names
 * of two headers, which are still read from a trusted peer alone.
 */

export const EDGE_PRESETS = ['cloudflare', 'cloudfront', 'fastly', 'vercel', 'google', 'akamai'] as const
export type EdgePreset = (typeof EDGE_PRESETS)[number]

export const EDGE_HEADERS: Record<EdgePreset, { clientIp: string; country: string }> = {
  cloudflare: { clientIp: 'cf-connecting-ip', country: 'cf-ipcountry' },
  cloudfront: { clientIp: 'cloudfront-viewer-address', country: 'cloudfront-viewer-country' },
  // Fastly passes on a Fastly-Client-IP from the client and sends no country: the edge must be configured to set both.
  fastly: { clientIp: 'fastly-client-ip', country: 'x-country-code' },
  vercel: { clientIp: 'x-vercel-forwarded-for', country: 'x-vercel-ip-country' },
  // The load balancer must be configured with these custom request headers: {client_ip_address} and {client_region}.
  google: { clientIp: 'x-client-ip', country: 'x-client-region' },
  akamai: { clientIp: 'true-client-ip', country: 'x-akamai-edgescape' },
}

/** Returns where the address ends in the value of a header: CloudFront always appends the port, without brackets. */
export function clientAddressEnd(header: string, value: string): number {
  if (header !== 'cloudfront-viewer-address') return value.length
  const port = /:\d{1,5}$/.exec(value)
  return port ? port.index : 0
}

/** Returns the country in the value of a header: Akamai sends a list of fields (`georegion=263,country_code=US,…`). */
export function countryText(header: string, value: string): string {
  if (header !== 'x-akamai-edgescape') return value
  return /(?:^|,)\s*country_code=([A-Za-z]{2})(?:,|$)/.exec(value)?.[1] ?? ''
}

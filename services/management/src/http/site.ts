/**
 * The address under which a browser reaches the service, from the `Host` header. A request that is sent with a session must come
 * from a page of this address, so that no other page can use a session (docs/api.md#a5).
 */

import { ApiError, quote } from './problem.ts'

export interface Site {
  /** Without the port. */
  hostname: string
  /** Whether it is an address of this machine, where browsers accept secure cookies and passkeys without TLS. */
  isLoopback: boolean
  /** The origins that pages of the site can have. */
  origins: readonly string[]
}

const LOOPBACK = /^(?:localhost|(?:[a-z0-9-]+\.)*localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])$/

/** Returns null when the header is missing or is no host. */
export function siteOf(host: string | undefined): Site | null {
  const url = URL.parse(`https://${host ?? ''}`)
  if (url === null || url.host !== host?.toLowerCase().replace(/:443$/, '')) return null
  const { hostname } = url
  const isLoopback = LOOPBACK.test(hostname)
  // The port 80 is part of a Host header only when it is not the scheme's own.
  const http = new URL(`http://${host}`).origin
  return { hostname, isLoopback, origins: isLoopback ? [url.origin, http] : [url.origin] }
}

/** Throws FORBIDDEN unless the `Origin` header is that of the site. */
export function requireOrigin(site: Site | null, origin: string | undefined): void {
  if (site !== null && origin !== undefined && site.origins.includes(origin)) return
  const got = origin === undefined ? 'it is missing' : `got ${quote(origin)}`
  throw new ApiError('FORBIDDEN', `A request with a session must have the header Origin of the same site; ${got}.`)
}

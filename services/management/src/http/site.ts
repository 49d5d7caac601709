/**
 * Determines, from the `Host` header, the address at which a browser reaches the service. Requests with a session must come from a page of
 * this address, so that no other page can use a session (docs/api.md#a5). Reads and writes the cookie that contains the secret of a session.
 * Scripts cannot read the cookie, and pages of other sites cannot send it. The cookie requires TLS, except at a loopback address.
 */

import { parseCookie, stringifySetCookie } from 'cookie'

import { ApiError, quote } from './problem.ts'

export interface Site {
  /** The host name or address, without the port. */
  hostname: string
  /** Whether the host is a loopback address or `localhost`. Browsers allow passkeys there without TLS. */
  isLoopback: boolean
  /** The origins that pages of the site can have. */
  origins: readonly string[]
}

const LOOPBACK = /^(?:localhost|(?:[a-z0-9-]+\.)*localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])$/

/** Returns whether a host name is `localhost`, a subdomain of it, or a loopback address as browsers write it. */
export function isLoopback(hostname: string): boolean {
  return LOOPBACK.test(hostname)
}

/** Returns the site of a `Host` header, or null when the header is missing or malformed. */
export function siteOf(host: string | undefined): Site | null {
  const url = URL.parse(`https://${host ?? ''}`)
  if (url === null || url.host !== host?.toLowerCase().replace(/:443$/, '')) return null
  const { hostname } = url
  const isLocal = isLoopback(hostname)
  // Browsers omit the scheme's default port, so a `Host` header with port 80 belongs to HTTPS.
  const http = new URL(`http://${host}`).origin
  return { hostname, isLoopback: isLocal, origins: isLocal ? [url.origin, http] : [url.origin] }
}

/** Returns the `Origin` header. Throws FORBIDDEN unless it is the origin of a page of the site. */
export function requireOrigin(site: Site | null, origin: string | undefined): string {
  if (site !== null && origin !== undefined && site.origins.includes(origin)) return origin
  const got = origin === undefined ? 'it is missing' : `got ${quote(origin)}`
  throw new ApiError(
    'FORBIDDEN',
    `A request that uses a session or signs in must have an Origin header of this site; ${got}.`,
  )
}

/**
 * Returns the name of the cookie. Browsers reject a cookie with the prefix `__Host-` when another host of the domain sets it, and one without
 * TLS or with another path than `/`. At a loopback address, there may be no TLS.
 */
function cookieOf(site: Site | null, name = 'keyward_session'): { name: string; path: string; secure: boolean } {
  if (site?.isLoopback === true) return { name, path: '/api/v1', secure: false }
  return { name: `__Host-${name}`, path: '/', secure: true }
}

/** The cookie of a customer in the portal. It is not the cookie of the console, so the two sessions never mix. */
const PORTAL_COOKIE = 'keyward_portal'

function secretOf(header: string | undefined, name: string): string | undefined {
  return header === undefined ? undefined : parseCookie(header)[name]
}

function setCookie(cookie: ReturnType<typeof cookieOf>, secret: string, expires: Date): string {
  return stringifySetCookie({ ...cookie, value: secret, expires, httpOnly: true, sameSite: 'strict' })
}

/** Returns the secret of a `Cookie` header, or undefined. */
export function sessionSecret(site: Site | null, header: string | undefined): string | undefined {
  return secretOf(header, cookieOf(site).name)
}

export function portalSecret(site: Site | null, header: string | undefined): string | undefined {
  return secretOf(header, cookieOf(site, PORTAL_COOKIE).name)
}

/** Returns the value of `Set-Cookie` that stores the secret until `expires`. A time in the past removes the cookie. */
export function sessionCookie(site: Site | null, secret: string, expires: Date): string {
  return setCookie(cookieOf(site), secret, expires)
}

export function portalCookie(site: Site | null, secret: string, expires: Date): string {
  return setCookie(cookieOf(site, PORTAL_COOKIE), secret, expires)
}

/**
 * Reads and writes the cookie that contains the secret of a session (docs/api.md#a5). Scripts cannot read the cookie, and pages of other
 * sites cannot send it. The cookie requires TLS, except at a loopback address.
 */

import { parseCookie, stringifySetCookie } from 'cookie'

import type { Site } from './site.ts'

const NAME = 'keyward_session'
const PATH = '/api/v1'

/** Returns the secret of a `Cookie` header, or undefined. */
export function sessionSecret(header: string | undefined): string | undefined {
  return header === undefined ? undefined : parseCookie(header)[NAME]
}

/** Returns the value of `Set-Cookie` that stores the secret until `expires`. A time in the past removes the cookie. */
export function sessionCookie(site: Site | null, secret: string, expires: Date): string {
  return stringifySetCookie({
    name: NAME,
    value: secret,
    expires,
    path: PATH,
    httpOnly: true,
    sameSite: 'strict',
    secure: site?.isLoopback !== true,
  })
}

/**
 * The cookie that holds the secret of a session (docs/api.md#a5). No script can read it, and no other site can send it. Without TLS
 * it is set on this machine only.
 */

import { parseCookie, stringifySetCookie } from 'cookie'

import type { Site } from './site.ts'

const NAME = 'keyward_session'
const PATH = '/api/v1'

/** Returns the secret of a `Cookie` header, or undefined. */
export function sessionSecret(header: string | undefined): string | undefined {
  return header === undefined ? undefined : parseCookie(header)[NAME]
}

/** Returns the value of `Set-Cookie` that stores the secret until `expires`, or removes it when `secret` is ''. */
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

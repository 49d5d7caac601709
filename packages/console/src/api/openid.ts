/**
 * Sign-in with OpenID Connect. The identity provider redirects the browser to `/console/sign-in` with a code in the address. The code is
 * removed from the address and the history as soon as this module loads.
 */

import { type Me, openid, type OpenidIdentity, sessions } from '@keyward/contract/management/sign-in'

import { call } from './client.ts'

const BASE = '/console'
const REDIRECT_PATH = '/sign-in'
/** The key of the session storage entry that contains the path to show after the sign-in. */
const RETURN = 'keyward.return'

function readResponse(): string | null {
  const { pathname, search } = window.location
  if (pathname !== BASE + REDIRECT_PATH || search === '') return null
  window.history.replaceState(null, '', pathname)
  return search.slice(1)
}

let received = readResponse()

/** Returns the query string with which the identity provider redirected the browser, or null. Later calls return null. */
export function takeResponse(): string | null {
  const response = received
  received = null
  return response
}

/** Stores the current path for the return, and opens the sign-in page of the identity provider. */
export async function goToProvider(): Promise<void> {
  const { url } = await call(openid.createOpenidOptions, {})
  const { pathname, search } = window.location
  const path = pathname.slice(BASE.length)
  if (path !== REDIRECT_PATH) window.sessionStorage.setItem(RETURN, path + search)
  window.location.assign(url)
}

/** Removes and returns the path that was shown before the sign-in, or returns `/` if none is stored. */
export function takeReturnPath(): string {
  const path = window.sessionStorage.getItem(RETURN) ?? ''
  window.sessionStorage.removeItem(RETURN)
  return path.startsWith('/') ? path : '/'
}

export function identify(response: string): Promise<OpenidIdentity> {
  return call(openid.createOpenidIdentity, { body: { response } })
}

export function enter(organizationId: string): Promise<Me> {
  return call(sessions.createSession, { body: { openid: { organizationId } } })
}

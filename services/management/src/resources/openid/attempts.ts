/**
 * Stores sign-ins with OpenID Connect that have begun (docs/api.md#a7). The browser stores a secret in a cookie, and Postgres stores its
 * hash. All other values are derived from the secret, so a response of the identity provider is useless without the cookie.
 */

import { createHash, createHmac, randomBytes } from 'node:crypto'

import { parseCookie, stringifySetCookie } from 'cookie'
import { sql } from 'kysely'

import type { Db } from '../../context.ts'
import type { Site } from '../../http/site.ts'
import type { AuthorizationValues, VerifiedAccount } from '../../operations/dependencies.ts'

const SECRET_BYTES = 32
const MINUTES = 10

/** Returns the values of an attempt. A value does not disclose the secret or another value. */
export function derive(secret: string): AuthorizationValues {
  const value = (name: string) => createHmac('sha256', secret).update(name).digest('base64url')
  return { state: value('state'), nonce: value('nonce'), codeVerifier: value('code verifier') }
}

/** Returns the name of the cookie. Browsers reject a cookie with the prefix `__Host-` when another host of the domain sets it. */
function nameOf(site: Site | null): string {
  return site?.isLoopback === true ? 'keyward_sign_in' : '__Host-keyward_sign_in'
}

/** Returns the secret of a `Cookie` header, or undefined. */
export function attemptSecret(site: Site | null, header: string | undefined): string | undefined {
  return header === undefined ? undefined : parseCookie(header)[nameOf(site)]
}

/** Returns the value of `Set-Cookie` that stores the secret. */
export function attemptCookie(site: Site | null, secret: string): string {
  return stringifySetCookie({
    name: nameOf(site),
    value: secret,
    maxAge: MINUTES * 60,
    path: '/',
    httpOnly: true,
    sameSite: 'strict',
    secure: site?.isLoopback !== true,
  })
}

function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

export function createAttemptSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url')
}

/** Stores an attempt, which ends after ten minutes. */
export async function beginAttempt(db: Db, secret: string): Promise<void> {
  await sql`
    insert into openid_attempts (secret_hash, expires_at)
    values (${hashOf(secret)}, now() + ${MINUTES} * interval '1 minute')`.execute(db)
}

/** Marks the attempt as redeemed. Returns false if it was redeemed before, has ended or does not exist. */
export async function redeemAttempt(db: Db, secret: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('openidAttempts')
    .set({ redeemedAt: sql<Date>`now()` })
    .where('secretHash', '=', hashOf(secret))
    .where('redeemedAt', 'is', null)
    .where('expiresAt', '>', sql<Date>`now()`)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Stores the verified account of a redeemed attempt. */
export async function storeAccount(db: Db, secret: string, account: VerifiedAccount): Promise<void> {
  await db.updateTable('openidAttempts').set(account).where('secretHash', '=', hashOf(secret)).execute()
}

/** Ends the attempt and returns its verified account, or null when no account is stored. */
export async function endAttempt(db: Db, secret: string): Promise<VerifiedAccount | null> {
  const row = await db
    .deleteFrom('openidAttempts')
    .where('secretHash', '=', hashOf(secret))
    .where('email', 'is not', null)
    .where('expiresAt', '>', sql<Date>`now()`)
    .returning(['email', 'issuer', 'subject'])
    .executeTakeFirst()
  const { email = null, issuer = null, subject = null } = row ?? {}
  return email === null || issuer === null || subject === null ? null : { email, issuer, subject }
}

/**
 * Defines the endpoints that verify a person with the identity provider (docs/api.md#a7). They are detached, so a slow provider occupies no
 * connection to Postgres. `POST /sessions` then opens the session.
 */

import { openid as operations, type OpenidIdentity } from '@keyward/contract/management/sign-in'
import { sql } from 'kysely'

import { unauthenticated } from '../../admission/authentication.ts'
import { runInside } from '../../admission/fair-gate.ts'
import type { Db } from '../../context.ts'
import { ApiError, quote } from '../../http/problem.ts'
import { requireOrigin } from '../../http/site.ts'
import type { Call } from '../../operations/call.ts'
import type { IdentityProvider, VerifiedAccount } from '../../operations/dependencies.ts'
import { implement } from '../../operations/implement.ts'
import {
  attemptCookie,
  attemptSecret,
  beginAttempt,
  createAttemptSecret,
  derive,
  endAttempt,
  redeemAttempt,
  storeAccount,
} from './attempts.ts'

export const signInTag = {
  name: 'Sign-in',
  description: 'Sessions, invitations and passkeys of people, and OpenID Connect.',
}
/** The page to which the identity provider redirects the browser. It must be registered with the provider. */
const REDIRECT_PATH = '/console/sign-in'
/** The owner name under which all requests to sign in share the connections to Postgres. */
const STRANGER = 'stranger '
const MAX_ORGANIZATIONS = 100

const NO_ATTEMPT =
  'This browser has not begun to sign in with OpenID Connect, or has begun too long ago. Sign in again.'

type AnyCall = Pick<Call<unknown, unknown, unknown>, 'db' | 'dependencies' | 'site' | 'browser' | 'origin'>

/** Runs statements of a detached handler with a share of the connections. */
function withConnection<Result>({ db, dependencies }: AnyCall, task: (db: Db) => Promise<Result>): Promise<Result> {
  return runInside(dependencies.gates.writes, STRANGER, () => task(db))
}

function providerOf({ dependencies }: AnyCall): IdentityProvider {
  if (dependencies.identityProvider) return dependencies.identityProvider
  throw new ApiError('NOT_FOUND', 'OpenID Connect is not configured here. Sign in in another way.')
}

/** Returns the address to which the provider redirects. Throws FORBIDDEN for a request from another site. */
function redirectUri({ site, browser }: AnyCall): string {
  return requireOrigin(site(), browser.origin) + REDIRECT_PATH
}

/**
 * Selects the members that may sign in with an account. A member must be bound to the account, or have its e-mail address and not be bound
 * to another account of the same provider.
 */
function membersOf(db: Db, { issuer, subject, email }: VerifiedAccount) {
  const isBound = sql<boolean>`(members.openid_issuer = ${issuer} and members.openid_subject = ${subject})`
  return db
    .selectFrom('members')
    .where(
      sql<boolean>`(${isBound} or (lower(members.email) = lower(${email}) and members.openid_issuer is distinct from ${issuer}))`,
    )
    .orderBy(sql`coalesce(${isBound}, false)`, 'desc')
}

/** Returns the organizations in which the account may sign in. */
async function organizationsOf(db: Db, account: VerifiedAccount): Promise<OpenidIdentity['organizations']> {
  const rows = await membersOf(db, account)
    .innerJoin('organizations', 'organizations.id', 'members.organizationId')
    .select(['organizations.id', 'organizations.name'])
    .orderBy('organizations.name')
    .orderBy('organizations.id')
    .limit(MAX_ORGANIZATIONS)
    .execute()
  // An organization may have one member that is bound to the account and another member with the account's present e-mail address.
  return [...new Map(rows.map((row) => [row.id, row])).values()]
}

/** Throws FORBIDDEN with the reason why the account may not sign in. */
async function rejectStranger(db: Db, { email }: VerifiedAccount): Promise<never> {
  const namesake = await db
    .selectFrom('members')
    .select('id')
    .where(sql<string>`lower(email)`, '=', sql<string>`lower(${email})`)
    .executeTakeFirst()
  throw new ApiError(
    'FORBIDDEN',
    namesake
      ? `The member ${quote(email)} signs in with another account of the identity provider. A colleague can send a new invitation, which allows another account.`
      : `${quote(email)} is not a member of an organization here. Ask for an invitation.`,
  )
}

/** Returns the person whom the response of the provider identifies. Throws UNAUTHENTICATED, FORBIDDEN and UNAVAILABLE. */
async function identify(call: AnyCall, response: string): Promise<OpenidIdentity> {
  const provider = providerOf(call)
  const redirect = redirectUri(call)
  const secret = attemptSecret(call.site(), call.browser.cookie)
  if (secret === undefined || !(await withConnection(call, (db) => redeemAttempt(db, secret))))
    throw unauthenticated(NO_ATTEMPT)
  const account = await provider.verify(call.origin().ip ?? '', redirect, derive(secret), response)
  return withConnection(call, async (db) => {
    const organizations = await organizationsOf(db, account)
    if (organizations.length === 0) return rejectStranger(db, account)
    await storeAccount(db, secret, account)
    return { email: account.email, organizations }
  })
}

/** The fields of a call that are needed to open a session. */
export type Browser = Pick<AnyCall, 'site' | 'browser'>

/**
 * Returns the organization's member for the account that was verified for this browser, and binds the member to the account. Throws
 * UNAUTHENTICATED and FORBIDDEN.
 */
export async function useIdentity(
  db: Db,
  { site, browser }: Browser,
  organizationId: string,
): Promise<{ organizationId: string; memberId: string }> {
  requireOrigin(site(), browser.origin)
  const secret = attemptSecret(site(), browser.cookie)
  const account = secret === undefined ? null : await endAttempt(db, secret)
  if (account === null) throw unauthenticated(NO_ATTEMPT)
  const member = await membersOf(db, account)
    .select('members.id')
    .where('members.organizationId', '=', organizationId)
    .limit(1)
    .forUpdate()
    .executeTakeFirst()
  if (!member) throw unauthenticated('The person is not a member of this organization. Sign in again.')
  await db
    .updateTable('members')
    .set({ openidIssuer: account.issuer, openidSubject: account.subject })
    .where('id', '=', member.id)
    .where('organizationId', '=', organizationId)
    .execute()
  return { organizationId, memberId: member.id }
}

export const openid = implement(signInTag, operations, {
  readSignInMethods: {
    summary: 'Read the configured methods of signing in',
    detached: true,
    handle: async ({ dependencies: { identityProvider } }) => ({
      openid: identityProvider && { label: identityProvider.label },
    }),
  },
  createOpenidOptions: {
    summary: 'Begin to sign in with OpenID Connect',
    description:
      'Returns the address of the identity provider and sets a cookie. The provider redirects the browser to `/console/sign-in`, which ' +
      'sends the query of its address to `POST /sessions/openid-identity`.',
    detached: true,
    async handle(call) {
      const provider = providerOf(call)
      const redirect = redirectUri(call)
      const secret = createAttemptSecret()
      const url = await provider.authorizationUrl(call.origin().ip ?? '', redirect, derive(secret))
      await withConnection(call, (db) => beginAttempt(db, secret))
      call.headers['set-cookie'] = attemptCookie(call.site(), secret)
      return { url }
    },
  },
  createOpenidIdentity: {
    summary: 'Verify the response of the identity provider',
    description:
      'A response is accepted once, from the browser that began the sign-in. Then send `POST /sessions` with one of the organizations.',
    detached: true,
    handle: (call) => identify(call, call.body.response),
  },
})

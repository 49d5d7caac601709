/** Defines the endpoints that sign people in and out, and describe the caller (docs/api.md#a5). */

import {
  type createSession,
  type Me,
  sessions as operations,
  type SignInMethod,
} from '@keyward/contract/management/sign-in'
import { hashSecret } from '@keyward/database'
import type { z } from 'zod'

import { findCaller, isOneOf, unauthenticated } from '../../admission/authentication.ts'
import type { Db } from '../../context.ts'
import { findRow } from '../../crud/owned-rows.ts'
import { ApiError } from '../../http/problem.ts'
import { sessionCookie } from '../../http/site.ts'
import type { Call, VendorCall } from '../../operations/call.ts'
import { implement } from '../../operations/implement.ts'
import { permissionsOf, requireCovered } from '../credentials/bounds.ts'
import { useInvitation } from '../members/invitations.ts'
import { memberRows } from '../members/members.ts'
import { signInTag, useIdentity } from '../openid/openid.ts'
import { findSummary } from '../organizations/store.ts'
import { passkeyIdOf, signInOptions, verifySignIn } from '../passkeys/ceremonies.ts'
import { endSession, endSessions, listSessions, openSession, type Person, type SessionOwner } from './store.ts'

type SignIn = { owner: SessionOwner; method: SignInMethod }
type SignInCall = Pick<Call<unknown, unknown, unknown>, 'db' | 'dependencies' | 'site' | 'browser' | 'origin'>

/** Returns the person to whom a personal access token or the operator token belongs. Throws UNAUTHENTICATED and FORBIDDEN. */
async function withToken(db: Db, token: string, operatorTokens: readonly string[]): Promise<SignIn> {
  if (isOneOf(operatorTokens.map(hashSecret), hashSecret(token)))
    return { owner: { operatorToken: token }, method: 'OPERATOR_TOKEN' }
  const { actor, organizationId, credential } = await findCaller(db, hashSecret(token))
  if (actor.type !== 'ACCESS_TOKEN' || actor.memberId === undefined)
    throw new ApiError(
      'FORBIDDEN',
      'This secret belongs to no person. Sign in with a personal access token (kwp_…), an invitation or a passkey.',
    )
  const owner = { organizationId, memberId: actor.memberId, credentialId: credential.id }
  return { owner, method: 'ACCESS_TOKEN' }
}

async function withInvitation(db: Db, secret: string): Promise<SignIn> {
  const owner = await useInvitation(db, secret)
  if (!owner) throw unauthenticated('The invitation was used or replaced, or it has expired. Ask for a new one.')
  return { owner, method: 'INVITATION' }
}

async function withPasskey({ db, site, dependencies, origin }: SignInCall, response: unknown): Promise<SignIn> {
  const { signInLimiter } = dependencies
  const account = passkeyIdOf(response)
  const { ip } = origin()
  signInLimiter.requireFewFailures(account, ip)
  const owner = await verifySignIn(db, site(), response)
  if (owner) return { owner, method: 'PASSKEY' }
  signInLimiter.countFailure(account, ip)
  throw unauthenticated('The passkey is not registered here, or its response is out of date. Try again.')
}

/** Returns the person whom the body identifies, and counts the sign-in. Throws UNAUTHENTICATED, FORBIDDEN and RATE_LIMITED. */
async function identify(call: SignInCall, body: z.output<typeof createSession>): Promise<SignIn> {
  const { db, dependencies, origin } = call
  const { token, invitation = '', passkey, openid } = body
  const signIn: SignIn =
    token !== undefined
      ? await withToken(db, token, dependencies.operatorTokens)
      : passkey !== undefined
        ? await withPasskey(call, passkey)
        : openid !== undefined
          ? { owner: await useIdentity(db, call, openid.organizationId), method: 'OPENID' }
          : await withInvitation(db, invitation)
  const account = 'memberId' in signIn.owner ? signIn.owner.memberId : 'operator'
  // Each method is counted separately, so a stolen access token does not prevent a sign-in with a passkey.
  dependencies.signInLimiter.countVerified(`${signIn.method} ${account}`, origin().ip)
  return signIn
}

type AnyCall = Pick<
  VendorCall<unknown, unknown, unknown>,
  'db' | 'organizationId' | 'actor' | 'permissions' | 'session'
>

/** Returns the member of a caller, or null for the operator. Throws NOT_FOUND for a credential without a member. */
function personOf({ actor, session, organizationId }: Pick<AnyCall, 'actor' | 'session' | 'organizationId'>): Person {
  if (actor.type === 'OPERATOR' && session) return null
  if (actor.memberId !== undefined) return { organizationId, memberId: actor.memberId }
  throw new ApiError('NOT_FOUND', 'Only a member or the operator has sessions. Send the request with a session.')
}

/** Returns whether the credential of the request is a token that belongs to no member. */
function isProgram({ actor, session }: Pick<AnyCall, 'actor' | 'session'>): boolean {
  return session === null && actor.memberId === undefined
}

async function describeCaller({ db, organizationId, actor, permissions, session }: AnyCall): Promise<Me> {
  const memberId = actor.memberId ?? null
  const isOperator = actor.type === 'OPERATOR'
  const open = session
    ? await listSessions(db, memberId === null ? null : { organizationId, memberId }, session.id)
    : []
  const row = memberId === null ? null : await findRow(memberRows, { db, organizationId }, memberId)
  return {
    kind: isOperator ? 'OPERATOR' : row ? 'MEMBER' : 'TOKEN',
    organization: isOperator ? null : await findSummary(db, organizationId),
    member: row && { id: row.id, email: row.email },
    permissions: [...permissions],
    session: open.find(({ isCurrent }) => isCurrent) ?? null,
  }
}

export const sessions = implement(signInTag, operations, {
  readMe: { summary: 'Read the caller of the request', handle: describeCaller },
  listMySessions: {
    summary: 'List your own open sessions',
    async handle(call) {
      if (isProgram(call)) return { data: [] }
      return { data: await listSessions(call.db, personOf(call), call.session?.id ?? null) }
    },
  },
  endMySession: {
    summary: 'End one of your own sessions',
    handle: (call) => endSession(call, personOf(call), call.params.id),
  },
  createSignInOptions: {
    summary: 'Begin to sign in with a passkey',
    description:
      'The options are those of `navigator.credentials.get`. Send the response of the browser to `POST /sessions`.',
    handle: async ({ db, site }) => ({ options: { ...(await signInOptions(db, site())) } }),
  },
  createSession: {
    summary: 'Sign in',
    description:
      'Sets the cookie of the session, which replaces the header `Authorization` in later requests. A session ends 12 hours after ' +
      'its last use, and at the latest after 7 days.',
    async handle(call) {
      const { db, site, headers, dependencies } = call
      const { owner, method } = await identify(call, call.body)
      const { secret, expiresAt, caller } = await openSession(db, owner, method, dependencies.operatorTokens)
      headers['set-cookie'] = sessionCookie(site(), secret, expiresAt)
      return describeCaller({ ...caller, db })
    },
  },
  signOut: {
    summary: 'Sign out',
    description: 'Ends the session of the request and removes its cookie.',
    async handle(call) {
      if (!call.session) throw new ApiError('NOT_FOUND', 'The request was not sent with a session.')
      await endSession(call, personOf(call), call.session.id)
      call.headers['set-cookie'] = sessionCookie(call.site(), '', new Date(0))
    },
  },
  listSessions: {
    summary: 'List the open sessions of a member',
    async handle(call) {
      const { db, organizationId, session } = call
      const { id: memberId } = await findRow(memberRows, call, call.params.id)
      return { data: await listSessions(db, { organizationId, memberId }, session?.id ?? null) }
    },
  },
  endSessions: {
    summary: 'End every session of a member',
    description: 'A credential can sign out only members whose permissions it has.',
    async handle(call) {
      const { id, permissions } = await findRow(memberRows, call, call.params.id)
      if (id !== call.actor.memberId) requireCovered('member', permissionsOf(permissions), call.permissions)
      await endSessions(call, id)
    },
  },
})

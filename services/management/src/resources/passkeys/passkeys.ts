/** Defines the endpoints of the passkeys of the member who sends the request (docs/api.md#a6). */

import { type createPasskey, type Passkey, passkeys as operations } from '@keyward/contract/management/sign-in'
import { uuidv7, violatedConstraint } from '@keyward/database'
import type { z } from 'zod'

import { audit } from '../../audit/writer.ts'
import type { Db } from '../../context.ts'
import { ApiError, invalid, notFound } from '../../http/problem.ts'
import type { VendorCall } from '../../operations/call.ts'
import { implement } from '../../operations/implement.ts'
import { permissionsOf, requireCovered, requireUnlimited } from '../credentials/bounds.ts'
import { signInTag } from '../openid/openid.ts'
import { registrationOptions, verifyRegistration } from './ceremonies.ts'

const MAX_PASSKEYS = 20

type AnyCall = Pick<VendorCall<unknown, unknown, unknown>, 'db' | 'organizationId' | 'actor' | 'permissions'>
type RegisteringCall = AnyCall & Pick<VendorCall<unknown, unknown, unknown>, 'credential' | 'session'>

/**
 * Returns the member of the caller. Throws NOT_FOUND for a credential without a member. Throws FORBIDDEN for a credential with fewer
 * permissions than the member, because a passkey has all permissions of the member.
 */
async function memberOf({ db, organizationId, actor, permissions }: AnyCall): Promise<{ id: string; email: string }> {
  const id = actor.memberId
  if (id === undefined)
    throw new ApiError(
      'NOT_FOUND',
      'Only a member has passkeys. Send the request with a session or an access token of a member.',
    )
  const row = await db
    .selectFrom('members')
    .select(['id', 'email', 'permissions'])
    .where('id', '=', id)
    .where('organizationId', '=', organizationId)
    .executeTakeFirst()
  if (!row) throw notFound('member')
  requireCovered('member', permissionsOf(row.permissions), permissions)
  return row
}

function rowsOf(db: Db, organizationId: string, memberId: string) {
  return db
    .selectFrom('passkeys')
    .select(['id', 'name', 'credentialId', 'createdAt', 'lastUsedAt'])
    .where('organizationId', '=', organizationId)
    .where('memberId', '=', memberId)
    .orderBy('id', 'desc')
}

type Row = Awaited<ReturnType<ReturnType<typeof rowsOf>['executeTakeFirstOrThrow']>>

function show({ id, name, createdAt, lastUsedAt }: Omit<Row, 'credentialId'>): Passkey {
  return { id, name, createdAt: createdAt.toISOString(), lastUsedAt: lastUsedAt?.toISOString() ?? null }
}

/**
 * Throws FORBIDDEN when the passkey would outlive the credential, or might belong to another person: with a token of another creator, and
 * in the session of another sender's
 * invitation if the member has an older passkey than the session.
 */
async function requireOwnCredential(
  { db, actor, credential, session }: RegisteringCall,
  registered: readonly Row[],
): Promise<void> {
  requireUnlimited(credential)
  if (actor.issuedBy === undefined) return
  if (session === null || credential.id !== session.id)
    throw new ApiError(
      'FORBIDDEN',
      'Another person created the access token. Sign in with an invitation or a passkey to register a passkey.',
    )
  const { createdAt } = await db
    .selectFrom('sessions')
    .select('createdAt')
    .where('id', '=', session.id)
    .executeTakeFirstOrThrow()
  if (registered.some((passkey) => passkey.createdAt < createdAt))
    throw new ApiError(
      'FORBIDDEN',
      'Another person sent the invitation of this session, and the member already has a passkey. Sign in with that passkey, or delete it first.',
    )
}

async function addPasskey(call: VendorCall<unknown, unknown, z.output<typeof createPasskey>>): Promise<Passkey> {
  const { id: memberId } = await memberOf(call)
  const { db, organizationId, body } = call
  const verified = await verifyRegistration(db, call.site(), memberId, body.response)
  const registered = await rowsOf(db, organizationId, memberId).execute()
  await requireOwnCredential(call, registered)
  if (registered.length >= MAX_PASSKEYS)
    throw new ApiError('QUOTA_EXCEEDED', `A member has at most ${MAX_PASSKEYS} passkeys. Delete one first.`)
  const id = uuidv7()
  const createdAt = new Date()
  await db
    .insertInto('passkeys')
    .values({ id, organizationId, memberId, name: body.name, ...verified, createdAt })
    .execute()
    .catch((error: unknown) => {
      if (violatedConstraint(error) === 'passkeys_credential_id_key')
        throw invalid('#/response', 'belongs to a passkey that is already registered')
      throw error
    })
  await audit(call, {
    action: 'passkey.created',
    resourceType: 'passkey',
    resourceId: id,
    changes: { name: body.name },
  })
  return show({ id, name: body.name, createdAt, lastUsedAt: null })
}

export const passkeys = implement(signInTag, operations, {
  listMyPasskeys: {
    summary: 'List your own passkeys',
    async handle(call) {
      if (call.actor.memberId === undefined) return { data: [] }
      const { id } = await memberOf(call)
      return { data: (await rowsOf(call.db, call.organizationId, id).execute()).map(show) }
    },
  },
  createPasskeyOptions: {
    summary: 'Begin to register a passkey',
    description:
      'The options are those of `navigator.credentials.create`. Send the response of the browser to `POST /me/passkeys`.',
    async handle(call) {
      const member = await memberOf(call)
      const registered = await rowsOf(call.db, call.organizationId, member.id).execute()
      await requireOwnCredential(call, registered)
      const ids = registered.map(({ credentialId }) => credentialId)
      return { options: { ...(await registrationOptions(call.db, call.site(), { ...member, registered: ids })) } }
    },
  },
  createPasskey: {
    summary: 'Register a passkey',
    handle: addPasskey,
  },
  deletePasskey: {
    summary: 'Delete one of your own passkeys',
    async handle(call) {
      const { id: memberId } = await memberOf(call)
      const deleted = await call.db
        .deleteFrom('passkeys')
        .where('organizationId', '=', call.organizationId)
        .where('memberId', '=', memberId)
        .where('id', '=', call.params.id)
        .returning('name')
        .executeTakeFirst()
      if (!deleted) throw notFound('passkey')
      await audit(call, {
        action: 'passkey.deleted',
        resourceType: 'passkey',
        resourceId: call.params.id,
        changes: deleted,
      })
    },
  },
})

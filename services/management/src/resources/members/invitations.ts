/**
 * Creates and redeems one-time invitations (docs/api.md#a6). With the secret of an invitation, its member signs in without any other
 * credential.
 */

import { type Actor, actor as actorSchema, type Member } from '@keyward/contract'
import { type Invitation } from '@keyward/contract/management/sign-in'
import { createSecret, hashSecret, parseSecret } from '@keyward/database'
import { sql } from 'kysely'

import { audit, toJsonb } from '../../audit/writer.ts'
import type { Db, WriteContext } from '../../context.ts'

const HOURS = 72
const MS_PER_HOUR = 3_600_000
const PAGE = '/console/invitation'

/**
 * Creates an invitation, which replaces an earlier one. Also unbinds the member from the account at the identity provider, so that another
 * account can be bound.
 */
export async function invite(context: WriteContext, member: Member): Promise<Invitation> {
  const { db, organizationId, actor } = context
  const memberId = member.id
  const { secret, hash } = createSecret('INVITATION')
  const expiresAt = new Date(Date.now() + HOURS * MS_PER_HOUR)
  const fields = { secretHash: hash, invitedBy: toJsonb(actor), createdAt: new Date(), expiresAt }
  await db
    .insertInto('invitations')
    .values({ memberId, organizationId, ...fields })
    .onConflict((conflict) => conflict.column('memberId').doUpdateSet(fields))
    .execute()
  await db
    .updateTable('members')
    .set({ openidIssuer: null, openidSubject: null })
    .where('id', '=', memberId)
    .where('organizationId', '=', organizationId)
    .where('openidSubject', 'is not', null)
    .execute()
  const changes = { expiresAt: expiresAt.toISOString() }
  const event = { type: 'member.invited', resource: member } as const
  await audit(context, { action: 'member.invited', resourceType: 'member', resourceId: memberId, changes, event })
  // The secret is in the fragment, which browsers never send to a server.
  return { secret, path: `${PAGE}#${secret}`, expiresAt: expiresAt.toISOString() }
}

interface Invited {
  memberId: string
  organizationId: string
  /** The actor that sent the invitation, or null if the invited member sent it. */
  invitedBy: Actor | null
}

/**
 * Deletes the invitations that a member sent to others, directly or with one of the tokens, and ends the sessions that were opened with
 * such invitations. Returns the ids of the sessions, and of the members whose invitations were deleted.
 */
export async function endInvitationsOf(
  { db, organizationId }: WriteContext,
  memberId: string,
  tokens: readonly string[],
): Promise<{ endedSessions: string[]; deletedInvitations: string[] }> {
  const isOpened = sql<boolean>`member_id <> ${memberId} and (invited_by ->> 'memberId' = ${memberId}
    or invited_by -> 'issuedBy' ->> 'memberId' = ${memberId} or invited_by ->> 'id' = any (${tokens}::text[]))`
  const sessions = await db
    .deleteFrom('sessions')
    .where('organizationId', '=', organizationId)
    .where(isOpened)
    .returning('id')
    .execute()
  const invitations = await db
    .deleteFrom('invitations')
    .where('organizationId', '=', organizationId)
    .where(isOpened)
    .returning('memberId as id')
    .execute()
  const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id).toSorted()
  return { endedSessions: idsOf(sessions), deletedInvitations: idsOf(invitations) }
}

/** Redeems an invitation. Returns null when the secret is unknown, used or expired. */
export async function useInvitation(db: Db, secret: string): Promise<Invited | null> {
  if (parseSecret(secret)?.kind !== 'INVITATION') return null
  const row = await db
    .deleteFrom('invitations')
    .where('secretHash', '=', Buffer.from(hashSecret(secret)))
    .where('expiresAt', '>', sql<Date>`now()`)
    .returning(['memberId', 'organizationId', 'invitedBy'])
    .executeTakeFirst()
  if (!row) return null
  const { issuedBy = null, ...sender } = actorSchema.parse(row.invitedBy)
  return { ...row, invitedBy: sender.memberId === row.memberId ? issuedBy : sender }
}

/**
 * Opens, lists and ends sessions (docs/api.md#a5). The member of a session, and every caller with the permission `credentials.write`, can
 * end the session. Each member has at most 20 sessions. A new session beyond this limit ends the oldest.
 */

import { randomUUID } from 'node:crypto'

import type { Actor } from '@keyward/contract'
import type { Session, SignInMethod } from '@keyward/contract/management/sign-in'
import { createSecret, type Database } from '@keyward/database'
import { type ExpressionBuilder, sql } from 'kysely'

import type { Caller } from '../../admission/authentication.ts'
import { findSessionCaller, operatorSeal, SESSION_IDLE_HOURS } from '../../admission/sessions.ts'
import { audit, toJsonb } from '../../audit/writer.ts'
import type { Db, WriteContext } from '../../context.ts'
import { notFound } from '../../http/problem.ts'

const MAX_DAYS = 7
const MS_PER_DAY = 86_400_000
const MAX_SESSIONS = 20

/** The owner of a session: a member, or the operator with one of the operator tokens. */
export type SessionOwner =
  | {
      organizationId: string
      memberId: string
      /** The id of the access token that opens the session. */
      credentialId?: string
      /** The actor that sent the invitation that opens the session, or null if the invited member sent it. Absent without an invitation. */
      invitedBy?: Actor | null
    }
  | { operatorToken: string }

interface OpenedSession {
  /** The secret of the session, which cannot be read again. */
  secret: string
  expiresAt: Date
  /** The caller that the session identifies. */
  caller: Caller
}

export async function openSession(
  db: Db,
  owner: SessionOwner,
  method: SignInMethod,
  operatorTokens: readonly string[],
): Promise<OpenedSession> {
  const { secret, hash } = createSecret('SESSION')
  const id = randomUUID()
  const expiresAt = new Date(Date.now() + MAX_DAYS * MS_PER_DAY)
  await db
    .insertInto('sessions')
    .values({ id, secretHash: hash, method, expiresAt, ...ownerColumns(owner, secret) })
    .execute()
  await endOldest(db, 'memberId' in owner ? owner : null)
  const caller = await findSessionCaller(db, secret, hash, operatorTokens)
  const { organizationId, actor } = caller
  if ('memberId' in owner)
    await audit(
      { db, organizationId, actor },
      { action: 'session.opened', resourceType: 'session', resourceId: id, changes: { method } },
    )
  return { secret, expiresAt, caller }
}

function ownerColumns(owner: SessionOwner, secret: string) {
  if ('operatorToken' in owner) {
    const seal = operatorSeal(secret, owner.operatorToken)
    return { organizationId: null, memberId: null, credentialId: null, operatorSeal: seal }
  }
  const { organizationId, memberId, credentialId = null, invitedBy } = owner
  const maker = invitedBy ? toJsonb(invitedBy) : null
  return { organizationId, memberId, credentialId, operatorSeal: null, invitedBy: maker }
}

/** The person who owns sessions: a member, or null for the operator. */
export type Person = { organizationId: string; memberId: string } | null

function ownedBy(person: Person) {
  return (builder: ExpressionBuilder<Database, 'sessions'>) =>
    person === null
      ? builder('memberId', 'is', null)
      : builder.and([builder('organizationId', '=', person.organizationId), builder('memberId', '=', person.memberId)])
}

async function endOldest(db: Db, person: Person): Promise<void> {
  const excess = db
    .selectFrom('sessions')
    .select('id')
    .where(ownedBy(person))
    .orderBy('createdAt', 'desc')
    .orderBy('id')
    .offset(MAX_SESSIONS)
  await db.deleteFrom('sessions').where('id', 'in', excess).execute()
}

/**
 * Returns the open sessions, newest first. `currentId` is the id of the session that authenticated the request, or null when no session
 * did.
 */
export async function listSessions(db: Db, person: Person, currentId: string | null): Promise<Session[]> {
  const rows = await db
    .selectFrom('sessions')
    .select(['id', 'method', 'createdAt', 'lastUsedAt', 'expiresAt'])
    .where(ownedBy(person))
    .where('expiresAt', '>', sql<Date>`now()`)
    .where('lastUsedAt', '>', sql<Date>`now() - ${SESSION_IDLE_HOURS} * interval '1 hour'`)
    .orderBy('createdAt', 'desc')
    .orderBy('id')
    .execute()
  return rows.map(({ id, method, createdAt, lastUsedAt, expiresAt }) => ({
    id,
    method,
    isCurrent: id === currentId,
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
  }))
}

/** Ends a session. Throws NOT_FOUND. */
export async function endSession(context: WriteContext, person: Person, id: string): Promise<void> {
  const { numDeletedRows } = await context.db
    .deleteFrom('sessions')
    .where('id', '=', id)
    .where(ownedBy(person))
    .executeTakeFirst()
  if (numDeletedRows === 0n) throw notFound('session')
  if (person !== null) await audit(context, { action: 'session.ended', resourceType: 'session', resourceId: id })
}

export async function endSessions(context: WriteContext, memberId: string): Promise<void> {
  const ended = await context.db
    .deleteFrom('sessions')
    .where('organizationId', '=', context.organizationId)
    .where('memberId', '=', memberId)
    .returning('id')
    .execute()
  if (ended.length === 0) return
  const changes = { sessions: ended.map(({ id }) => id) }
  await audit(context, { action: 'member.signed_out', resourceType: 'member', resourceId: memberId, changes })
}

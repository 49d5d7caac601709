/**
 * Authenticates requests with a session (docs/api.md#a5). Nothing is cached, so each request reads the session, its member and its access
 * token.
 */

import { createHmac, timingSafeEqual } from 'node:crypto'

import { sql } from 'kysely'

import type { Db } from '../context.ts'
import {
  type Caller,
  intersection,
  issuerOf,
  operatorCaller,
  permissionsFrom,
  storedActor,
  unauthenticated,
} from './authentication.ts'

/** The number of hours without use after which a session ends. `last_used_at` has a precision of one minute. */
export const SESSION_IDLE_HOURS = 12

/**
 * Returns the HMAC by which a session refers to the operator token that opened it. Without the session's secret, the HMAC cannot be
 * compared with a token.
 */
export function operatorSeal(sessionSecret: string, operatorToken: string): Buffer {
  return createHmac('sha256', sessionSecret).update(operatorToken).digest()
}

async function findSession(db: Db, secretHash: Uint8Array) {
  return db
    .selectFrom('sessions')
    .leftJoin('members', 'members.id', 'sessions.memberId')
    .leftJoin('organizations', 'organizations.id', 'sessions.organizationId')
    .leftJoin('credentials', 'credentials.id', 'sessions.credentialId')
    .select([
      'sessions.id',
      'sessions.organizationId',
      'sessions.memberId',
      'sessions.operatorSeal',
      'sessions.credentialId',
      'sessions.invitedBy',
      'members.email',
      'members.permissions as memberPermissions',
      'organizations.suspendedAt',
      'credentials.permissions as tokenPermissions',
      'credentials.revokedAt as tokenRevokedAt',
      'credentials.expiresAt as tokenExpiresAt',
      'credentials.createdBy as tokenCreatedBy',
      'credentials.madeByMember as tokenMadeByMember',
    ])
    .where('sessions.secretHash', '=', Buffer.from(secretHash))
    .where('sessions.expiresAt', '>', sql<Date>`now()`)
    .where('sessions.lastUsedAt', '>', sql<Date>`now() - ${SESSION_IDLE_HOURS} * interval '1 hour'`)
    .executeTakeFirst()
}

type SessionRow = NonNullable<Awaited<ReturnType<typeof findSession>>>

function isTokenValid({ credentialId, tokenRevokedAt, tokenExpiresAt }: SessionRow): boolean {
  if (credentialId === null) return true
  return tokenRevokedAt === null && (tokenExpiresAt === null || tokenExpiresAt.getTime() > Date.now())
}

const REJECTED = 'The session has ended. Sign in again.'

/** Returns the caller whose session has this secret, which is the value of the cookie. Throws UNAUTHENTICATED. */
export async function findSessionCaller(
  db: Db,
  secret: string,
  secretHash: Uint8Array,
  operatorTokens: readonly string[],
): Promise<Caller> {
  const row = await findSession(db, secretHash)
  if (!row || !isTokenValid(row)) throw unauthenticated(REJECTED)
  if (row.operatorSeal !== null) {
    const seal = row.operatorSeal
    if (!operatorTokens.map((token) => timingSafeEqual(seal, operatorSeal(secret, token))).includes(true))
      throw unauthenticated(REJECTED)
    return { ...operatorCaller(), owner: row.id, session: { id: row.id } }
  }
  const { organizationId, memberId, email } = row
  if (organizationId === null || memberId === null || email === null) throw unauthenticated(REJECTED)
  const permissionsOfMember = permissionsFrom(row.memberPermissions ?? [])
  const invitedBy = storedActor.nullable().parse(row.invitedBy)
  return {
    kind: 'vendor',
    owner: row.id,
    organizationId,
    permissions:
      row.credentialId === null
        ? permissionsOfMember
        : intersection(permissionsFrom(row.tokenPermissions ?? []), permissionsOfMember),
    actor: {
      type: 'MEMBER',
      id: memberId,
      name: email,
      memberId,
      ...(invitedBy ? { issuedBy: invitedBy } : issuerOf(memberId, row.tokenCreatedBy)),
    },
    // A credential that the member creates may outlive the session, but not the access token that opened the session.
    credential: {
      id: row.credentialId ?? row.id,
      expiresAt: row.tokenExpiresAt,
      productId: null,
      madeByMember: row.tokenMadeByMember ?? memberId,
    },
    isSuspended: row.suspendedAt !== null,
    session: { id: row.id },
    portal: null,
  }
}

/** Returns the customer whose session in the portal has this secret (docs/api.md#u4). Throws UNAUTHENTICATED. */
export async function findCustomerCaller(db: Db, secretHash: Uint8Array): Promise<Caller> {
  const row = await db
    .selectFrom('portalSessions')
    .innerJoin('organizations', 'organizations.id', 'portalSessions.organizationId')
    .select([
      'portalSessions.id',
      'portalSessions.organizationId',
      'portalSessions.customerId',
      'portalSessions.actions',
      'portalSessions.isPreview',
    ])
    .where('portalSessions.secretHash', '=', Buffer.from(secretHash))
    .where('portalSessions.openedAt', 'is not', null)
    .where('portalSessions.expiresAt', '>', sql<Date>`now()`)
    .where('organizations.suspendedAt', 'is', null)
    .executeTakeFirst()
  if (!row) throw unauthenticated('The session of the portal has ended. Open a new link.')
  const { id, organizationId, customerId, actions, isPreview } = row
  return {
    ...operatorCaller(),
    kind: 'customer',
    owner: id,
    organizationId,
    actor: { type: 'CUSTOMER', id: customerId },
    portal: { sessionId: id, customerId, actions, isPreview },
  }
}

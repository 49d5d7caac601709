/**
 * Limits which credentials and members a credential may create, change or revoke (docs/api.md#a2). A credential grants only permissions
 * that it has, and creates no token that outlives it. It changes or revokes only credentials and members whose permissions it has. An
 * organization always keeps a token that manages credentials.
 */

import { ALL_PERMISSIONS, type Permission } from '@keyward/contract'
import { sql } from 'kysely'

import type { CallerCredential, ReadContext, WriteContext } from '../../context.ts'
import { ApiError } from '../../http/problem.ts'

const MANAGES: Permission = 'credentials.write'

export function permissionsOf(names: readonly string[]): Permission[] {
  return ALL_PERMISSIONS.filter((permission) => names.includes(permission))
}

function without(wanted: readonly Permission[], own: ReadonlySet<Permission>): string {
  return wanted.filter((permission) => !own.has(permission)).join(', ')
}

/** Throws FORBIDDEN unless the caller has every permission that the request grants. */
export function requireGrantable(granted: readonly Permission[], own: ReadonlySet<Permission>): void {
  const missing = without(granted, own)
  if (missing !== '')
    throw new ApiError('FORBIDDEN', `The credential cannot grant ${missing}, because it lacks this permission.`)
}

/** Throws FORBIDDEN unless the caller has every permission of the credential or member that the request changes or revokes. */
export function requireCovered(what: string, held: readonly Permission[], own: ReadonlySet<Permission>): void {
  const missing = without(held, own)
  if (missing !== '')
    throw new ApiError(
      'FORBIDDEN',
      `The ${what} has the permission ${missing}, which the credential of the request lacks. Send the request with a credential that has it.`,
    )
}

/** Throws FORBIDDEN when a token would expire later than the credential that creates it. */
export function requireNotOutliving(expiresAt: Date | null, { expiresAt: latest }: CallerCredential): void {
  if (latest === null || (expiresAt !== null && expiresAt.getTime() <= latest.getTime())) return
  throw new ApiError(
    'FORBIDDEN',
    `The credential expires at ${latest.toISOString()} and cannot create one that expires later. Send an "expiresAt" that is not later.`,
  )
}

/** Throws FORBIDDEN for a credential that expires, because what it grants to members would outlive it. */
export function requireUnlimited({ expiresAt }: CallerCredential): void {
  if (expiresAt === null) return
  throw new ApiError(
    'FORBIDDEN',
    `The credential expires at ${expiresAt.toISOString()} and can neither create a member, an invitation or a passkey, nor give a member a permission. Send the request with one that does not expire.`,
  )
}

/** Locks the organization, so that no other transaction removes a credential that `requireManager` counts. */
export async function lockManagers({ db, organizationId }: WriteContext): Promise<void> {
  await db.selectFrom('organizations').select('id').where('id', '=', organizationId).forNoKeyUpdate().execute()
}

/** Throws LAST_CREDENTIAL unless an unexpired token remains that manages credentials. Call it after `lockManagers` and the change. */
export async function requireManager({ db, organizationId }: ReadContext): Promise<void> {
  const manager = await db
    .selectFrom('credentials')
    .leftJoin('members', (join) =>
      join
        .onRef('members.id', '=', 'credentials.memberId')
        .onRef('members.organizationId', '=', 'credentials.organizationId'),
    )
    .select('credentials.id')
    .where('credentials.organizationId', '=', organizationId)
    .where('credentials.kind', '<>', 'API_KEY')
    .where('credentials.revokedAt', 'is', null)
    .where(sql<boolean>`(credentials.expires_at is null or credentials.expires_at > now())`)
    .where(sql<boolean>`${MANAGES} = any (credentials.permissions)`)
    .where(sql<boolean>`(credentials.member_id is null or ${MANAGES} = any (members.permissions))`)
    .limit(1)
    .executeTakeFirst()
  if (!manager)
    throw new ApiError(
      'LAST_CREDENTIAL',
      `No other token with the permission ${MANAGES} would remain. Create one first.`,
    )
}

/**
 * Throws LAST_MANAGER unless a member remains that manages members. A management token may remove the last one, because it can invite a
 * member again. Call it after `lockManagers` and the change of a member that managed members.
 */
export async function requireManagingMember({
  db,
  organizationId,
  credential,
}: ReadContext & { credential: CallerCredential }): Promise<void> {
  if (credential.madeByMember === null) return
  const manager = await db
    .selectFrom('members')
    .select('id')
    .where('organizationId', '=', organizationId)
    .where(sql<boolean>`${MANAGES} = any (permissions)`)
    .limit(1)
    .executeTakeFirst()
  if (!manager)
    throw new ApiError(
      'LAST_MANAGER',
      `No other member with the permission ${MANAGES} would remain. Give the permission to another member first.`,
    )
}

export function isManager({ permissions }: { permissions: readonly string[] }): boolean {
  return permissions.includes(MANAGES)
}

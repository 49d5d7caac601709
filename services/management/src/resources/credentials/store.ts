/**
 * API keys, management tokens and personal access tokens: one table, three kinds. A secret is returned once and only its hash is
 * stored. The row of a revoked credential stays, for the audit log and the validators, and appears in no list.
 */

import type { Permission } from '@keyward/contract'
import { createSecret, type CredentialKind, uuidv7 } from '@keyward/database'

import { audit } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../http/context.ts'
import { type Page, type PageQuery, selectPage } from '../../http/pagination.ts'
import { ApiError, notFound } from '../../http/problem.ts'
import { requireWithinQuota } from '../../quotas/quotas.ts'

/** Selects the credentials of one kind: those of the organization, or those of one member. */
export interface CredentialFilter {
  kind: CredentialKind
  memberId: string | null
}

const RESOURCES: Record<CredentialKind, { type: string; label: string }> = {
  API_KEY: { type: 'api_key', label: 'API key' },
  MANAGEMENT_TOKEN: { type: 'management_token', label: 'token' },
  ACCESS_TOKEN: { type: 'access_token', label: 'access token' },
}

/** Throws FORBIDDEN unless the caller has every permission that it grants (docs/api.md#a2). */
export function requireGrantable(granted: readonly Permission[], own: ReadonlySet<Permission>): void {
  const missing = granted.filter((permission) => !own.has(permission))
  if (missing.length > 0)
    throw new ApiError(
      'FORBIDDEN',
      `The credential cannot grant ${missing.join(', ')}, because it does not have this permission itself.`,
    )
}

function select({ db, organizationId }: ReadContext, { kind, memberId }: CredentialFilter) {
  return db
    .selectFrom('credentials')
    .leftJoin('credentialUses', 'credentialUses.credentialId', 'credentials.id')
    .select(['id', 'name', 'prefix', 'permissions', 'expiresAt', 'createdAt', 'credentialUses.lastUsedAt'])
    .where('organizationId', '=', organizationId)
    .where('kind', '=', kind)
    .where('revokedAt', 'is', null)
    .$if(memberId !== null, (query) => query.where('memberId', '=', memberId))
}

type CredentialRow = Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirstOrThrow']>>

function show(row: CredentialRow) {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    permissions: row.permissions,
    expiresAt: row.expiresAt?.toISOString() ?? null,
    lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
  }
}
export type ShownCredential = ReturnType<typeof show>

export async function listCredentials(
  context: ReadContext,
  filter: CredentialFilter,
  query: PageQuery,
): Promise<Page<ShownCredential>> {
  const list = { name: `${filter.kind} ${filter.memberId ?? ''}`, organizationId: context.organizationId }
  return selectPage(list, query, select(context, filter), show)
}

export async function readCredential(
  context: ReadContext,
  filter: CredentialFilter,
  id: string,
): Promise<ShownCredential> {
  const row = await select(context, filter).where('id', '=', id).executeTakeFirst()
  if (!row) throw notFound(RESOURCES[filter.kind].label)
  return show(row)
}

export interface NewCredential {
  name: string
  permissions?: readonly Permission[]
  expiresAt?: Date | null | undefined
}

function memberOf({ memberId }: CredentialFilter) {
  return memberId !== null && { memberId }
}

/** As `addCredential`. Throws QUOTA_EXCEEDED. */
export async function addCredentialWithinQuota(
  context: WriteContext,
  filter: CredentialFilter,
  input: NewCredential,
): Promise<ShownCredential & { secret: string }> {
  await requireWithinQuota(context, filter.kind === 'API_KEY' ? 'apiKeys' : 'tokens')
  return addCredential(context, filter, input)
}

/** Creates a credential, whatever the quotas. The returned secret cannot be read again. */
export async function addCredential(
  context: WriteContext,
  filter: CredentialFilter,
  { name, permissions = [], expiresAt = null }: NewCredential,
): Promise<ShownCredential & { secret: string }> {
  const { secret, prefix, hash } = createSecret(filter.kind)
  const { db, organizationId } = context
  const id = uuidv7()
  const fields = { name, permissions: [...permissions], expiresAt, prefix }
  await db
    .insertInto('credentials')
    .values({ id, organizationId, ...filter, ...fields, secretHash: hash })
    .execute()
  const { type } = RESOURCES[filter.kind]
  const changes = { ...fields, ...memberOf(filter) }
  await audit(context, { action: `${type}.created`, resourceType: type, resourceId: id, changes })
  return { ...(await readCredential(context, filter, id)), secret }
}

export async function revokeCredential(context: WriteContext, filter: CredentialFilter, id: string): Promise<void> {
  const { kind, memberId } = filter
  const row = await context.db
    .updateTable('credentials')
    .set({ revokedAt: new Date() })
    .where('organizationId', '=', context.organizationId)
    .where('kind', '=', kind)
    .where('id', '=', id)
    .where('revokedAt', 'is', null)
    .$if(memberId !== null, (query) => query.where('memberId', '=', memberId))
    .returning(['name', 'prefix'])
    .executeTakeFirst()
  const { type, label } = RESOURCES[kind]
  if (!row) throw notFound(label)
  const changes = { ...row, ...memberOf(filter) }
  await audit(context, { action: `${type}.revoked`, resourceType: type, resourceId: id, changes })
}

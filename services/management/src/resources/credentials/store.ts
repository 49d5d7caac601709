/**
 * API keys, management tokens and personal access tokens: one table, three kinds. A secret is returned once and only its hash is
 * kept; a revoked credential stays as a row for the audit log and the validators, and is gone from every list.
 */
import type { Permission } from '@keyward/contract'
import { createSecret, type Database, uuidv7 } from '@keyward/database'
import type { Selectable } from 'kysely'

import { audit, type Change } from '../../audit/writer.ts'
import type { Db } from '../../http/context.ts'
import { type PageQuery, readPage } from '../../http/pagination.ts'
import { notFound, Refusal } from '../../http/problem.ts'

type Kind = Selectable<Database['credentials']>['kind']

/** Which credentials: an organization's of one kind, or those of one member. */
export interface Shelf {
  organizationId: string
  kind: Kind
  memberId: string | null
}

const resource: Record<Kind, { type: string; label: string }> = {
  API_KEY: { type: 'api_key', label: 'API key' },
  MANAGEMENT_TOKEN: { type: 'management_token', label: 'token' },
  ACCESS_TOKEN: { type: 'access_token', label: 'access token' },
}

/** Nobody can grant a permission that they lack. */
export function refuseToGrant(wanted: readonly Permission[], own: ReadonlySet<Permission>): void {
  const lacking = wanted.filter((permission) => !own.has(permission))
  if (lacking.length > 0)
    throw new Refusal('FORBIDDEN', `The permission ${lacking.join(', ')} is missing, so it cannot be granted.`)
}

function select(db: Db, shelf: Shelf) {
  return db
    .selectFrom('credentials')
    .leftJoin('credentialUses', 'credentialUses.credentialId', 'credentials.id')
    .select(['id', 'name', 'prefix', 'permissions', 'expiresAt', 'createdAt', 'credentialUses.lastUsedAt'])
    .where('organizationId', '=', shelf.organizationId)
    .where('kind', '=', shelf.kind)
    .where('revokedAt', 'is', null)
    .$if(shelf.memberId !== null, (query) => query.where('memberId', '=', shelf.memberId))
}

type Row = Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirstOrThrow']>>

function show(row: Row) {
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

/** API keys have no permissions to show. */
export function withoutPermissions(shown: ShownCredential) {
  const { id, name, prefix, expiresAt, lastUsedAt, createdAt } = shown
  return { id, name, prefix, expiresAt, lastUsedAt, createdAt }
}

export async function listCredentials(db: Db, shelf: Shelf, query: PageQuery) {
  const list = { name: `${shelf.kind} ${shelf.memberId ?? ''}`, organizationId: shelf.organizationId }
  return readPage(list, query, select(db, shelf), show)
}

export async function readCredential(db: Db, shelf: Shelf, id: string): Promise<ShownCredential> {
  const row = await select(db, shelf).where('id', '=', id).executeTakeFirst()
  if (!row) throw notFound(resource[shelf.kind].label)
  return show(row)
}

export interface NewCredential {
  name: string
  permissions: readonly Permission[]
  expiresAt: Date | null
}

/** Whose it is, for the audit log. */
function ofMember({ memberId }: Shelf) {
  return memberId !== null && { memberId }
}

export async function addCredential(
  change: Change,
  shelf: Shelf,
  input: NewCredential,
): Promise<ShownCredential & { secret: string }> {
  const { secret, prefix, hash } = createSecret(shelf.kind)
  const { name, permissions, expiresAt } = input
  const id = uuidv7()
  await change.db
    .insertInto('credentials')
    .values({ id, ...shelf, name, prefix, secretHash: hash, permissions: [...permissions], expiresAt })
    .execute()
  const { type } = resource[shelf.kind]
  const changes = { ...input, prefix, ...ofMember(shelf) }
  await audit(change, { action: `${type}.created`, resourceType: type, resourceId: id, changes })
  return { ...(await readCredential(change.db, shelf, id)), secret }
}

export async function revokeCredential(change: Change, shelf: Shelf, id: string): Promise<void> {
  const row = await change.db
    .updateTable('credentials')
    .set({ revokedAt: new Date() })
    .where('organizationId', '=', shelf.organizationId)
    .where('kind', '=', shelf.kind)
    .where('id', '=', id)
    .where('revokedAt', 'is', null)
    .$if(shelf.memberId !== null, (query) => query.where('memberId', '=', shelf.memberId))
    .returning(['name', 'prefix'])
    .executeTakeFirst()
  const { type, label } = resource[shelf.kind]
  if (!row) throw notFound(label)
  const changes = { ...row, ...ofMember(shelf) }
  await audit(change, { action: `${type}.revoked`, resourceType: type, resourceId: id, changes })
}

/**
 * Reads, creates and revokes API keys, management tokens and personal access tokens, which share one table. A secret is returned once, and
 * only its hash is stored. The row of a revoked credential remains until its retention ends, but no list contains it.
 */

import type { Permission } from '@keyward/contract'
import { createSecret, type CredentialKind, uuidv7 } from '@keyward/database'
import { sql } from 'kysely'

import { listedActor } from '../../audit/actors.ts'
import { audit, toJsonb } from '../../audit/writer.ts'
import type { CallerCredential, Db, ReadContext, WriteContext } from '../../context.ts'
import type { NewEvent, OwnedEvent } from '../../events/writer.ts'
import { type Page, type PageQuery, selectPage } from '../../http/pagination.ts'
import { invalid, notFound } from '../../http/problem.ts'
import { requireWithinQuota } from '../../quotas/quotas.ts'
import { requireValidatorsWith } from '../validators/features.ts'
import {
  lockManagers,
  permissionsOf,
  requireCovered,
  requireGrantable,
  requireManager,
  requireNotOutliving,
} from './bounds.ts'

/** Selects the credentials of one kind, of the organization or of one member. */
export interface CredentialFilter {
  kind: CredentialKind
  memberId: string | null
  /** The product to which the credentials are bound. */
  productId?: string | undefined
}

const RESOURCES: Record<CredentialKind, { type: string; label: string }> = {
  API_KEY: { type: 'api_key', label: 'API key' },
  MANAGEMENT_TOKEN: { type: 'management_token', label: 'token' },
  ACCESS_TOKEN: { type: 'access_token', label: 'access token' },
}

function eventOf(
  change: 'created' | 'expiring' | 'revoked',
  { kind, memberId }: CredentialFilter,
  resource: ShownCredential,
): NewEvent {
  const { permissions: _, ...apiKey } = resource
  if (kind === 'API_KEY') return { type: `api_key.${change}`, resource: apiKey }
  return { type: `token.${change}`, resource, more: { memberId } }
}

function selectAll(db: Db) {
  return db
    .selectFrom('credentials')
    .leftJoin('credentialUses', 'credentialUses.credentialId', 'credentials.id')
    .select(['id', 'kind', 'name', 'prefix', 'permissions', 'productId', 'expiresAt', 'createdAt', 'createdBy'])
    .select('credentialUses.lastUsedAt')
}

function select({ db, organizationId }: ReadContext, { kind, memberId, productId }: CredentialFilter) {
  return selectAll(db)
    .where('organizationId', '=', organizationId)
    .where('kind', '=', kind)
    .where('revokedAt', 'is', null)
    .$if(memberId !== null, (query) => query.where('memberId', '=', memberId))
    .$if(productId !== undefined, (query) => query.where('productId', '=', productId ?? null))
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
    createdBy: row.createdBy && listedActor(row.createdBy),
    // Only API keys can be bound to a product.
    ...(row.kind === 'API_KEY' && { productId: row.productId }),
  }
}
export type ShownCredential = ReturnType<typeof show>

const SYSTEM = { type: 'SYSTEM' } as const

/** Returns the events about the coming expiry of credentials of all organizations. */
export async function expiringCredentialEvents(db: Db, ids: readonly string[]): Promise<OwnedEvent[]> {
  const rows = await selectAll(db).select(['organizationId', 'memberId']).where('id', 'in', ids).execute()
  return rows.map((row) => {
    const { kind, memberId, organizationId } = row
    return Object.assign(eventOf('expiring', { kind, memberId }, show(row)), { organizationId, actor: SYSTEM })
  })
}

export async function listCredentials(
  context: ReadContext,
  filter: CredentialFilter,
  query: PageQuery,
): Promise<Page<ShownCredential>> {
  const list = {
    name: `${filter.kind} ${filter.memberId ?? ''} ${filter.productId ?? ''}`,
    organizationId: context.organizationId,
  }
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

interface NewCredential {
  name: string
  permissions?: readonly Permission[]
  /** The product that an API key is bound to. */
  productId?: string | null | undefined
  expiresAt?: Date | null | undefined
}

/** The context of a write, with the permissions and the credential that limit what the caller may grant and revoke. */
interface GrantContext extends WriteContext {
  permissions: ReadonlySet<Permission>
  credential: CallerCredential
}

function memberOf({ memberId }: CredentialFilter) {
  return memberId !== null && { memberId }
}

/** Locks the product, so that a concurrent deletion of the product waits, and then revokes the key that this transaction binds to it. */
async function requireProduct({ db, organizationId }: WriteContext, productId: string): Promise<void> {
  const product = await db
    .selectFrom('products')
    .select('id')
    .where('organizationId', '=', organizationId)
    .where('id', '=', productId)
    .forKeyShare()
    .executeTakeFirst()
  if (!product) throw invalid('#/productId', 'must be the id of a product of this organization')
}

/** Creates a credential within the limits of the caller's credential. Throws FORBIDDEN, QUOTA_EXCEEDED and VALIDATORS_OUTDATED. */
export async function grantCredential(
  context: GrantContext,
  filter: CredentialFilter,
  input: NewCredential,
): Promise<ShownCredential & { secret: string }> {
  requireGrantable(input.permissions ?? [], context.permissions)
  if (input.productId) {
    await requireValidatorsWith(context, ['boundKeys'])
    await requireProduct(context, input.productId)
  }
  if (filter.kind !== 'API_KEY') requireNotOutliving(input.expiresAt ?? null, context.credential)
  await requireWithinQuota(context, filter.kind === 'API_KEY' ? 'apiKeys' : 'tokens')
  return addCredential(context, filter, input, context.credential.madeByMember)
}

/** Creates a credential without checking limits and quotas. The returned secret cannot be read again. */
export async function addCredential(
  context: WriteContext,
  filter: CredentialFilter,
  { name, permissions = [], productId = null, expiresAt = null }: NewCredential,
  madeByMember: string | null = null,
): Promise<ShownCredential & { secret: string }> {
  const { secret, prefix, hash } = createSecret(filter.kind)
  const { db, organizationId } = context
  const id = uuidv7()
  const fields = { name, permissions: [...permissions], expiresAt, prefix }
  const maker = { createdBy: toJsonb(context.actor), madeByMember }
  await db
    .insertInto('credentials')
    .values({ id, organizationId, ...filter, ...fields, ...maker, productId, secretHash: hash })
    .execute()
  const { type } = RESOURCES[filter.kind]
  const changes = { ...fields, ...memberOf(filter), ...(productId !== null && { productId }) }
  const created = await readCredential(context, filter, id)
  const event = eventOf('created', filter, created)
  await audit(context, { action: `${type}.created`, resourceType: type, resourceId: id, changes, event })
  return { ...created, secret }
}

/**
 * Revokes a credential. Throws FORBIDDEN when the credential has permissions that the caller lacks, and LAST_CREDENTIAL when no other token
 * manages credentials.
 */
export async function revokeCredential(context: GrantContext, filter: CredentialFilter, id: string): Promise<void> {
  const { kind } = filter
  const { type, label } = RESOURCES[kind]
  await lockManagers(context)
  const row = await select(context, filter).where('id', '=', id).executeTakeFirst()
  if (!row) throw notFound(label)
  if (id !== context.credential.id) requireCovered(label, permissionsOf(row.permissions), context.permissions)
  await revoke(context, [id])
  if (kind !== 'API_KEY') await requireManager(context)
  await deleteOldestRevoked(context)
  const changes = { name: row.name, prefix: row.prefix, ...memberOf(filter) }
  const event = eventOf('revoked', filter, show(row))
  await audit(context, { action: `${type}.revoked`, resourceType: type, resourceId: id, changes, event })
}

async function revoke({ db, organizationId }: WriteContext, ids: readonly string[]): Promise<void> {
  await db
    .updateTable('credentials')
    .set({ revokedAt: new Date() })
    .where('organizationId', '=', organizationId)
    .where('id', 'in', ids)
    .where('revokedAt', 'is', null)
    .execute()
}

/**
 * Revokes the tokens that a member created, directly, through other tokens, or in sessions that the member opened for others. API keys with the same origin stay valid, because a
 * revocation would stop the vendor's apps. Returns the ids of the revoked tokens and of these API keys.
 */
export async function revokeTokensMadeBy(
  context: WriteContext,
  memberId: string,
): Promise<{ revokedTokens: string[]; keptApiKeys: string[] }> {
  const { db, organizationId } = context
  // Revoked tokens lead to valid tokens that were created with them. The member's own tokens are deleted with the member.
  const { rows } = await sql<{ id: string; kind: CredentialKind }>`
    with recursive own as (
      select id, kind, revoked_at, member_id, made_by_member, created_by from credentials
      where organization_id = ${organizationId}
    ), made as (
      select id, kind, revoked_at, member_id from own
      where made_by_member = ${memberId} or member_id = ${memberId}
        or created_by ->> 'memberId' = ${memberId} or created_by -> 'issuedBy' ->> 'memberId' = ${memberId}
      union
      select own.id, own.kind, own.revoked_at, own.member_id from own join made
        on made.id::text in (own.created_by ->> 'id', own.created_by -> 'issuedBy' ->> 'id')
    )
    select id, kind from made where revoked_at is null and member_id is distinct from ${memberId} order by id`.execute(
    db,
  )
  const idsOf = (isApiKey: boolean) => rows.filter(({ kind }) => (kind === 'API_KEY') === isApiKey).map(({ id }) => id)
  const revokedTokens = idsOf(false)
  if (revokedTokens.length > 0) await revoke(context, revokedTokens)
  return { revokedTokens, keptApiKeys: idsOf(true) }
}

const MAX_REVOKED = 1_000

/**
 * Deletes revoked credentials beyond the most recent MAX_REVOKED, even if their retention has not ended. This limits the rows of an
 * organization that creates and revokes credentials in a loop.
 */
async function deleteOldestRevoked({ db, organizationId }: WriteContext): Promise<void> {
  const excess = db
    .selectFrom('credentials')
    .select('id')
    .where('organizationId', '=', organizationId)
    .where('revokedAt', 'is not', null)
    .orderBy('revokedAt', 'desc')
    .offset(MAX_REVOKED)
    .limit(100)
  await db.deleteFrom('credentials').where('organizationId', '=', organizationId).where('id', 'in', excess).execute()
}

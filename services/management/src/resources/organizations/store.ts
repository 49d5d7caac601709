/** Creates, reads, changes and deletes organizations. A new organization gets a signing key, a management token and an API key. */

import {
  ALL_PERMISSIONS,
  type createOrganization,
  type createRecoveryToken,
  type Organization,
  type OrganizationDetails,
  type Plan,
  type Quota,
  type updateOrganization,
  type updateOwnOrganization,
} from '@keyward/contract'
import { type Database, type Json, type JsonObject, uuidv7 } from '@keyward/database'
import { type Selectable, sql } from 'kysely'
import type { z } from 'zod'

import { audit } from '../../audit/writer.ts'
import type { Db, ReadContext, WriteContext } from '../../context.ts'
import { differences } from '../../crud/differences.ts'
import { type PageQuery, selectPage } from '../../http/pagination.ts'
import { ApiError, notFound } from '../../http/problem.ts'
import type { Keyring } from '../../keyring/keyring.ts'
import { showQuotas } from '../../quotas/quotas.ts'
import { addCredential } from '../credentials/store.ts'
import { makeSigningKey } from '../signing-keys/store.ts'

/** The context of a write by the operator, who belongs to no organization. */
type OperatorContext = Omit<WriteContext, 'organizationId'>

type OrganizationRow = Selectable<Database['organizations']>

function show(row: OrganizationRow): Organization {
  const { id, name, plan, suspendedAt, timeZone, accentColor, createdAt, updatedAt } = row
  const times = { createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() }
  return { id, name, plan, suspendedAt: suspendedAt?.toISOString() ?? null, timeZone, accentColor, ...times }
}

export async function listOrganizations(db: Db, query: PageQuery & { name?: string | undefined }) {
  const list = { name: 'organizations', organizationId: '' }
  let select = db.selectFrom('organizations').selectAll()
  if (query.name !== undefined) select = select.where('name', '=', query.name)
  return selectPage(list, query, select, show)
}

async function findOrganization(db: Db, id: string): Promise<OrganizationRow> {
  const row = await db.selectFrom('organizations').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row) throw notFound('organization')
  return row
}

/** Returns the organization without its quotas. */
export async function findSummary(db: Db, id: string): Promise<Organization> {
  return show(await findOrganization(db, id))
}

async function showDetails(db: Db, row: OrganizationRow): Promise<OrganizationDetails> {
  const quotas = await showQuotas({ db, organizationId: row.id }, row)
  return { ...show(row), signsAnswers: row.signsAnswers, quotas }
}

export async function readOrganization(db: Db, id: string): Promise<OrganizationDetails> {
  return showDetails(db, await findOrganization(db, id))
}

export async function addOrganization(
  { db, actor }: OperatorContext,
  keyring: Keyring,
  input: z.output<typeof createOrganization>,
): Promise<Organization & { managementToken: string; apiKey: string }> {
  const id = uuidv7()
  const context = { db, actor, organizationId: id }
  const row = await db
    .insertInto('organizations')
    .values({ id, ...input })
    .returningAll()
    .executeTakeFirstOrThrow()
  await audit(context, { action: 'organization.created', resourceType: 'organization', resourceId: id, changes: input })
  await makeSigningKey(db, keyring, id)
  const token = await addCredential(
    context,
    { kind: 'MANAGEMENT_TOKEN', memberId: null },
    { name: 'first management token', permissions: ALL_PERMISSIONS },
  )
  const apiKey = await addCredential(context, { kind: 'API_KEY', memberId: null }, { name: 'first API key' })
  return { ...show(row), managementToken: token.secret, apiKey: apiKey.secret }
}

/** Returns the explicitly set limits, with the given changes applied. Null removes a limit, so its default applies. */
function changedLimits(
  before: JsonObject,
  given: { [name in Quota]?: number | null | undefined },
): Record<string, Json> {
  const limits = new Map(Object.entries(before))
  for (const [name, limit] of Object.entries(given)) {
    if (limit === null) limits.delete(name)
    else if (limit !== undefined) limits.set(name, limit)
  }
  return Object.fromEntries(limits)
}

export async function changeOrganization(
  { db, actor }: OperatorContext,
  id: string,
  { quotas, ...input }: z.output<typeof updateOrganization> & z.output<typeof updateOwnOrganization>,
): Promise<OrganizationDetails> {
  const before = await db
    .selectFrom('organizations')
    .selectAll()
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirst()
  if (!before) throw notFound('organization')
  const limits = quotas && changedLimits(before.quotas, quotas)
  const changed = differences(before, { ...input, quotas: limits })
  if (changed === null) return showDetails(db, before)
  const row = await db
    .updateTable('organizations')
    .set({ ...changed, quotas: JSON.stringify(limits ?? before.quotas), updatedAt: new Date() })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  // The job that signs delegations signs those of the organization again when the setting is switched on.
  if (changed.signsAnswers === false)
    await db
      .updateTable('signingKeys')
      .set({ delegations: '{}', delegatedAt: null })
      .where('organizationId', '=', id)
      .execute()
  const context = { db, actor, organizationId: id }
  const changes = { ...input, ...(quotas && { quotas }) }
  await audit(context, { action: 'organization.changed', resourceType: 'organization', resourceId: id, changes })
  return showDetails(db, row)
}

/** Suspends the access of an organization to the management API, or restores it. Checks of its licenses are not affected. */
export async function setSuspended(
  { db, actor }: OperatorContext,
  id: string,
  isSuspended: boolean,
): Promise<OrganizationDetails> {
  const row = await db
    .updateTable('organizations')
    .set({ suspendedAt: isSuspended ? new Date() : null, updatedAt: new Date() })
    .where('id', '=', id)
    .where('suspendedAt', isSuspended ? 'is' : 'is not', null)
    .returningAll()
    .executeTakeFirst()
  if (!row) return readOrganization(db, id)
  if (isSuspended) await db.deleteFrom('portalSessions').where('organizationId', '=', id).execute()
  const action = `organization.${isSuspended ? 'suspended' : 'reinstated'}`
  await audit({ db, actor, organizationId: id }, { action, resourceType: 'organization', resourceId: id })
  return showDetails(db, row)
}

/** Creates a management token with every permission, for an organization that has no valid token. The quota does not apply. */
export async function addRecoveryToken(
  { db, actor }: OperatorContext,
  id: string,
  input: z.output<typeof createRecoveryToken>,
) {
  await findOrganization(db, id)
  const context = { db, actor, organizationId: id }
  return addCredential(
    context,
    { kind: 'MANAGEMENT_TOKEN', memberId: null },
    { ...input, permissions: ALL_PERMISSIONS },
  )
}

export async function deleteOrganization({ db, actor }: OperatorContext, id: string): Promise<void> {
  const row = await db.selectFrom('organizations').select('name').where('id', '=', id).forUpdate().executeTakeFirst()
  if (!row) throw notFound('organization')
  const license = await db.selectFrom('licenses').select('id').where('organizationId', '=', id).limit(1).execute()
  if (license.length > 0) throw new ApiError('IN_USE', 'The organization has licenses. Delete them first.')
  await db.deleteFrom('organizations').where('id', '=', id).execute()
  const context = { db, actor, organizationId: id }
  await audit(context, { action: 'organization.deleted', resourceType: 'organization', resourceId: id, changes: row })
}

/** The number of unexpired access rules that a plan allows (docs/api.md#r7), or null for any number. */
export const RULE_LIMITS: Record<Plan, number | null> = { FREE: 10, LITE: 500, STANDARD: null }

export async function countUnexpiredRules(db: Db, organizationId: string): Promise<number> {
  const { used } = await db
    .selectFrom('accessRules')
    .select((builder) => builder.fn.countAll<number>().as('used'))
    .where('organizationId', '=', organizationId)
    .where((builder) => builder.or([builder('expiresAt', 'is', null), builder('expiresAt', '>', sql<Date>`now()`)]))
    .executeTakeFirstOrThrow()
  return used
}

export async function readOwnOrganization(
  { db, organizationId }: ReadContext,
  { mailEnabled }: { mailEnabled: boolean },
) {
  const row = await findOrganization(db, organizationId)
  const { id, name, plan, timeZone, accentColor, signsAnswers, quotas, createdAt } = await showDetails(db, row)
  const { mailSenderName, mailReplyTo, mailKeys, mailEndingDays, mailPortal } = row
  const mail = { mailSenderName, mailReplyTo, mailKeys, mailPortal, mailEndingDays, mailEnabled }
  const used = await countUnexpiredRules(db, organizationId)
  const usage = { rules: { used, limit: RULE_LIMITS[plan] } }
  return { id, name, plan, timeZone, accentColor, signsAnswers, ...mail, usage, quotas, createdAt }
}

/** Licenses in the database: reading, filtering, adding, changing, deleting. Adding many is one statement. */
import { type CreateLicense, isWholePolicy, type License, POLICY_RULE, type updateLicense } from '@keyward/contract'
import { uuidv7, violatedConstraint } from '@keyward/database'
import { sql } from 'kysely'
import type { z } from 'zod'

import { audit, type Change, recordChange } from '../../audit/writer.ts'
import { differences, storable } from '../../crud/differences.ts'
import type { Db } from '../../http/context.ts'
import { type PageQuery, readPage } from '../../http/pagination.ts'
import { type Fault, invalid, invalidAll, notFound, Refusal } from '../../http/problem.ts'
import { rulesGoingAlong } from '../access-rules/cascade.ts'
import { generateLicenseKey } from './key.ts'
import { type LicenseRow, selectLicenses, showLicense } from './show.ts'

export interface LicenseQuery extends PageQuery {
  productId?: string | undefined
  customerId?: string | undefined
  status?: License['status'] | undefined
  key?: string | undefined
}

/** The stored counterpart of an effective status. */
function statusCondition(status: License['status']) {
  switch (status) {
    case 'active':
      return sql<boolean>`licenses.status = 'active' and (licenses.expires_at is null or licenses.expires_at > now())`
    case 'expired':
      return sql<boolean>`licenses.status = 'active' and licenses.expires_at <= now()`
    case 'suspended':
    case 'revoked':
      return sql<boolean>`licenses.status = ${status}`
    default:
      return status satisfies never
  }
}

export async function listLicenses(db: Db, organizationId: string, query: LicenseQuery) {
  const list = { name: 'licenses', organizationId }
  const { productId, customerId, status, key } = query
  let select = selectLicenses(db, organizationId)
  if (productId !== undefined) select = select.where('licenses.productId', '=', productId)
  if (customerId !== undefined) select = select.where('licenses.customerId', '=', customerId)
  if (key !== undefined) select = select.where('licenses.key', '=', key)
  if (status !== undefined) select = select.where(statusCondition(status))
  return readPage(list, query, select, showLicense, 'licenses.id')
}

export async function readLicenseRow(db: Db, organizationId: string, id: string): Promise<LicenseRow> {
  const row = await selectLicenses(db, organizationId).where('licenses.id', '=', id).executeTakeFirst()
  if (!row) throw notFound('license')
  return row
}

/** As `readLicenseRow`, and nobody else changes the license until the transaction ends. */
export async function lockLicenseRow(db: Db, organizationId: string, id: string): Promise<LicenseRow> {
  const row = await selectLicenses(db, organizationId)
    .where('licenses.id', '=', id)
    .forNoKeyUpdate('licenses')
    .executeTakeFirst()
  if (!row) throw notFound('license')
  return row
}

type Parent = 'products' | 'customers'

async function existing(db: Db, organizationId: string, table: Parent, ids: Iterable<string>): Promise<Set<string>> {
  const wanted = [...new Set(ids)]
  const rows = await db
    .selectFrom(table)
    .select('id')
    .where('organizationId', '=', organizationId)
    .where('id', '=', sql<string>`any(${wanted}::uuid[])`)
    .execute()
  return new Set(rows.map((row) => row.id))
}

/** Every reference to a product or customer that the organization does not have. */
export async function missingParents(
  db: Db,
  organizationId: string,
  rows: readonly { productId: string; customerId: string; pointer: string }[],
): Promise<Fault[]> {
  const products = await existing(
    db,
    organizationId,
    'products',
    rows.map((row) => row.productId),
  )
  const customers = await existing(
    db,
    organizationId,
    'customers',
    rows.map((row) => row.customerId),
  )
  return rows.flatMap(({ productId, customerId, pointer }) => [
    ...(products.has(productId)
      ? []
      : [{ pointer: `${pointer}/productId`, detail: 'is not a product of this organization' }]),
    ...(customers.has(customerId)
      ? []
      : [{ pointer: `${pointer}/customerId`, detail: 'is not a customer of this organization' }]),
  ])
}

export interface NewLicense extends CreateLicense {
  id: string
  key: string
}

export async function insertLicenses({ db, organizationId }: Change, rows: readonly NewLicense[]): Promise<void> {
  const column = <Value>(pick: (row: NewLicense) => Value): Value[] => rows.map(pick)
  await sql`
    insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines, expires_at, metadata)
    select n.id, ${organizationId}, n.product_id, n.customer_id, n.key, n.policy_type, n.max_machines, n.expires_at, n.metadata
    from unnest(
      ${column((row) => row.id)}::uuid[], ${column((row) => row.productId)}::uuid[], ${column((row) => row.customerId)}::uuid[],
      ${column((row) => row.key)}::text[], ${column((row) => row.policy.type)}::text[],
      ${column((row) => row.policy.maxMachines)}::integer[], ${column((row) => row.policy.expiresAt)}::timestamptz[],
      ${column((row) => JSON.stringify(row.metadata ?? {}))}::jsonb[]
    ) as n (id, product_id, customer_id, key, policy_type, max_machines, expires_at, metadata)`.execute(db)
}

export function refuseTakenKey(error: unknown): never {
  throw violatedConstraint(error) === 'licenses_organization_id_key_key' ? new Refusal('LICENSE_KEY_EXISTS') : error
}

export async function addLicense(change: Change, input: CreateLicense): Promise<License> {
  const { db, organizationId } = change
  const faults = await missingParents(db, organizationId, [{ ...input, pointer: '#' }])
  if (faults.length > 0) throw invalidAll(faults)
  const row = { ...input, id: uuidv7(), key: input.key ?? generateLicenseKey() }
  await insertLicenses(change, [row]).catch(refuseTakenKey)
  await audit(change, { action: 'license.created', resourceType: 'license', resourceId: row.id, changes: input })
  await recordChange(change, 'LICENSE_CREATED', [row.id])
  return showLicense(await readLicenseRow(db, organizationId, row.id))
}

/** The given fields of the policy are merged, and the whole must be valid. */
export async function changeLicense(
  change: Change,
  id: string,
  input: z.output<typeof updateLicense>,
): Promise<License> {
  const { db, organizationId } = change
  const row = await lockLicenseRow(db, organizationId, id)
  const { type = row.policyType, maxMachines = row.maxMachines, expiresAt = row.expiresAt } = input.policy ?? {}
  if (!isWholePolicy({ type, expiresAt })) throw invalid('#/policy/expiresAt', POLICY_RULE)
  const { productId = row.productId, customerId = row.customerId, metadata } = input
  const faults = await missingParents(db, organizationId, [{ productId, customerId, pointer: '#' }])
  if (faults.length > 0) throw invalidAll(faults)
  const changed = differences(row, { productId, customerId, policyType: type, maxMachines, expiresAt, metadata })
  if (changed === null) return showLicense(row)
  await db
    .updateTable('licenses')
    .set({ ...storable(changed), updatedAt: new Date() })
    .where('id', '=', id)
    .execute()
  await audit(change, { action: 'license.changed', resourceType: 'license', resourceId: id, changes: input })
  await recordChange(change, 'LICENSE_CHANGED', [id])
  return showLicense(await readLicenseRow(db, organizationId, id))
}

/** Its machines, alerts and the access rules scoped to it go along. */
export async function deleteLicense(change: Change, id: string): Promise<void> {
  const { db, organizationId } = change
  const row = await db
    .selectFrom('licenses')
    .select('key')
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  if (!row) throw notFound('license')
  const changes = { ...row, ...(await rulesGoingAlong(change, 'licenseId', id)) }
  await db.deleteFrom('licenses').where('id', '=', id).execute()
  await audit(change, { action: 'license.deleted', resourceType: 'license', resourceId: id, changes })
}

/** Customers in the database. A merged customer is gone; its id answers where it went. */
import type { createCustomer, Customer, updateCustomer } from '@keyward/contract'
import { type Database, uuidv7, violatedConstraint } from '@keyward/database'
import { type Selectable, sql } from 'kysely'
import type { z } from 'zod'

import { audit, type Change } from '../../audit/writer.ts'
import { differences, storable } from '../../crud/differences.ts'
import type { Db } from '../../http/context.ts'
import { type PageQuery, readPage } from '../../http/pagination.ts'
import { notFound, Refusal } from '../../http/problem.ts'
import { rulesGoingAlong } from '../access-rules/cascade.ts'

export type CustomerRow = Selectable<Database['customers']>

export function showCustomer(row: CustomerRow): Customer {
  const { id, email, name, externalId, metadata } = row
  const createdAt = row.createdAt.toISOString()
  return { id, email, name, externalId, metadata, createdAt, updatedAt: row.updatedAt.toISOString() }
}

export interface CustomerQuery extends PageQuery {
  email?: string | undefined
  externalId?: string | undefined
}

export async function listCustomers(db: Db, organizationId: string, query: CustomerQuery) {
  const list = { name: 'customers', organizationId }
  const { email, externalId } = query
  let select = db.selectFrom('customers').selectAll().where('organizationId', '=', organizationId)
  if (email !== undefined) select = select.where(sql`lower(email)`, '=', sql`lower(${email})`)
  if (externalId !== undefined) select = select.where('externalId', '=', externalId)
  return readPage(list, query, select, showCustomer)
}

/** Refuses with NOT_FOUND, which names the remaining customer when this one was merged. */
export async function refuseMissingCustomer(db: Db, organizationId: string, id: string): Promise<never> {
  const merged = await db
    .selectFrom('mergedCustomers')
    .select('mergedInto')
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
  if (!merged) throw notFound('customer')
  const { mergedInto } = merged
  throw new Refusal('NOT_FOUND', `The customer was merged into ${mergedInto}.`, { mergedInto })
}

export async function readCustomer(db: Db, organizationId: string, id: string): Promise<Customer> {
  const row = await db
    .selectFrom('customers')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row ? showCustomer(row) : refuseMissingCustomer(db, organizationId, id)
}

function refuseTakenExternalId(error: unknown): never {
  throw violatedConstraint(error) === 'customers_organization_id_external_id_key'
    ? new Refusal('EXTERNAL_ID_EXISTS')
    : error
}

export async function addCustomer(change: Change, input: z.output<typeof createCustomer>): Promise<Customer> {
  const { email, name = null, externalId = null, metadata = {} } = input
  const { db, organizationId } = change
  const row = await db
    .insertInto('customers')
    .values({ id: uuidv7(), organizationId, email, name, externalId, metadata: JSON.stringify(metadata) })
    .returningAll()
    .executeTakeFirstOrThrow()
    .catch(refuseTakenExternalId)
  await audit(change, { action: 'customer.created', resourceType: 'customer', resourceId: row.id, changes: input })
  return showCustomer(row)
}

export async function changeCustomer(
  change: Change,
  id: string,
  input: z.output<typeof updateCustomer>,
): Promise<Customer> {
  const { db, organizationId } = change
  const before = await db
    .selectFrom('customers')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirst()
  if (!before) return refuseMissingCustomer(db, organizationId, id)
  const changed = differences(before, input)
  if (changed === null) return showCustomer(before)
  const row = await db
    .updateTable('customers')
    .set({ ...storable(changed), updatedAt: new Date() })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
    .catch(refuseTakenExternalId)
  await audit(change, { action: 'customer.changed', resourceType: 'customer', resourceId: id, changes: input })
  return showCustomer(row)
}

export async function deleteCustomer(change: Change, id: string): Promise<void> {
  const { db, organizationId } = change
  const row = await db
    .selectFrom('customers')
    .select(['email', 'name', 'externalId'])
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  if (!row) return refuseMissingCustomer(db, organizationId, id)
  const changes = { ...row, ...(await rulesGoingAlong(change, 'customerId', id)) }
  await db
    .deleteFrom('customers')
    .where('id', '=', id)
    .execute()
    .catch((error: unknown) => {
      throw violatedConstraint(error).startsWith('licenses_')
        ? new Refusal('IN_USE', 'The customer has licenses.')
        : error
    })
  await audit(change, { action: 'customer.deleted', resourceType: 'customer', resourceId: id, changes })
}

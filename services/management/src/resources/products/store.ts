/** Products in the database. A product that still has licenses cannot be deleted; rules scoped to it go with it. */
import type { createProduct, Product, updateProduct } from '@keyward/contract'
import { type Database, uuidv7, violatedConstraint } from '@keyward/database'
import type { Selectable } from 'kysely'
import type { z } from 'zod'

import { audit, type Change } from '../../audit/writer.ts'
import { differences, storable } from '../../crud/differences.ts'
import type { Db } from '../../http/context.ts'
import { type PageQuery, readPage } from '../../http/pagination.ts'
import { notFound, Refusal } from '../../http/problem.ts'
import { rulesGoingAlong } from '../access-rules/cascade.ts'

function show(row: Selectable<Database['products']>): Product {
  const { id, name, metadata } = row
  return { id, name, metadata, createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString() }
}

export async function listProducts(db: Db, organizationId: string, query: PageQuery) {
  const list = { name: 'products', organizationId }
  const select = db.selectFrom('products').selectAll().where('organizationId', '=', organizationId)
  return readPage(list, query, select, show)
}

export async function readProduct(db: Db, organizationId: string, id: string): Promise<Product> {
  const row = await db
    .selectFrom('products')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw notFound('product')
  return show(row)
}

export async function addProduct(change: Change, input: z.output<typeof createProduct>): Promise<Product> {
  const { name, metadata = {} } = input
  const row = await change.db
    .insertInto('products')
    .values({ id: uuidv7(), organizationId: change.organizationId, name, metadata: JSON.stringify(metadata) })
    .returningAll()
    .executeTakeFirstOrThrow()
  await audit(change, { action: 'product.created', resourceType: 'product', resourceId: row.id, changes: input })
  return show(row)
}

export async function changeProduct(
  change: Change,
  id: string,
  input: z.output<typeof updateProduct>,
): Promise<Product> {
  const { db, organizationId } = change
  const before = await db
    .selectFrom('products')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirst()
  if (!before) throw notFound('product')
  const changed = differences(before, input)
  if (changed === null) return show(before)
  const row = await db
    .updateTable('products')
    .set({ ...storable(changed), updatedAt: new Date() })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await audit(change, { action: 'product.changed', resourceType: 'product', resourceId: id, changes: input })
  return show(row)
}

export async function deleteProduct(change: Change, id: string): Promise<void> {
  const { db, organizationId } = change
  const row = await db
    .selectFrom('products')
    .select('name')
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  if (!row) throw notFound('product')
  const changes = { ...row, ...(await rulesGoingAlong(change, 'productId', id)) }
  await db
    .deleteFrom('products')
    .where('id', '=', id)
    .execute()
    .catch((error: unknown) => {
      throw violatedConstraint(error).startsWith('licenses_')
        ? new Refusal('IN_USE', 'The product has licenses.')
        : error
    })
  await audit(change, { action: 'product.deleted', resourceType: 'product', resourceId: id, changes })
}

/**
 * Defines the endpoints of products. A product that has licenses cannot be deleted. Deleting a product also deletes its access rules and
 * revokes the API keys that are bound to it.
 */

import { storedEntitlements } from '@keyward/contract'
import { type Product, products as operations, type updateProduct } from '@keyward/contract/management/products'
import type { z } from 'zod'

import type { WriteContext } from '../../context.ts'
import { changeRow, deleteRow, insertRow, listRows, type OwnedRows, readRow } from '../../crud/owned-rows.ts'
import { implement } from '../../operations/implement.ts'
import { deletedRules } from '../access-rules/cascade.ts'
import { requireDefaultsFit, requireSwitches } from './entitlements.ts'

export const productRows: OwnedRows<'products', Product> = {
  table: 'products',
  type: 'product',
  quota: 'products',
  events: { created: 'product.created', updated: 'product.updated', deleted: 'product.deleted' },
  show: ({ id, name, entitlements, metadata, createdAt, updatedAt }) => ({
    id,
    name,
    entitlements: entitlements ?? {},
    metadata,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }),
  conflicts: {
    licenses_organization_id_product_id_fkey: {
      code: 'IN_USE',
      detail: 'The product has licenses. Delete them or move them to another product first.',
    },
  },
}

type Update = z.output<typeof updateProduct>

async function changeProduct(context: WriteContext, id: string, input: Update): Promise<Product> {
  const given = { ...input, entitlements: storedEntitlements(input.entitlements) }
  return changeRow(productRows, context, id, given, async () => {
    if (!given.entitlements) return
    await requireSwitches(context, [given.entitlements])
    await requireDefaultsFit(context, id, given.entitlements)
  })
}

/** Returns the access rules that are deleted and the API keys that are revoked with a product. A trigger revokes the keys. */
async function dependents(context: WriteContext, id: string): Promise<object> {
  const { db, organizationId } = context
  const keys = await db
    .selectFrom('credentials')
    .select('id')
    .where('organizationId', '=', organizationId)
    .where('productId', '=', id)
    .where('revokedAt', 'is', null)
    .orderBy('id')
    .execute()
  const revoked = keys.length > 0 && { revokedApiKeys: keys.map((row) => row.id) }
  return { ...(await deletedRules('productId')(context, id)), ...revoked }
}

const tag = { name: 'Products', description: 'The products that licenses are for.' }

export const products = implement(tag, operations, {
  listProducts: { summary: 'List products', handle: (call) => listRows(productRows, call, call.query) },
  createProduct: {
    summary: 'Create a product',
    handle: async (call) => {
      await requireSwitches(call, [call.body.entitlements ?? {}])
      return insertRow(productRows, call, { ...call.body, entitlements: storedEntitlements(call.body.entitlements) })
    },
  },
  readProduct: { summary: 'Read a product', handle: (call) => readRow(productRows, call, call.params.id) },
  updateProduct: {
    summary: 'Change a product',
    description: 'New `entitlements` replace the former ones, and apply to all licenses of the product at once.',
    handle: (call) => changeProduct(call, call.params.id, call.body),
  },
  deleteProduct: {
    summary: 'Delete a product',
    description: 'Also deletes the access rules of the product, and revokes the API keys that are bound to it.',
    errors: ['IN_USE'],
    handle: (call) => deleteRow(productRows, call, call.params.id, { audited: productRows.show, cascade: dependents }),
  },
})

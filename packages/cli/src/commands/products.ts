/** The commands for products: `product create`, `product list`, `product entitle`, `product delete`. */

import { type Product, products } from '@keyward/contract/management/products'

import type { CliCommand } from '../command.ts'
import { describe } from '../output.ts'
import { addDeletion } from './deletion.ts'
import { describeEntitlements, grantsOf, withEntitlements } from './entitlements.ts'
import { addList } from './lists.ts'
import { versionOf, withVersion } from './version.ts'
import { printChange, waitOf, withWait } from './wait.ts'

export function addProductCommands(parent: CliCommand): void {
  const group = parent.command('product').description('products, to which licenses belong')
  withEntitlements(group.command('create').description('create a product'), 'a default entitlement of its licenses')
    .argument('<name>', 'the name of the product')
    .run(async ({ api, output }, flags, name: string) => {
      const body = { name, ...grantsOf(flags) }
      const { data } = await api.call(products.createProduct, { body })
      output.result(data, describeProduct(data))
    })
  const entitle = group.command('entitle').description('replace the default entitlements of a product')
  withVersion(withWait(withEntitlements(entitle, 'a default entitlement of its licenses; none without this option')))
    .argument('<id>', 'the id of the product')
    .run(async (session, flags, id: string) => {
      const body = { entitlements: {}, ...grantsOf(flags) }
      const options = { ...waitOf(flags), ...versionOf(flags) }
      const changed = await session.api.call(products.updateProduct, { params: { id }, body }, options)
      printChange(session, changed, describeProduct(changed.data))
    })
  addList(group, products.listProducts, 'products', (one) => ({
    ID: one.id,
    NAME: one.name,
    CREATED: one.createdAt,
  }))
  const consequence = 'not possible while the product has licenses'
  addDeletion(group, { verb: 'delete', noun: 'a product', operation: products.deleteProduct, consequence })
}

function describeProduct({ id, name, entitlements, createdAt }: Product): string {
  return describe({ id, name, ...describeEntitlements(entitlements), created: createdAt })
}

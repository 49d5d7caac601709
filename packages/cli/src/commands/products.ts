/** The commands for products: `product create`, `product list`, `product entitle`, `product delete`. */

import { type Product, product } from '@keyward/contract/management/products'
import type { Command } from 'commander'

import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { addDeletion } from './deletion.ts'
import { describeEntitlements, entitlementsOf, withEntitlements } from './entitlements.ts'
import { fetchList, listFlags, printList, withLimit } from './lists.ts'
import { describeApplied, waitOf, withWait } from './wait.ts'

export function addProductCommands(parent: Command, open: (command: Command) => Session): void {
  const group = parent.command('product').description('products, to which licenses belong')
  withEntitlements(group.command('create').description('create a product'), 'a default entitlement of its licenses')
    .argument('<name>', 'the name of the product')
    .action(async (name: string, flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const body = { name, ...entitlementsOf(flags) }
      const { data } = await api.call({ method: 'POST', path: '/products', body }, product)
      output.result(data, describeProduct(data))
    })
  const entitle = group.command('entitle').description('replace the default entitlements of a product')
  withWait(withEntitlements(entitle, 'a default entitlement of its licenses; none without this option'))
    .argument('<id>', 'the id of the product')
    .action(async (id: string, flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const body = { entitlements: {}, ...entitlementsOf(flags) }
      const path = `/products/${encodeURIComponent(id)}`
      const { data, appliedBy } = await api.call({ method: 'PATCH', path, body, ...waitOf(flags) }, product)
      const applied = describeApplied(appliedBy)
      const printed = [describeProduct(data), applied].filter((part) => part !== null).join('\n\n')
      output.result({ ...data, appliedBy }, printed)
    })
  withLimit(group.command('list').description('list products, newest first')).action(
    async (flags: unknown, command: Command) => {
      const session = open(command)
      const { limit } = listFlags.parse(flags)
      const list = await fetchList(session.api, '/products', product, limit)
      printList(session, list, ['ID', 'NAME', 'CREATED'], (one) => [one.id, one.name, one.createdAt])
    },
  )
  const consequence = 'not possible while the product has licenses'
  addDeletion(group, open, { verb: 'delete', noun: 'a product', path: '/products', consequence })
}

function describeProduct({ id, name, entitlements, createdAt }: Product): string {
  return describe({ id, name, ...describeEntitlements(entitlements), created: createdAt })
}

/** `product create`, `product list`, `product delete`. */

import { product } from '@keyward/contract/management/products'
import type { Command } from 'commander'

import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { addDeletion } from './deletion.ts'
import { fetchList, listFlags, printList, withLimit } from './lists.ts'

export function addProductCommands(parent: Command, open: (command: Command) => Session): void {
  const group = parent.command('product').description('products: what licenses are for')
  group
    .command('create')
    .description('create a product')
    .argument('<name>', 'the name of the product')
    .action(async (name: string, _flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const { data } = await api.call({ method: 'POST', path: '/products', body: { name } }, product)
      output.result(data, describe({ id: data.id, name: data.name, created: data.createdAt }))
    })
  withLimit(group.command('list').description('list products, newest first')).action(
    async (flags: unknown, command: Command) => {
      const session = open(command)
      const { limit } = listFlags.parse(flags)
      const list = await fetchList(session.api, '/products', product, limit)
      printList(session, list, ['ID', 'NAME', 'CREATED'], (one) => [one.id, one.name, one.createdAt])
    },
  )
  const consequence = 'not possible while it has licenses'
  addDeletion(group, open, { verb: 'delete', noun: 'a product', path: '/products', consequence })
}

/** The commands for customers: `customer create`, `customer list`, `customer merge`, `customer delete`. */

import { type Customer, customers } from '@keyward/contract'
import type { Command } from 'commander'
import { z } from 'zod'

import { perform } from '../api.ts'
import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { addDeletion } from './deletion.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'

const createFlags = z.object({ name: z.string().optional(), externalId: z.string().optional() })
const filterFlags = listFlags.extend({ email: z.string().optional(), externalId: z.string().optional() })

export function addCustomerCommands(parent: Command, open: (command: Command) => Session): void {
  const group = parent.command('customer').description('customers: the owners of licenses')
  group
    .command('create')
    .description('create a customer')
    .argument('<email>', 'the e-mail address')
    .option('--name <name>', 'the name')
    .option('--external-id <id>', 'the unique id in your own system')
    .action(async (email: string, flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const body = { email, ...createFlags.parse(flags) }
      const { data } = await perform(api, customers.createCustomer, { body })
      output.result(data, describeCustomer(data))
    })
  withLimit(group.command('list').description('list customers, newest first'))
    .option('--email <address>', 'only customers with this e-mail address')
    .option('--external-id <id>', 'only the customer with this id in your own system')
    .action(async (flags: unknown, command: Command) => {
      const session = open(command)
      const { limit, ...query } = filterFlags.parse(flags)
      const list = await readList(session.api, customers.listCustomers, limit, query)
      const heading = ['ID', 'E-MAIL', 'NAME', 'EXTERNAL ID', 'CREATED']
      printList(session, list, heading, (one) => [
        one.id,
        one.email,
        one.name ?? '–',
        one.externalId ?? '–',
        one.createdAt,
      ])
    })
  group
    .command('merge')
    .description('move the licenses and rules of a customer to another customer, and delete the former customer')
    .argument('<id>', 'the id of the customer to delete')
    .argument('<into>', 'the id of the customer that remains')
    .action(async (id: string, into: string, _flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const { data } = await perform(api, customers.mergeCustomer, { params: { id }, body: { into } })
      output.result(data, describeCustomer(data))
    })
  const consequence = 'not possible while the customer has licenses'
  addDeletion(group, open, { verb: 'delete', noun: 'a customer', path: '/customers', consequence })
}

function describeCustomer({ id, email, name, externalId, createdAt }: Customer): string {
  return describe({ id, 'e-mail': email, name, 'external id': externalId, created: createdAt })
}

/** The commands for customers, such as `customer create` and `customer portal`. */

import { type Customer, customers } from '@keyward/contract'
import { type PortalAction, portalSessions } from '@keyward/contract/management/portal'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { describe } from '../output.ts'
import { addDeletion } from './deletion.ts'
import { isExported, withExport } from './export.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'
import { printChange, waitOf, withWait } from './wait.ts'

const createFlags = z.object({ name: z.string().optional(), externalId: z.string().optional() })
const filterFlags = listFlags.extend({ email: z.string().optional(), externalId: z.string().optional() })
const portalFlags = z.object({
  release: z.boolean().default(false),
  files: z.boolean().default(false),
  returnUrl: z.string().optional(),
})

export function addCustomerCommands(parent: CliCommand): void {
  const group = parent.command('customer').description('customers: the owners of licenses')
  group
    .command('create')
    .description('create a customer')
    .argument('<email>', 'the e-mail address')
    .option('--name <name>', 'the name')
    .option('--external-id <id>', 'the unique id in your own system')
    .run(async ({ api, output }, flags, email: string) => {
      const body = { email, ...createFlags.parse(flags) }
      const { data } = await api.call(customers.createCustomer, { body })
      output.result(data, describeCustomer(data))
    })
  withExport(withLimit(group.command('list').description('list customers, newest first')))
    .option('--email <address>', 'only customers with this e-mail address')
    .option('--external-id <id>', 'only the customer with this id in your own system')
    .run(async (session, flags) => {
      const { limit, ...query } = filterFlags.parse(flags)
      if (await isExported(session, flags, customers.exportCustomers, query)) return
      const list = await readList(session.api, customers.listCustomers, { query }, limit)
      printList(session, list, (one) => ({
        ID: one.id,
        'E-MAIL': one.email,
        NAME: one.name ?? '–',
        'EXTERNAL ID': one.externalId ?? '–',
        CREATED: one.createdAt,
      }))
    })
  const merge = group.command('merge')
  withWait(
    merge.description('move the licenses and rules of a customer to another customer, and delete the former one'),
  )
    .argument('<id>', 'the id of the customer to delete')
    .argument('<into>', 'the id of the customer that remains')
    .run(async (session, flags, id: string, into: string) => {
      const input = { params: { id }, body: { into } }
      const merged = await session.api.call(customers.mergeCustomer, input, waitOf(flags))
      printChange(session, merged, describeCustomer(merged.data))
    })
  group
    .command('portal')
    .description('create a link with which the customer opens the portal once, within 15 minutes')
    .argument('<id>', 'the id of the customer')
    .option('--release', 'the customer may free slots')
    .option('--files', 'the customer may issue files for machines without a network')
    .option('--return-url <url>', 'the page of yours to which the portal links back')
    .run(async ({ api, output }, flags, customerId: string) => {
      const { release, files, ...fields } = portalFlags.parse(flags)
      const actions: PortalAction[] = [...(release ? ['release' as const] : []), ...(files ? ['files' as const] : [])]
      const { data } = await api.call(portalSessions.createPortalSession, { body: { customerId, actions, ...fields } })
      output.result(data, describe({ link: data.url ?? null, 'opens until': data.expiresAt }))
    })
  group
    .command('portal-end')
    .description('end all links and sessions of a customer in the portal')
    .argument('<id>', 'the id of the customer')
    .run(async ({ api, output }, _flags, id: string) => {
      await api.call(portalSessions.endPortalSessions, { params: { id } })
      output.result({ ended: id }, `Ended the links and sessions of ${id}.`)
    })
  const consequence = 'not possible while the customer has licenses'
  addDeletion(group, { verb: 'delete', noun: 'a customer', operation: customers.deleteCustomer, consequence })
}

function describeCustomer({ id, email, name, externalId, createdAt }: Customer): string {
  return describe({ id, 'e-mail': email, name, 'external id': externalId, created: createdAt })
}

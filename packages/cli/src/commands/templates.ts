import {
  ORDER_DEFAULTS,
  orderOptions,
  type OrderOptions,
  type Template,
  templates,
} from '@keyward/contract/management/templates'
import { Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { describe } from '../output.ts'
import { addDeletion } from './deletion.ts'
import { describeEntitlements, entitlementsOf, withEntitlements } from './entitlements.ts'
import { expiryOf, fileLifetimeOf } from './license-format.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'
import { termsOf, withTerms } from './terms.ts'

const sales = z.object({
  price: z.array(z.string()).optional(),
  orderQuantity: orderOptions.shape.quantity.unwrap().optional(),
  onRefund: orderOptions.shape.refund.unwrap().optional(),
  onDispute: orderOptions.shape.dispute.unwrap().optional(),
})

/** Adds the options of `salesOf`. */
function withSales(command: CliCommand): CliCommand {
  return command
    .option('--price <id>', 'a price of a shop that sells the template (repeatable)', collect)
    .addOption(
      new Option('--order-quantity <effect>', 'whether a quantity creates several licenses, or more machines').choices([
        'licenses',
        'machines',
      ]),
    )
    .addOption(new Option('--on-refund <effect>', 'the effect of a refund').choices(['revoke', 'none']))
    .addOption(new Option('--on-dispute <effect>', 'the effect of a dispute').choices(['suspend', 'none']))
}

function collect(id: string, before: readonly string[] | undefined): string[] {
  return [...(before ?? []), id]
}

/** Returns the members of a body for the options of `withSales`. The given effects complete the present ones. */
function salesOf(flags: unknown, present: OrderOptions = ORDER_DEFAULTS) {
  const { price, orderQuantity, onRefund, onDispute } = sales.parse(flags)
  const { quantity, refund, dispute } = present
  const orders = {
    quantity: orderQuantity ?? quantity,
    refund: onRefund ?? refund,
    dispute: onDispute ?? dispute,
  }
  return { ...(price !== undefined && { priceIds: price }), orders }
}

export function addTemplateCommands(parent: CliCommand): void {
  const group = parent.command('template').description('templates, whose terms new licenses copy')
  const create = group.command('create').description('create a template, which is perpetual without --type')
  withEntitlements(
    withSales(withTerms(create)),
    "an override of the product's entitlements, or null to remove a default",
  )
    .argument('<name>', 'the name of the template')
    .requiredOption('--product <id>', 'the product')
    .run(async ({ api, output }, flags, name: string) => {
      const { product: id } = z.object({ product: z.string() }).parse(flags)
      const { type = 'PERPETUAL', ...terms } = termsOf(flags)
      const body = { name, policy: { type, ...terms }, ...entitlementsOf(flags), ...salesOf(flags) }
      const { data } = await api.call(templates.createTemplate, { params: { id }, body })
      output.result(data, describeTemplate(data))
    })
  group
    .command('show')
    .description('show a template, and the progress of its latest application')
    .argument('<id>', 'the id of the template')
    .run(async ({ api, output }, _flags, id: string) => {
      const { data } = await api.call(templates.readTemplate, { params: { id } })
      output.result(data, describeTemplate(data))
    })
  withLimit(group.command('list').description('list the templates of a product, newest first'))
    .argument('<product>', 'the id of the product')
    .run(async (session, flags, id: string) => {
      const { limit } = listFlags.parse(flags)
      const list = await readList(session.api, templates.listTemplates, { params: { id } }, limit)
      printList(session, list, (one) => ({ NAME: one.name, TYPE: one.policy.type, ENDS: endOf(one), ID: one.id }))
    })
  const change = group.command('change').description('change a template; its licenses stay until it is applied')
  withEntitlements(withSales(withTerms(change)), 'an override; the given ones replace all others')
    .argument('<id>', 'the id of the template')
    .option('--name <name>', 'a new name')
    .run(async ({ api, output }, flags, id: string) => {
      const { name } = z.object({ name: z.string().optional() }).parse(flags)
      const present = (await api.call(templates.readTemplate, { params: { id } })).data.orders
      const named = name === undefined ? {} : { name }
      const body = { ...named, policy: termsOf(flags), ...entitlementsOf(flags), ...salesOf(flags, present) }
      const { data } = await api.call(templates.updateTemplate, { params: { id }, body })
      output.result(data, describeTemplate(data))
    })
  group
    .command('apply')
    .description('change the licenses that still have a former value of the template')
    .argument('<id>', 'the id of the template')
    .option('--dry-run', 'only show the effect')
    .run(async ({ api, output }, flags, id: string) => {
      const { dryRun } = z.object({ dryRun: z.boolean().default(false) }).parse(flags)
      const { data } = await api.call(templates.applyTemplate, { params: { id }, body: { dryRun } })
      const { total, changed, kept, examples } = data
      const lines = [
        `${changed} of ${total} licenses ${dryRun ? 'would change' : 'are being changed'}.`,
        ...(kept === 0 ? [] : [`${kept} keep a value of their own, for example:`]),
        ...examples.kept.map(({ key, fields }) => `  ${key}  ${fields.join(', ')}`),
        ...(dryRun ? [] : [`"template show ${id}" shows the progress.`]),
      ]
      output.result(data, lines.join('\n'))
    })
  const consequence = 'not possible while licenses have the template'
  addDeletion(group, { verb: 'delete', noun: 'a template', operation: templates.deleteTemplate, consequence })
}

function endOf({ policy }: Template): string {
  if (policy.type === 'PERPETUAL') return 'never'
  return policy.durationDays === null ? 'set for each license' : expiryOf({ ...policy, expiresAt: null })
}

function describeTemplate(shown: Template): string {
  const { id, name, productId, policy, entitlements, unapplied, application } = shown
  return describe({
    id,
    name,
    product: productId,
    type: policy.type,
    ends: endOf(shown),
    machines: String(policy.maxMachines ?? 'any number'),
    grace: `${policy.graceDays} days`,
    files: fileLifetimeOf(policy),
    ...describeEntitlements(entitlements),
    ...(shown.priceIds.length > 0 && { prices: shown.priceIds.join(', ') }),
    ...(unapplied.length > 0 && { unapplied: unapplied.join(', ') }),
    ...(application && {
      application: `${application.endedAt === null ? 'running' : 'ended'}, ${application.changed} changed, ${application.done} of ${application.total} read`,
    }),
  })
}

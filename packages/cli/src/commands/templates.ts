import { type Template, templates } from '@keyward/contract/management/templates'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { describe } from '../output.ts'
import { addDeletion } from './deletion.ts'
import { describeEntitlements, entitlementsOf, withEntitlements } from './entitlements.ts'
import { expiryOf } from './license-format.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'
import { termsOf, withTerms } from './terms.ts'

export function addTemplateCommands(parent: CliCommand): void {
  const group = parent.command('template').description('templates, whose terms new licenses copy')
  const create = group.command('create').description('create a template, which is perpetual without --type')
  withEntitlements(withTerms(create), "an override of the product's entitlements, or null to remove a default")
    .argument('<name>', 'the name of the template')
    .requiredOption('--product <id>', 'the product')
    .run(async ({ api, output }, flags, name: string) => {
      const { product: id } = z.object({ product: z.string() }).parse(flags)
      const { type = 'PERPETUAL', ...terms } = termsOf(flags)
      const body = { name, policy: { type, ...terms }, ...entitlementsOf(flags) }
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
  withEntitlements(withTerms(change), 'an override; the given ones replace all others')
    .argument('<id>', 'the id of the template')
    .option('--name <name>', 'a new name')
    .run(async ({ api, output }, flags, id: string) => {
      const { name } = z.object({ name: z.string().optional() }).parse(flags)
      const body = { ...(name !== undefined && { name }), policy: termsOf(flags), ...entitlementsOf(flags) }
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
    files: `valid for ${policy.fileDays} days`,
    ...describeEntitlements(entitlements),
    ...(unapplied.length > 0 && { unapplied: unapplied.join(', ') }),
    ...(application && {
      application: `${application.endedAt === null ? 'running' : 'ended'}, ${application.changed} changed, ${application.done} of ${application.total} read`,
    }),
  })
}

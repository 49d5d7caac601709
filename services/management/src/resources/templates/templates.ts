/** Defines the endpoints of templates (docs/api.md#m16). */

import { policyError, storedEntitlements } from '@keyward/contract'
import {
  type createTemplate,
  type Template,
  templates as operations,
  type updateTemplate,
} from '@keyward/contract/management/templates'
import { sql } from 'kysely'
import type { z } from 'zod'

import { audit, valuesBefore } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { differences } from '../../crud/differences.ts'
import { deleteRow, findRow, insertRow, listRows, lockRow, readRow, updateRow } from '../../crud/owned-rows.ts'
import { ApiError, invalid, invalidRequest } from '../../http/problem.ts'
import { implement } from '../../operations/implement.ts'
import { wakeEvents } from '../commerce/inbox.ts'
import { templateRows, termsOf } from '../licenses/template-rows.ts'
import { formerAfter, formerOf, type TemplateRow } from '../licenses/template-values.ts'
import { excessiveEntitlements } from '../products/entitlements.ts'
import { productRows } from '../products/products.ts'
import { applyTemplate, requireNotRunning } from './apply.ts'

/** The maximum number of templates of a product. */
const MAX_TEMPLATES = 100

/** Throws INVALID_REQUEST unless the type, the days of the term and the length of the entitlements are valid. */
async function requireValid(
  context: WriteContext,
  productId: string,
  {
    type,
    durationDays,
    entitlements,
  }: Pick<Template['policy'], 'type' | 'durationDays'> & { entitlements: object | null },
): Promise<void> {
  // Without `durationDays`, each license gets an expiry of its own.
  if (type === 'PERPETUAL') {
    const error = policyError({ type, durationDays, expiresAt: null })
    if (error !== null) throw invalid(`#/policy/${error.field}`, error.detail)
  }
  if (entitlements === null) return
  const given = [{ productId, entitlements: JSON.stringify(entitlements), pointer: '#' }]
  const errors = await excessiveEntitlements(context, given)
  if (errors.length > 0) throw invalidRequest(errors)
}

async function addTemplate(
  context: WriteContext,
  productId: string,
  { name, policy, metadata, priceIds, orders, ...input }: z.output<typeof createTemplate>,
): Promise<Template> {
  // The lock on the product makes the count exact.
  await lockRow(productRows, context, productId)
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from license_templates
    where organization_id = ${context.organizationId} and product_id = ${productId}`.execute(context.db)
  if ((rows[0]?.count ?? 0) >= MAX_TEMPLATES)
    throw new ApiError('QUOTA_EXCEEDED', `A product has at most ${MAX_TEMPLATES} templates. Delete one first.`)
  const entitlements = storedEntitlements(input.entitlements) ?? null
  await requireValid(context, productId, { ...policy, entitlements })
  const { type: policyType, ...terms } = policy
  await wakeEvents(context, 'price', priceIds ?? [])
  return insertRow(templateRows, context, {
    productId,
    name,
    policyType,
    ...terms,
    entitlements,
    metadata,
    priceIds,
    orders,
  })
}

async function changeTemplate(
  context: WriteContext,
  id: string,
  { name, policy = {}, metadata, priceIds, orders, ...input }: z.output<typeof updateTemplate>,
): Promise<Template> {
  const before = await lockRow(templateRows, context, id)
  requireNotRunning(before)
  const { type: policyType, ...terms } = policy
  const entitlements = storedEntitlements(input.entitlements)
  const changed = differences(before, { name, policyType, ...terms, entitlements, metadata, priceIds, orders })
  if (changed === null) return templateRows.show(before)
  const after: TemplateRow = Object.assign({ ...before }, changed)
  await requireValid(context, before.productId, { ...termsOf(after), entitlements: after.entitlements })
  await wakeEvents(context, 'price', priceIds ?? [])
  const former = formerAfter(formerOf(before), before, after)
  const row = await updateRow(templateRows, context, id, { ...changed, former, updatedAt: new Date() })
  await audit(context, {
    action: 'template.changed',
    resourceType: 'template',
    resourceId: id,
    changes: changed,
    before: valuesBefore(before, changed),
    event: { type: 'template.updated', resource: templateRows.show(row), before: templateRows.show(before) },
  })
  return templateRows.show(row)
}

const tag = { name: 'Templates', description: 'The terms of a kind of license, which new licenses copy.' }

export const templates = implement(tag, operations, {
  listTemplates: {
    summary: 'List the templates of a product',
    handle: async (call) => {
      await findRow(productRows, call, call.params.id)
      return listRows(templateRows, call, call.query, [sql`product_id = ${call.params.id}`])
    },
  },
  createTemplate: {
    summary: 'Create a template',
    description: 'A product has at most 100 templates.',
    handle: (call) => addTemplate(call, call.params.id, call.body),
  },
  readTemplate: { summary: 'Read a template', handle: (call) => readRow(templateRows, call, call.params.id) },
  updateTemplate: {
    summary: 'Change a template',
    description:
      'Merges the given fields of the policy into the stored policy. Licenses stay as they are until the template is applied.',
    errors: ['IN_USE'],
    handle: (call) => changeTemplate(call, call.params.id, call.body),
  },
  deleteTemplate: {
    summary: 'Delete a template',
    description: 'A template that licenses have cannot be deleted.',
    errors: ['IN_USE'],
    handle: (call) => deleteRow(templateRows, call, call.params.id, { audited: templateRows.show }),
  },
  applyTemplate: {
    summary: 'Apply a template to its licenses',
    description:
      'Changes each field of a license that still equals a value that the template had. Returns the effect, and with `dryRun` ' +
      'changes nothing. Otherwise a job changes the licenses, and `application` of the template is its progress.',
    errors: ['IN_USE', 'VALIDATORS_OUTDATED'],
    handle: (call) => applyTemplate(call, call.params.id, call.body?.dryRun ?? false),
  },
})

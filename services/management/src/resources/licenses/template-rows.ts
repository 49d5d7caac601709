/** Reads rows of templates, and converts them to the representation of the API. */

import { actor, type Terms } from '@keyward/contract'
import { orderOptions, type OrderOptions, type Template } from '@keyward/contract/management/templates'
import { z } from 'zod'

import type { ReadContext } from '../../context.ts'
import { anyId, type OwnedRows } from '../../crud/owned-rows.ts'
import { formerOf, type TemplateRow } from './template-values.ts'

/** The progress of an application, as it is stored. */
export const storedApplication = z.object({
  startedAt: z.string(),
  endedAt: z.string().nullable(),
  total: z.int(),
  done: z.int(),
  changed: z.int(),
  /** The id of the last license that was read. */
  after: z.uuid().nullable(),
  actor,
})
export type StoredApplication = z.output<typeof storedApplication>

/** Returns the progress of the latest application, or null if the template was never applied. */
export function applicationOf({ application }: TemplateRow): StoredApplication | null {
  return application === null ? null : storedApplication.parse(application)
}

export function optionsOf({ orders }: TemplateRow): OrderOptions {
  return orderOptions.parse(orders)
}

export function termsOf({ policyType: type, ...row }: TemplateRow): Terms {
  const { maxMachines, durationDays, maxReleases, leaseSeconds, graceDays, fileDays } = row
  return { type, maxMachines, durationDays, maxReleases, leaseSeconds, graceDays, fileDays }
}

export function showApplication(row: TemplateRow): Template['application'] {
  const application = applicationOf(row)
  if (application === null) return null
  const { startedAt, endedAt, total, done, changed } = application
  return { startedAt, endedAt, total, done, changed }
}

export const templateRows: OwnedRows<'licenseTemplates', Template> = {
  table: 'licenseTemplates',
  type: 'template',
  events: { created: 'template.created', updated: 'template.updated', deleted: 'template.deleted' },
  show: (row) => ({
    id: row.id,
    productId: row.productId,
    name: row.name,
    policy: termsOf(row),
    entitlements: row.entitlements ?? {},
    metadata: row.metadata,
    priceIds: row.priceIds,
    orders: optionsOf(row),
    unapplied: Object.keys(formerOf(row)),
    application: showApplication(row),
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }),
  conflicts: {
    licenses_template_fkey: {
      code: 'IN_USE',
      detail: 'Licenses have this template. Move them to another template, or set their templateId to null, first.',
    },
  },
}

/** Returns the organization's templates with these ids. */
export async function templatesById(
  { db, organizationId }: ReadContext,
  ids: readonly string[],
): Promise<ReadonlyMap<string, TemplateRow>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('licenseTemplates')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', '=', anyId(ids.map((id) => ({ id }))))
    .forKeyShare()
    .execute()
  return new Map(rows.map((row) => [row.id, row]))
}

/**
 * Applies a template to its licenses (docs/api.md#m17). The request counts the effect and starts the application, whose pages a job handles
 * (paged-jobs.ts). The row of the template contains the progress.
 */

import type { AppliedTemplate } from '@keyward/contract/management/templates'
import { sql } from 'kysely'

import { audit } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { anyId, lockRow, updateRow } from '../../crud/owned-rows.ts'
import { bytesExceededOf, PAGE_ROWS, type PagedJobs } from '../../crud/paged-jobs.ts'
import { ApiError } from '../../http/problem.ts'
import { requireMachinesWithinQuota } from '../../quotas/quotas.ts'
import { changeLicenses } from '../licenses/change-many.ts'
import { requireFeatures } from '../licenses/features.ts'
import { selectLicenses } from '../licenses/license-rows.ts'
import {
  applicationOf,
  showApplication,
  type StoredApplication,
  templateRows,
  termsOf,
} from '../licenses/template-rows.ts'
import { type Effect, effectOf, formerOf, type TemplateRow } from '../licenses/template-values.ts'
import { requireSwitches } from '../products/entitlements.ts'

const EXAMPLES = 5

/** Throws IN_USE while the template is being applied. */
export function requireNotRunning(row: TemplateRow): void {
  const application = applicationOf(row)
  if (application !== null && application.endedAt === null)
    throw new ApiError(
      'IN_USE',
      'The template is being applied to its licenses. Try again when its application has ended.',
    )
}

const ofTemplate = ({ organizationId, id }: TemplateRow) =>
  sql`organization_id = ${organizationId} and template_id = ${id}`

async function preview({ db }: WriteContext, row: TemplateRow, effect: Effect | null) {
  const changes = effect?.changes ?? sql<boolean>`false`
  const keeps = effect?.keeps ?? sql<boolean>`false`
  const { rows } = await sql<{ total: number; changed: number; kept: number }>`
    select count(*)::integer as total, (count(*) filter (where ${changes}))::integer as changed,
      (count(*) filter (where ${keeps}))::integer as kept
    from licenses where ${ofTemplate(row)}`.execute(db)
  const examples = async (which: 'changed' | 'kept', count: number) => {
    if (effect === null || count === 0) return []
    const [condition, fields] =
      which === 'changed' ? [effect.changes, effect.changedFields] : [effect.keeps, effect.keptFields]
    const found = await sql<{ id: string; key: string; fields: string[] }>`
      select id, key, ${fields} as fields from licenses where ${ofTemplate(row)} and ${condition} limit ${EXAMPLES}`.execute(
      db,
    )
    return found.rows
  }
  const counts = rows[0]!
  return {
    ...counts,
    examples: { changed: await examples('changed', counts.changed), kept: await examples('kept', counts.kept) },
  }
}

export async function applyTemplate(context: WriteContext, id: string, isDryRun: boolean): Promise<AppliedTemplate> {
  const row = await lockRow(templateRows, context, id)
  requireNotRunning(row)
  const counted = await preview(context, row, effectOf(row, formerOf(row)))
  if (isDryRun) return { ...counted, application: showApplication(row) }
  await requireMachinesWithinQuota(context, [row.maxMachines])
  await requireFeatures(context, [{ ...termsOf(row), expiresAt: null }])
  await requireSwitches(context, [row.entitlements ?? {}])
  const now = new Date().toISOString()
  const { total, changed: expected, kept } = counted
  const application: StoredApplication = {
    startedAt: now,
    endedAt: null,
    total,
    done: 0,
    changed: 0,
    after: null,
    actor: context.actor,
  }
  const started = await updateRow(templateRows, context, id, { application })
  const resource = templateRows.show(started)
  await audit(context, {
    action: 'template.applied',
    resourceType: 'template',
    resourceId: id,
    changes: { total, changed: expected, kept },
    event: { type: 'template.applied', resource },
  })
  return { ...counted, application: resource.application }
}

/** Changes the next page of licenses of a template. An application that reaches a quota of bytes ends, and a later one continues. */
async function applyPage(context: WriteContext, row: TemplateRow, application: StoredApplication): Promise<boolean> {
  if ((await bytesExceededOf(context, true)) !== null) {
    await updateRow(templateRows, context, row.id, {
      application: { ...application, endedAt: new Date().toISOString() },
    })
    return true
  }
  const effect = effectOf(row, formerOf(row))
  const rest = application.after === null ? sql`` : sql`and id > ${application.after}`
  const { rows: page } = await sql<{ id: string; changes: boolean }>`
    select id, ${effect?.changes ?? sql`false`} as changes from licenses where ${ofTemplate(row)} ${rest}
    order by id limit ${PAGE_ROWS} for no key update`.execute(context.db)
  const changed = page.filter(({ changes }) => changes)
  if (effect !== null && changed.length > 0)
    await changeLicenses(context, {
      before: await selectLicenses(context).where('licenses.id', '=', anyId(changed)).orderBy('licenses.id').execute(),
      update: sql`
        update licenses set ${effect.assignments}, updated_at = now()
        where organization_id = ${context.organizationId} and id = ${anyId(changed)}`,
      event: () => ({ type: 'license.updated' }),
    })
  const hasEnded = page.length < PAGE_ROWS
  const progress: StoredApplication = {
    ...application,
    after: page.at(-1)?.id ?? application.after,
    done: application.done + page.length,
    changed: application.changed + changed.length,
    endedAt: hasEnded ? new Date().toISOString() : null,
  }
  await updateRow(templateRows, context, row.id, { application: progress, ...(hasEnded && { former: {} }) })
  return true
}

export const applications: PagedJobs<'licenseTemplates'> = {
  table: 'licenseTemplates',
  isRunning: sql`application is not null and application ->> 'endedAt' is null`,
  order: sql`id`,
  handlePage: async (db, row) => {
    const application = applicationOf(row)
    if (application === null) return false
    return applyPage({ db, organizationId: row.organizationId, actor: application.actor }, row, application)
  },
}

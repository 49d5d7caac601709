/**
 * Applies a template to its licenses (docs/api.md#m17). The request counts the effect and starts the application. A job then changes the
 * licenses in pages, each in a transaction with its events, so that neither memory nor locks depend on the number of licenses. Any number
 * of processes may run the job. The row of the template contains the progress, so another process continues after a crash.
 */

import type { AppliedTemplate } from '@keyward/contract/management/templates'
import { sql } from 'kysely'

import { audit } from '../../audit/writer.ts'
import type { Db, WriteContext } from '../../context.ts'
import { lockRow, updateRow } from '../../crud/owned-rows.ts'
import { writeEvents } from '../../events/writer.ts'
import { ApiError } from '../../http/problem.ts'
import { requireMachinesWithinQuota } from '../../quotas/quotas.ts'
import { requireFeatures } from '../licenses/features.ts'
import { selectLicenses, showLicense } from '../licenses/license-rows.ts'
import {
  applicationOf,
  showApplication,
  type StoredApplication,
  templateRows,
  termsOf,
} from '../licenses/template-rows.ts'
import { type Effect, effectOf, formerOf, type TemplateRow } from '../licenses/template-values.ts'

const PAGE_ROWS = 200
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

/** Changes the next page of licenses of one template. Returns false when no template is being applied. */
async function applyPage(db: Db): Promise<boolean> {
  const [row] = (
    await sql<TemplateRow>`
      select * from license_templates where application is not null and application ->> 'endedAt' is null
      order by id limit 1 for no key update skip locked`.execute(db)
  ).rows
  const application = row && applicationOf(row)
  if (!row || !application) return false
  const context = { db, organizationId: row.organizationId, actor: application.actor }
  const effect = effectOf(row, formerOf(row))
  const rest = application.after === null ? sql`` : sql`and id > ${application.after}`
  const { rows: page } = await sql<{ id: string; changes: boolean }>`
    select id, ${effect?.changes ?? sql`false`} as changes from licenses where ${ofTemplate(row)} ${rest}
    order by id limit ${PAGE_ROWS} for no key update`.execute(db)
  const ids = page.filter(({ changes }) => changes).map(({ id }) => id)
  if (effect !== null && ids.length > 0) await changeLicenses(context, ids, effect)
  const hasEnded = page.length < PAGE_ROWS
  const progress: StoredApplication = {
    ...application,
    after: page.at(-1)?.id ?? application.after,
    done: application.done + page.length,
    changed: application.changed + ids.length,
    endedAt: hasEnded ? new Date().toISOString() : null,
  }
  await updateRow(templateRows, context, row.id, { application: progress, ...(hasEnded && { former: {} }) })
  return true
}

async function changeLicenses(context: WriteContext, ids: readonly string[], effect: Effect): Promise<void> {
  const { db, organizationId, actor: by } = context
  const read = () => selectLicenses(context).where('licenses.id', 'in', ids).orderBy('licenses.id').execute()
  const before = await read()
  await sql`
    update licenses set ${effect.assignments}, updated_at = now()
    where organization_id = ${organizationId} and id = any(${ids}::uuid[])`.execute(db)
  const events = (await read()).map(
    (row, i) =>
      ({
        type: 'license.updated',
        resource: showLicense(row),
        before: showLicense(before[i]!),
        organizationId,
        actor: by,
      }) as const,
  )
  await writeEvents(db, events)
}

/** Changes the licenses of all templates that are being applied, in transactions of bounded length. */
export async function applyTemplates(db: Db, signal?: AbortSignal): Promise<void> {
  for (let isMore = true; isMore;) {
    isMore = await db.transaction().execute((transaction) => applyPage(transaction))
    if (signal?.aborted === true) return
  }
}

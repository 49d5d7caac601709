/**
 * Applies a template to its licenses (docs/api.md#m17). The request counts the effect and starts the application. A job then changes the
 * licenses in pages, each in a transaction with its events, so that neither memory nor locks depend on the number of licenses. Any number
 * of processes may run the job. The row of the template contains the progress, so another process continues after a crash. Organizations take
 * turns, and an application ends early when its organization reaches a quota of bytes.
 */

import type { AppliedTemplate } from '@keyward/contract/management/templates'
import { sql } from 'kysely'

import { audit } from '../../audit/writer.ts'
import type { Db, WriteContext } from '../../context.ts'
import { lockRow, updateRow } from '../../crud/owned-rows.ts'
import { writeEvents } from '../../events/writer.ts'
import { ApiError } from '../../http/problem.ts'
import { requireBytes, requireMachinesWithinQuota } from '../../quotas/quotas.ts'
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
import { requireSwitches } from '../products/entitlements.ts'

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

/** The condition for templates that are being applied. */
const IS_RUNNING = sql<boolean>`application is not null and application ->> 'endedAt' is null`

/** Returns whether the organization may add bytes. An application that reaches a quota of bytes ends, and a later one continues. */
async function hasBytes(context: WriteContext): Promise<boolean> {
  try {
    await requireBytes(context, true)
    return true
  } catch (error) {
    if (error instanceof ApiError && error.code === 'QUOTA_EXCEEDED') return false
    throw error
  }
}

/** Changes the next page of licenses of one template. Returns false when no template of the organization waits for this process. */
async function applyPage(db: Db, organizationId: string): Promise<boolean> {
  const [row] = (
    await sql<TemplateRow>`
      select * from license_templates where organization_id = ${organizationId} and ${IS_RUNNING}
      order by id limit 1 for no key update skip locked`.execute(db)
  ).rows
  const application = row && applicationOf(row)
  if (!row || !application) return false
  const context = { db, organizationId, actor: application.actor }
  if (!(await hasBytes(context))) {
    await updateRow(templateRows, context, row.id, {
      application: { ...application, endedAt: new Date().toISOString() },
    })
    return true
  }
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

/** Returns the next organization in a cycle with a template that is being applied, or undefined if there is none. */
async function nextOrganization(db: Db, last: string, isSkipped: ReadonlySet<string>): Promise<string | undefined> {
  const { rows } = await sql<{ organizationId: string }>`
    select organization_id from license_templates where ${IS_RUNNING} and organization_id <> all(${[...isSkipped]}::uuid[])
    order by organization_id <= ${last}, organization_id limit 1`.execute(db)
  return rows[0]?.organizationId
}

const NO_ORGANIZATION = '00000000-0000-0000-0000-000000000000'

/**
 * Changes the licenses of all templates that are being applied, in transactions of bounded length. Organizations take turns. An organization
 * whose page fails, or whose templates another process changes, is left to the next run.
 */
export async function applyTemplates(db: Db, signal?: AbortSignal): Promise<void> {
  const skipped = new Set<string>()
  const errors: unknown[] = []
  let last = NO_ORGANIZATION
  for (;;) {
    const next = signal?.aborted === true ? undefined : await nextOrganization(db, last, skipped)
    if (next === undefined) break
    last = next
    try {
      if (!(await db.transaction().execute((transaction) => applyPage(transaction, next)))) skipped.add(next)
    } catch (error) {
      skipped.add(next)
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}

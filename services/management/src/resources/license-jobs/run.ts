/**
 * Runs the jobs of licenses and their undo (docs/api.md#j2), page by page (paged-jobs.ts). The rows of a job contain the values that it
 * replaced. A license that was changed afterwards has another version, and an undo leaves it as it is.
 */

import { actor } from '@keyward/contract'
import { type JobReason, MAX_JOB_ERRORS } from '@keyward/contract/management/license-jobs'
import { type RawBuilder, sql } from 'kysely'
import { z } from 'zod'

import { recordLicenseActivity } from '../../activity/writer.ts'
import type { Db, WriteContext } from '../../context.ts'
import { anyId, updateRow } from '../../crud/owned-rows.ts'
import { bytesExceededOf, PAGE_ROWS, type PagedJobs } from '../../crud/paged-jobs.ts'
import { type Action, detailsOf, type Effect, effectOf, type Refusal, RENEWED } from '../licenses/actions.ts'
import { changeLicenses } from '../licenses/change-many.ts'
import { type LicenseRow, selectLicenses } from '../licenses/license-rows.ts'
import { deleteLicense } from '../licenses/store.ts'
import { contentOf, endsLicenses, jobRows, type JobRow } from './job-rows.ts'

/** The licenses of a page that deletes, and the machines and rules that it deletes with them. A page has at least one license. */
const MAX_DELETED = { licenses: 50, rows: 2_000 }
const FAILED =
  'The change of the next licenses failed and is repeated. The log of the management service contains the reason.'

const date = z.iso.datetime().transform((value) => new Date(value))
/** The values of a license that a job replaces. */
const replaced = z.object({
  status: z.enum(['active', 'suspended', 'revoked']),
  suspendedAt: date.nullable(),
  revokedAt: date.nullable(),
  expiresAt: date.nullable(),
  durationDays: z.int().nullable(),
})
type Replaced = z.output<typeof replaced>

interface Selected {
  id: string
  version: Date | null
  before: unknown
  /** The number of rows that are deleted with the license, counted up to MAX_DELETED.rows for each kind. */
  owned: number
}

/** Reads the next rows of the pass. */
async function readPage({ db, organizationId }: WriteContext, { id, after, state, action }: JobRow) {
  const isDeletion = action['type'] === 'delete'
  const count = isDeletion ? MAX_DELETED.licenses : PAGE_ROWS
  const rest = after === null ? sql`` : sql`and license_id > ${after}`
  const changed = state === 'undoing' ? sql`and before is not null` : sql``
  const counted = (of: RawBuilder<unknown>) =>
    sql`(select count(*)::integer from (select from ${of} and license_id = r.license_id limit ${MAX_DELETED.rows}) counted)`
  const owned = isDeletion
    ? sql`${counted(sql`machines where true`)} + ${counted(sql`access_rules where organization_id = ${organizationId}`)}`
    : sql`0`
  const { rows } = await sql<Selected>`
    select license_id as id, version, before, ${owned} as owned from license_job_rows r where job_id = ${id} ${rest} ${changed}
    order by license_id limit ${count}`.execute(db)
  let sum = 0
  const excess = rows.findIndex((row, at) => (sum += row.owned) > MAX_DELETED.rows && at > 0)
  const page = excess === -1 ? rows : rows.slice(0, excess)
  return { page, isLast: excess === -1 && rows.length < count }
}

/** Changes the licenses of a page, and stores the replaced values for an undo unless the page is a part of one. */
async function changePage(
  context: WriteContext,
  { id, state }: JobRow,
  changes: readonly { license: LicenseRow; effect: Effect }[],
  more: object,
): Promise<void> {
  if (changes.length === 0) return
  const { db, organizationId } = context
  const effects = new Map(changes.map(({ license, effect }) => [license.id, effect]))
  const column = <Value>(pick: (values: Replaced) => Value) =>
    changes.map(({ license, effect }) => pick({ ...license, ...effect.set }))
  const before = changes.map(({ license }) => license)
  const ids = before.map((license) => license.id)
  const after = await changeLicenses(context, {
    before,
    update: sql`
      update licenses l set status = n.status, suspended_at = n.suspended_at, revoked_at = n.revoked_at, expires_at = n.expires_at,
        duration_days = n.duration_days, updated_at = now()
      from unnest(${ids}::uuid[], ${column((row) => row.status)}::text[], ${column((row) => row.suspendedAt)}::timestamptz[],
        ${column((row) => row.revokedAt)}::timestamptz[], ${column((row) => row.expiresAt)}::timestamptz[],
        ${column((row) => row.durationDays)}::integer[]) as n (id, status, suspended_at, revoked_at, expires_at, duration_days)
      where l.id = n.id and l.organization_id = ${organizationId}`,
    event: (license) => ({ type: effects.get(license.id)!.audited, more }),
  })
  for (const activity of new Set(changes.map(({ effect }) => effect.activity))) {
    const own = changes.filter(({ effect }) => effect.activity === activity)
    await recordLicenseActivity(
      context,
      activity,
      own.map(({ license }) => license.id),
    )
  }
  const former = ({ status, suspendedAt, revokedAt, expiresAt, durationDays }: LicenseRow) =>
    JSON.stringify({ status, suspendedAt, revokedAt, expiresAt, durationDays })
  const values = before.map((row) => (state === 'undoing' ? null : former(row)))
  await sql`
    update license_job_rows r set before = n.before, version = n.version
    from unnest(${ids}::uuid[], ${values}::jsonb[], ${after.map((row) => row.updatedAt)}::timestamptz[]) as n (id, before, version)
    where r.job_id = ${id} and r.license_id = n.id`.execute(db)
}

/** Returns the effect of an undo on a license. */
function undoOf(action: Action, license: LicenseRow, { version, before }: Selected): Effect | Refusal {
  if (version?.getTime() !== license.updatedAt.getTime()) return { reason: 'CHANGED' }
  const set = replaced.parse(before)
  if (action.type === 'renew' || action.type === 'extend') return { ...RENEWED, set }
  return set.status === 'suspended'
    ? { activity: 'LICENSE_SUSPENDED', audited: 'license.suspended', set }
    : { activity: 'LICENSE_REINSTATED', audited: 'license.reinstated', set }
}

interface Handled {
  /** The number of licenses that were changed, deleted or restored. */
  changed: number
  others: readonly { id: string; key: string | null; reason: JobReason }[]
}

/** Handles the licenses of a page, in the order of their ids. */
async function handleLicenses(context: WriteContext, job: JobRow, page: readonly Selected[]): Promise<Handled> {
  const { action } = contentOf(job)
  const licenses = await selectLicenses(context)
    .where('licenses.id', '=', anyId(page))
    .orderBy('licenses.id')
    .forNoKeyUpdate('licenses')
    .execute()
  const selected = new Map(page.map((row) => [row.id, row]))
  for (const { id } of licenses) if (action.type === 'delete') await deleteLicense(context, id)
  const now = new Date()
  const decided = licenses.flatMap((license) => {
    const row = selected.get(license.id)
    selected.delete(license.id)
    if (row === undefined || action.type === 'delete') return []
    const effect = job.state === 'undoing' ? undoOf(action, license, row) : effectOf(action, license, now)
    return [{ license, effect }]
  })
  const changes = decided.flatMap(({ license, effect }) => ('reason' in effect ? [] : [{ license, effect }]))
  await changePage(context, job, changes, job.state === 'undoing' || action.type === 'delete' ? {} : detailsOf(action))
  const refused = decided.flatMap(({ license: { id, key }, effect }) =>
    'reason' in effect ? [{ id, key, reason: effect.reason }] : [],
  )
  const missing = Array.from(selected.keys(), (id) => ({ id, key: null, reason: 'DELETED' as const }))
  return { changed: licenses.length - refused.length, others: [...refused, ...missing] }
}

async function handlePage(context: WriteContext, job: JobRow): Promise<boolean> {
  const { action, errors } = contentOf(job)
  const isUndo = job.state === 'undoing'
  // As for requests, an undo needs no body, so that a vendor can undo a job that has used up the quota.
  const exceeded = await bytesExceededOf(context, !isUndo && !endsLicenses(action))
  if (exceeded !== null) {
    if (job.problem === null || job.problem === FAILED)
      await updateRow(jobRows, context, job.id, { problem: exceeded.message })
    return false
  }
  const { page, isLast } = await readPage(context, job)
  const { changed, others } = await handleLicenses(context, job, page)
  const failed = others.filter(({ reason }) => reason !== 'IN_EFFECT')
  const progress = isUndo
    ? { restored: job.restored + changed, kept: job.kept + others.length }
    : {
        done: job.done + page.length,
        changed: job.changed + changed,
        failed: job.failed + failed.length,
        skipped: job.skipped + others.length - failed.length,
      }
  await updateRow(jobRows, context, job.id, {
    ...progress,
    after: page.at(-1)?.id ?? job.after,
    errors: [...errors, ...failed].slice(0, MAX_JOB_ERRORS),
    problem: null,
    ...(isLast && { state: isUndo ? 'undone' : 'completed', endedAt: new Date() }),
  })
  return true
}

/** Shows in a job that its page failed, so that the vendor can cancel it. The next page that succeeds removes the problem. */
async function showFailure(db: Db, { id }: JobRow): Promise<void> {
  await sql`
    update license_jobs set problem = ${FAILED}
    where id = ${id} and ended_at is null and problem is distinct from ${FAILED}`.execute(db)
}

/** The types of actors that this version knows. Jobs of other actors are left to processes of a later version. */
const ACTOR_TYPES = sql`${actor.shape.type.options}::text[]`

/** The jobs of licenses. A job that waits for a quota, or whose page fails, delays no other. */
export const runningJobs: PagedJobs<'licenseJobs'> = {
  table: 'licenseJobs',
  isRunning: sql`ended_at is null and actor ->> 'type' = any(${ACTOR_TYPES})
    and coalesce(actor -> 'issuedBy' ->> 'type', 'SYSTEM') = any(${ACTOR_TYPES})`,
  order: sql`problem is not null, id`,
  handlePage: (db, row) => handlePage({ db, organizationId: row.organizationId, actor: actor.parse(row.actor) }, row),
  showFailure,
}

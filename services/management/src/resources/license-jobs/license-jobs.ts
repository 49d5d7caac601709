/** Defines the endpoints of jobs, which perform an action on many licenses (docs/api.md#j1). */

import {
  type JobEffect,
  licenseJobs as operations,
  type JobReason,
  type JobTarget,
  type LicenseJob,
  MAX_JOB_LICENSES,
  type StartedTarget,
} from '@keyward/contract/management/license-jobs'
import { uuidv7 } from '@keyward/database'
import { type RawBuilder, sql } from 'kysely'

import { audit, listOf } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { anyId, listRows, lockRow, missingIds, readRow, updateRow } from '../../crud/owned-rows.ts'
import { ApiError, invalid, invalidRequest } from '../../http/problem.ts'
import { implement } from '../../operations/implement.ts'
import { inTurns } from '../../turns.ts'
import { effectOf } from '../licenses/actions.ts'
import type { LicenseRow } from '../licenses/license-rows.ts'
import { matching } from '../licenses/list.ts'
import { endsLicenses, jobRows, undoableUntil } from './job-rows.ts'

/** The maximum number of an organization's jobs that have not ended. */
const MAX_RUNNING = 10
/** The maximum number of an organization's jobs, and of their licenses. The start of a job deletes the oldest ended jobs beyond it. */
const MAX_JOBS = 100
const MAX_KEPT_LICENSES = 500_000
const EXAMPLES = 5
/** The number of licenses that a dry run reads at a time. */
const READ_ROWS = 2_000
const FIRST_ID = '00000000-0000-0000-0000-000000000000'
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Returns the condition for the selected licenses. Throws INVALID_REQUEST when one of the ids does not exist. */
async function selectionOf(context: ReadContext, { ids, filter = {} }: JobTarget): Promise<RawBuilder<unknown>> {
  if (ids === undefined) return matching(context, filter)
  const missing = await missingIds('licenses', context, ids)
  const detail = 'must be the id of a license of this organization'
  const errors = ids.flatMap((id, i) => (missing.has(id) ? [{ pointer: `#/ids/${i}`, detail }] : []))
  if (errors.length > 0) throw invalidRequest(errors)
  return sql`organization_id = ${context.organizationId} and id = ${anyId(ids.map((id) => ({ id })))}`
}

type Read = Pick<LicenseRow, 'id' | 'key' | 'status' | 'policyType' | 'expiresAt' | 'durationDays' | 'graceDays'>

/** Yields the selected licenses in the order of their ids. */
async function* readSelected({ db, organizationId }: ReadContext, selection: RawBuilder<unknown>) {
  for (let after = FIRST_ID; ;) {
    const { rows } = await sql<Read>`
      select id, key, status, policy_type, expires_at, duration_days, grace_days from licenses
      where ${selection} and (organization_id, id) > (${organizationId}::uuid, ${after}::uuid)
        and (organization_id, id) < (${organizationId}::uuid, ${LAST_ID}::uuid)
      order by organization_id, id limit ${READ_ROWS}`.execute(db)
    yield* inTurns(rows)
    const last = rows.at(-1)
    if (rows.length < READ_ROWS || last === undefined) return
    after = last.id
  }
}

function tooMany(): ApiError {
  return invalid('#/filter', `must select at most ${MAX_JOB_LICENSES} licenses; divide them, for example by product`)
}

async function effectOfJob(context: ReadContext, target: JobTarget): Promise<JobEffect> {
  const { action } = target
  const now = new Date()
  const reasons = new Map<JobReason, number>()
  const examples: JobEffect['examples'] = { changed: [], others: [] }
  let total = 0
  let changed = 0
  for await (const license of readSelected(context, await selectionOf(context, target))) {
    if (++total > MAX_JOB_LICENSES) throw tooMany()
    const { id, key } = license
    const effect = action.type === 'delete' ? null : effectOf(action, license, now)
    if (effect === null || !('reason' in effect)) {
      if (++changed <= EXAMPLES) examples.changed.push({ id, key })
      continue
    }
    const { reason } = effect
    const count = (reasons.get(reason) ?? 0) + 1
    reasons.set(reason, count)
    if (count <= EXAMPLES) examples.others.push({ id, key, reason })
  }
  const skipped = reasons.get('IN_EFFECT') ?? 0
  return {
    total,
    changed,
    skipped,
    failed: total - changed - skipped,
    reasons: Array.from(reasons, ([reason, count]) => ({ reason, count })),
    examples,
  }
}

/** Locks the organization, so that its number of running jobs stays the same. Locks on its jobs follow. */
async function lockOrganization({ db, organizationId }: WriteContext): Promise<void> {
  await sql`select from organizations where id = ${organizationId} for no key update`.execute(db)
}

/** Throws QUOTA_EXCEEDED when the organization, which the caller has locked, has too many running jobs. */
async function requireFewRunning({ db, organizationId }: WriteContext): Promise<void> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from license_jobs where organization_id = ${organizationId} and ended_at is null`.execute(
    db,
  )
  if ((rows[0]?.count ?? 0) >= MAX_RUNNING)
    throw new ApiError(
      'QUOTA_EXCEEDED',
      `An organization runs at most ${MAX_RUNNING} jobs at a time. Wait for one, or cancel it.`,
    )
}

/** Starts a job. Its rows contain the licenses that the filter selects now, so later licenses do not enter. */
async function startJob(context: WriteContext, target: StartedTarget): Promise<LicenseJob> {
  const { db, organizationId, actor } = context
  const { action, ids, expectedTotal, ...selecting } = target
  if (action.type === 'renew' && action.expiresAt <= new Date())
    throw invalid('#/action/expiresAt', 'must be in the future')
  const selection = await selectionOf(context, target)
  await lockOrganization(context)
  await requireFewRunning(context)
  const id = uuidv7()
  const { rows } = await sql<{ total: number }>`
    with selected as materialized (select id from licenses where ${selection} limit ${MAX_JOB_LICENSES + 1}),
    job as (
      insert into license_jobs (id, organization_id, action, actor, total)
      select ${id}, ${organizationId}, ${JSON.stringify(action)}, ${JSON.stringify(actor)}, count(*) from selected returning total
    ), inserted as (
      insert into license_job_rows (job_id, license_id)
      select ${id}, id from selected where (select total from job) <= ${MAX_JOB_LICENSES}
    )
    select total from job`.execute(db)
  const total = rows[0]?.total ?? 0
  if (total > MAX_JOB_LICENSES) throw tooMany()
  if (expectedTotal !== undefined && expectedTotal !== total)
    throw invalid(
      '#/expectedTotal',
      `must be ${total}, the number of licenses that are selected now; run the dry run again`,
    )
  await sql`
    delete from license_jobs where ended_at is not null and id in (
      select id from (
        select id, row_number() over newest as n, sum(total) over newest as licenses from license_jobs
        where organization_id = ${organizationId} window newest as (order by id desc)
      ) kept where n > ${MAX_JOBS} or licenses > ${MAX_KEPT_LICENSES})`.execute(db)
  const changes = { action, ...selecting, ...(ids && { ids: listOf(ids.map((one) => ({ id: one }))) }), total }
  await audit(context, { action: 'license_job.started', resourceType: 'license_job', resourceId: id, changes })
  return readRow(jobRows, context, id)
}

/** Ends a running job after its current page. A job that has ended stays as it is. */
async function cancelJob(context: WriteContext, id: string): Promise<LicenseJob> {
  const job = await lockRow(jobRows, context, id)
  if (job.endedAt !== null) return jobRows.show(job)
  const { done, restored } = job
  const changed = await updateRow(jobRows, context, id, { state: 'canceled', endedAt: new Date(), problem: null })
  const entry = { action: 'license_job.canceled', resourceType: 'license_job', resourceId: id }
  await audit(context, { ...entry, changes: { done, restored } })
  return jobRows.show(changed)
}

/** Starts to restore the licenses that the job has changed. A second request changes nothing. */
async function undoJob(context: WriteContext, id: string): Promise<LicenseJob> {
  await lockOrganization(context)
  const job = await lockRow(jobRows, context, id)
  if (job.state === 'undoing' || job.state === 'undone') return jobRows.show(job)
  if (job.endedAt === null) throw new ApiError('NOT_UNDOABLE', 'The job is running. Cancel it first.')
  const until = undoableUntil(job)
  if (until === null) throw new ApiError('NOT_UNDOABLE', 'A deletion cannot be undone.')
  if (until <= new Date()) throw new ApiError('NOT_UNDOABLE', `The job could be undone until ${until.toISOString()}.`)
  await requireFewRunning(context)
  const { actor } = context
  const undone = { state: 'undoing', endedAt: null, after: null, kept: 0, errors: [], actor }
  const changed = await updateRow(jobRows, context, id, undone)
  const entry = { action: 'license_job.undone', resourceType: 'license_job', resourceId: id }
  await audit(context, { ...entry, changes: { changed: job.changed } })
  return jobRows.show(changed)
}

const tag = {
  name: 'License jobs',
  description: 'Actions on many licenses, which run after the request and can be undone.',
}

export const licenseJobs = implement(tag, operations, {
  dryRunLicenseJob: {
    summary: 'Return the effect of an action on many licenses',
    description: 'Changes nothing. Returns how many licenses would change, how many would not and why, and examples.',
    handle: (call) => effectOfJob(call, call.body),
  },
  startLicenseJob: {
    summary: 'Start an action on many licenses',
    description:
      'Selects the licenses at once and changes them afterwards. The selected licenses are given by `ids`, `filter` or `all`.',
    endsResources: ({ action }) => endsLicenses(action),
    handle: (call) => startJob(call, call.body),
  },
  listLicenseJobs: {
    summary: 'List the jobs of licenses',
    description: 'A job is kept for 7 days after its end.',
    handle: (call) => {
      const { state, ...query } = call.query
      return listRows(jobRows, call, query, state === undefined ? [] : [sql`state = ${state}`])
    },
  },
  readLicenseJob: {
    summary: 'Read a job, with its progress',
    handle: (call) => readRow(jobRows, call, call.params.id),
  },
  cancelLicenseJob: {
    summary: 'Cancel a job or its undo',
    description: 'Licenses that have been changed stay changed. The job can be undone.',
    handle: (call) => cancelJob(call, call.params.id),
  },
  undoLicenseJob: {
    summary: 'Undo a job',
    description:
      'Restores each license that is still as the job left it, also a revoked one. The others stay as they are, and `errors` names them.',
    errors: ['NOT_UNDOABLE'],
    handle: (call) => undoJob(call, call.params.id),
  },
})

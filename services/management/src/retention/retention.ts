/**
 * Applies retention (docs/api.md#d6): deletes rows that are older than the configured number of days, in small batches, so that no batch
 * holds locks for long. Each batch takes an advisory lock, so only one process works at a time.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import type { Plan } from '@keyward/contract'
import { JOB_DAYS } from '@keyward/contract/management/license-jobs'
import { type RawBuilder, sql } from 'kysely'

import { SESSION_IDLE_HOURS } from '../admission/sessions.ts'
import type { Db } from '../context.ts'
import { inOneProcess } from '../crud/in-one-process.ts'
import { IDEMPOTENCY_DAYS } from '../http/idempotency.ts'
import { firstIdAt } from '../http/pagination.ts'
import { listDiskUses } from '../quotas/quotas.ts'

/** The number of days for which each kind of row is kept. */
export interface RetentionDays {
  expiredRules: number
  revokedCredentials: number
  acknowledgedAlerts: number
  audit: number
  mergedCustomers: number
}

interface RetentionOptions {
  days: RetentionDays
  /** The maximum number of rows in one batch. */
  batchRows?: number
  /**
   * The maximum number of events of one organization (default: 1,000,000), of deliveries of one webhook endpoint (default: 200,000), and of mails of one
   * organization (default: 100,000).
   */
  maxEvents?: number
  /** The maximum number of activity entries of one organization in each plan (default: MAX_ACTIVITY). */
  maxActivity?: Record<Plan, number>
  /** Aborted when the process stops. */
  signal?: AbortSignal
}

/** The name of the lock of retention. */
const LOCK = 'retention'
const BATCH_ROWS = 1_000
const PAUSE_MS = 20
const EVENT_DAYS = 30
/** The maximum number of events of one organization. The oldest events beyond this number are deleted early. */
const MAX_EVENTS = 1_000_000
/** The maximum number of deliveries of one webhook endpoint. The oldest deliveries beyond this number are deleted early. */
const MAX_DELIVERIES = 200_000
/** The maximum number of mails of one organization. The oldest mails beyond this number are deleted early. */
const MAX_MAILS = 100_000
/**
 * The maximum number of activity entries of one organization, about 4, 16 and 64 GB as for `storedBytes`. The oldest entries beyond this
 * number are deleted early.
 */
const MAX_ACTIVITY: Record<Plan, number> = { FREE: 10_000_000, LITE: 40_000_000, STANDARD: 160_000_000 }
/** The number of rows that a sample has of an organization with the smallest of these maximums. */
const SAMPLED_ROWS = 10_000
/** The share of `storedBytes` up to which an organization's events and audit entries are kept for their full retention. */
const FULL_SHARE = 0.8
/** The number of days for which audit entries are kept even beyond this share, so that a flood of changes does not remove its traces. */
const LEAST_AUDIT_DAYS = 30
/** The number of days for which entries of `folded_rules` are kept. Validators write the matches of the deleted rules much sooner. */
const FOLDED_RULE_DAYS = 7
/** The number of days for which the rows are kept that concern the current or the last day. */
const LAST_DAYS = 2
const MS_PER_DAY = 86_400_000
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Deletes up to `rows` rows and returns their number. */
type Batch = (db: Db, rows: number) => Promise<number>

function before(days: number): RawBuilder<unknown> {
  return sql`now() - ${days} * interval '1 day'`
}

const SKIP_LOCKED = sql`for update skip locked`

/**
 * Returns a batch that deletes from a table the rows that satisfy the condition. By default, rows that another transaction has locked
 * remain until the next run.
 */
function batchOf(table: string, condition: RawBuilder<unknown>, lock: RawBuilder<unknown> = SKIP_LOCKED): Batch {
  return async (db, rows) => {
    const { numAffectedRows } = await sql`
      delete from ${sql.table(table)} where ctid = any (array(
        select ctid from ${sql.table(table)} where ${condition} limit ${rows} ${lock}))`.execute(db)
    return Number(numAffectedRows ?? 0)
  }
}

/** The condition for jobs that can no longer be undone. The hour exceeds the duration of any request. */
const JOB_ENDED = sql`ended_at < ${before(JOB_DAYS)} - interval '1 hour'`

/** Returns a batch that deletes expired rules and writes an audit entry for each organization. */
function expiredRules(days: number): Batch {
  return async (db, rows) => {
    const deleted = await sql<{ count: number }>`
      with gone as (
        delete from access_rules where id in (
          select id from access_rules where expires_at < ${before(days)} order by expires_at limit ${rows} for update skip locked)
        returning organization_id, id
      )
      insert into audit_log (id, organization_id, actor, action, resource_type, changes)
      select new_id(), organization_id, '{"type":"SYSTEM"}', 'access_rule.expired', 'access_rule',
        jsonb_build_object('deleted', count(*), 'ids', jsonb_agg(id))
      from gone group by organization_id
      returning (changes ->> 'deleted')::integer as count`.execute(db)
    return deleted.rows.reduce((sum, { count }) => sum + count, 0)
  }
}

/** Returns a batch that deletes rows older than `days`, the oldest first. The ids are UUIDv7, so the primary key finds these rows. */
function oldestIds(
  table: 'audit_log' | 'commerce_events' | 'daily_entries' | 'events' | 'mails' | 'webhook_deliveries',
  days: number,
): Batch {
  const first = firstIdAt(Date.now() - days * MS_PER_DAY)
  return async (db, rows) => {
    const { numAffectedRows } = await sql`
      delete from ${sql.table(table)} where id in (
        select id from ${sql.table(table)} where id < ${first} order by id limit ${rows})`.execute(db)
    return Number(numAffectedRows ?? 0)
  }
}

/**
 * The condition for marks that were due more than a day before the time up to which all events are written. No run reads expiries that old.
 */
const MARKED_AND_PAST = sql`due < (select min(until) from event_schedules) - interval '1 day'`

/** The condition for mails that count toward limits of 24 hours, or whose attempt runs. */
const COUNTED_MAIL = sql`worker is not null or attempted_at > now() - interval '1 day'`

/**
 * Returns a batch that deletes the oldest rows of owners with too many rows, except those in `counted`. It counts the rows of each owner only when all owners together
 * have more rows than one owner may have.
 */
function excess(
  table: 'events' | 'mails' | 'webhook_deliveries',
  owner: 'organization_id' | 'endpoint_id',
  most: number,
  counted = sql`false`,
): Batch {
  const [rowsOf, ownerOf] = [sql.table(table), sql.ref(owner)]
  return async (db, rows) => {
    const { numAffectedRows } = await sql`
      with large as materialized (
        select ${ownerOf} as owner from ${rowsOf}
        where (select count(*) from (select from ${rowsOf} limit ${most + 1}) counted) > ${most}
        group by ${ownerOf} having count(*) > ${most} limit 10
      ), kept as (
        select owner, (select e.id from ${rowsOf} e where e.${ownerOf} = l.owner order by e.id desc offset ${most - 1} limit 1) as id
        from large l
      )
      delete from ${rowsOf} where id in (
        select e.id from kept k join lateral (
          select id from ${rowsOf} e where e.${ownerOf} = k.owner and e.id < k.id and (${counted}) is not true order by e.id limit ${rows}
        ) e on true limit ${rows})`.execute(db)
    return Number(numAffectedRows ?? 0)
  }
}

/**
 * Runs batches until a batch deletes fewer rows than it may. Returns the number of deleted rows, or null when another process holds the
 * lock.
 */
async function runAll(
  db: Db,
  batch: Batch,
  { batchRows = BATCH_ROWS, signal }: RetentionOptions,
): Promise<number | null> {
  for (let total = 0; ;) {
    const deleted = await inOneProcess(db, LOCK, (transaction) => batch(transaction, batchRows))
    if (deleted === null) return total === 0 ? null : total
    total += deleted
    if (deleted < batchRows || signal?.aborted === true) return total
    await sleep(PAUSE_MS)
  }
}

/**
 * Deletes the oldest rows of an organization with ids before `end` until they had at least `bytes` bytes. Returns their number and their
 * bytes. Entries of the operator remain.
 */
async function freeBytes(
  db: Db,
  given: { table: 'events' | 'audit_log'; organizationId: string; bytes: number; end: string },
  { batchRows = BATCH_ROWS, signal }: RetentionOptions,
): Promise<{ rows: number; bytes: number }> {
  const table = sql.table(given.table)
  const removable = given.table === 'audit_log' ? sql`actor ->> 'type' <> 'OPERATOR'` : sql`true`
  const freed = { rows: 0, bytes: 0 }
  for (;;) {
    const deleted = await inOneProcess(db, LOCK, (transaction) =>
      sql<{ bytes: number }>`
        delete from ${table} where id in (
          select id from ${table} where organization_id = ${given.organizationId} and id < ${given.end} and bytes > 0 and ${removable}
          order by id limit ${batchRows})
        returning bytes`.execute(transaction),
    )
    if (deleted === null) return freed
    freed.rows += deleted.rows.length
    freed.bytes += deleted.rows.reduce((sum, { bytes }) => sum + bytes, 0)
    if (freed.bytes >= given.bytes || deleted.rows.length < batchRows || signal?.aborted === true) return freed
    await sleep(PAUSE_MS)
  }
}

/** Deletes events, and then audit entries, of organizations that have nearly used up `storedBytes`. Returns the number of deleted rows. */
async function freeStoredBytes(db: Db, options: RetentionOptions): Promise<number> {
  const end = { events: firstIdAt(Date.now()), audit_log: firstIdAt(Date.now() - LEAST_AUDIT_DAYS * MS_PER_DAY) }
  let rows = 0
  for (const { organizationId, quota, used, limit } of await listDiskUses(db, FULL_SHARE)) {
    if (quota !== 'storedBytes') continue
    let bytes = used - limit * FULL_SHARE
    for (const table of ['events', 'audit_log'] as const) {
      if (bytes <= 0) break
      const freed = await freeBytes(db, { table, organizationId, bytes, end: end[table] }, options)
      rows += freed.rows
      bytes -= freed.bytes
    }
  }
  return rows
}

/** Returns a batch that deletes the oldest activity entries of an organization, up to the id `last`. */
function oldestActivity(organizationId: string, last: string): Batch {
  return async (db, rows) => {
    const { numAffectedRows } = await sql`
      delete from activity where (at, id) in (
        select at, id from activity where organization_id = ${organizationId} and id <= ${last} order by id limit ${rows})`.execute(
      db,
    )
    return Number(numAffectedRows ?? 0)
  }
}

/**
 * Deletes the oldest activity entries of organizations with too many. Returns the number of deleted rows. The number of an organization's
 * entries is estimated from a sample of the pages, because a count would read the whole table. Two processes that find the same excess
 * delete the same entries.
 */
async function trimActivity(db: Db, options: RetentionOptions): Promise<number> {
  const { maxActivity: most = MAX_ACTIVITY } = options
  const percent = Math.min(100, (100 * SAMPLED_ROWS) / Math.min(...Object.values(most)))
  const { rows } = await sql<{ id: string; last: string }>`
    select o.id, oldest.last
    from (
      select organization_id, round(count(*) * 100 / ${percent}::float8)::bigint as entries
      from activity tablesample system (${percent}) group by organization_id
    ) sampled join organizations o on o.id = sampled.organization_id
      cross join lateral (
        select id as last from activity where organization_id = o.id order by id
        offset greatest(sampled.entries - (${JSON.stringify(most)}::jsonb ->> o.plan)::bigint - 1, 0) limit 1
      ) oldest
    where sampled.entries > (${JSON.stringify(most)}::jsonb ->> o.plan)::bigint`.execute(db)
  let deleted = 0
  for (const { id, last } of rows) deleted += (await runAll(db, oldestActivity(id, last), options)) ?? 0
  return deleted
}

/**
 * Deletes the remaining rows of a deleted organization. The operator's audit entries about it are kept for the retention of the audit log.
 * Returns false when rows remain for the next run.
 */
async function forgetOrganization(db: Db, organizationId: string, options: RetentionOptions): Promise<boolean> {
  const own = sql`organization_id = ${organizationId} and actor ->> 'type' <> 'OPERATOR'`
  const events = batchOf('events', sql`organization_id = ${organizationId}`, sql``)
  const deliveries = batchOf('webhook_deliveries', sql`organization_id = ${organizationId}`)
  // The service has no permission to update the audit log, so it cannot lock its rows.
  for (const batch of [oldestActivity(organizationId, LAST_ID), events, deliveries, batchOf('audit_log', own, sql``)])
    if ((await runAll(db, batch, options)) === null) return false
  // Each statement deletes the counts of one day, which bounds its duration.
  const { rows } = await sql<{ day: Date }>`
    select generate_series(date_trunc('day', min(hour)), now(), interval '1 day') as day from check_counts`.execute(db)
  for (const { day } of rows) {
    const counts = async (transaction: Db) => {
      await sql`
        delete from check_counts
        where hour >= ${day} and hour < ${day}::timestamptz + interval '1 day' and organization_id = ${organizationId}`.execute(
        transaction,
      )
      return 0
    }
    if (options.signal?.aborted === true || (await inOneProcess(db, LOCK, counts)) === null) return false
  }
  await db.deleteFrom('deletedOrganizations').where('id', '=', organizationId).execute()
  return true
}

/** Applies the retention of every kind of row once. Returns the number of deleted rows for each kind with at least one deleted row. */
export async function applyRetention(db: Db, options: RetentionOptions): Promise<Record<string, number>> {
  const { days } = options
  const sweeps: readonly [string, Batch][] = [
    ['expiredRules', expiredRules(days.expiredRules)],
    ['revokedCredentials', batchOf('credentials', sql`revoked_at < ${before(days.revokedCredentials)}`)],
    ['acknowledgedAlerts', batchOf('alerts', sql`acknowledged_at < ${before(days.acknowledgedAlerts)}`)],
    ['auditEntries', oldestIds('audit_log', days.audit)],
    ['events', oldestIds('events', EVENT_DAYS)],
    ['excessEvents', excess('events', 'organization_id', options.maxEvents ?? MAX_EVENTS)],
    ['webhookDeliveries', oldestIds('webhook_deliveries', EVENT_DAYS)],
    ['excessDeliveries', excess('webhook_deliveries', 'endpoint_id', options.maxEvents ?? MAX_DELIVERIES)],
    ['mails', oldestIds('mails', EVENT_DAYS)],
    ['excessMails', excess('mails', 'organization_id', options.maxEvents ?? MAX_MAILS, COUNTED_MAIL)],
    ['shopEvents', oldestIds('commerce_events', EVENT_DAYS)],
    [
      'licensesOfJobs',
      batchOf('license_job_rows', sql`job_id in (select id from license_jobs where ${JOB_ENDED})`, sql``),
    ],
    ['licenseJobs', batchOf('license_jobs', JOB_ENDED)],
    ['eventMarks', batchOf('event_marks', MARKED_AND_PAST, sql``)],
    ['mergedCustomers', batchOf('merged_customers', sql`merged_at < ${before(days.mergedCustomers)}`)],
    ['dailyEntries', oldestIds('daily_entries', LAST_DAYS)],
    ['monitoredMatches', batchOf('monitored_matches', sql`hour < ${before(LAST_DAYS)}`, sql``)],
    ['foldedRules', batchOf('folded_rules', sql`folded_at < ${before(FOLDED_RULE_DAYS)}`)],
    [
      'sessions',
      batchOf('sessions', sql`expires_at < now() or last_used_at < now() - ${SESSION_IDLE_HOURS} * interval '1 hour'`),
    ],
    ['portalSessions', batchOf('portal_sessions', sql`expires_at < now()`)],
    ['invitations', batchOf('invitations', sql`expires_at < now()`)],
    ['passkeyChallenges', batchOf('passkey_challenges', sql`expires_at < now()`)],
    ['openidAttempts', batchOf('openid_attempts', sql`expires_at < now()`)],
    ['storedResponses', batchOf('idempotency_keys', sql`created_at < ${before(IDEMPOTENCY_DAYS)}`)],
  ]
  const deleted: Record<string, number> = {}
  for (const [name, batch] of sweeps) {
    const count = await runAll(db, batch, options)
    if (count === null || options.signal?.aborted === true) return deleted
    if (count > 0) deleted[name] = count
  }
  const freed = await freeStoredBytes(db, options)
  if (freed > 0) deleted['storedBytes'] = freed
  const trimmed = await trimActivity(db, options)
  if (trimmed > 0) deleted['excessActivity'] = trimmed
  const organizations = await db.selectFrom('deletedOrganizations').select('id').limit(100).execute()
  for (const { id } of organizations) if (!(await forgetOrganization(db, id, options))) return deleted
  return deleted
}

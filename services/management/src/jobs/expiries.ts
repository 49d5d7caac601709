/**
 * Writes the events about licenses and credentials that expire soon, licenses that have expired or have ended their grace period, and
 * expired access rules (docs/api.md#w1). Any number of processes may run this job. A lock lets one process at a time write the events of a schedule. `event_schedules` stores the time up to
 * which all events have been written, so that none is missed while no process runs. Each run also reads expiries shortly before that time,
 * because a transaction may set an expiry that has passed when it commits. `event_marks` prevents an event from being written twice.
 */

import type { EventType } from '@keyward/contract/management/events'
import { EXPIRING_DAYS } from '@keyward/contract/vocabulary'
import { type RawBuilder, sql } from 'kysely'

import type { Db } from '../context.ts'
import { type OwnedEvent, writeEvents } from '../events/writer.ts'
import { addEndingMails } from '../mails/outbox.ts'
import { selectAllRules, showRule } from '../resources/access-rules/rule-rows.ts'
import { expiringCredentialEvents } from '../resources/credentials/store.ts'
import { LICENSE_END } from '../resources/licenses/list.ts'
import { licensesById } from './licenses.ts'

/**
 * A run reads expiries from this many seconds before the stored time. This period exceeds the duration of any transaction of this service.
 */
const LOOK_BACK_SECONDS = 600
const BATCH = 200
const MS_PER_DAY = 86_400_000
/** The number of days before the expiry of an API key or a token at which its event is due. */
const CREDENTIAL_EXPIRING_DAYS = 14
const ACTOR = { type: 'SYSTEM' } as const

interface Schedule {
  /** The name of the schedule. Its marks begin with this name. */
  name: string
  table: 'licenses' | 'accessRules' | 'credentials'
  /** The number of days before the expiry at which the event is due. */
  daysBefore: number
  /** The time of the event, if it is not that of the expiry. */
  time?: RawBuilder<Date>
  condition: RawBuilder<unknown>
  write: (db: Db, ids: readonly string[]) => Promise<void>
}

async function writeLicenseEvents(db: Db, type: EventType, ids: readonly string[], more: object = {}): Promise<void> {
  const licenses = await licensesById(db, ids)
  const events = [...licenses.values()].map(({ organizationId, license: resource }): OwnedEvent => ({
    type,
    resource,
    organizationId,
    actor: ACTOR,
    more,
  }))
  await writeEvents(db, events)
}

async function writeRuleEvents(db: Db, ids: readonly string[]): Promise<void> {
  const rows = await selectAllRules(db)
    .select('accessRules.organizationId')
    .where('accessRules.id', 'in', ids)
    .execute()
  const events = rows.map((row): OwnedEvent => ({
    type: 'access_rule.expired',
    resource: showRule(row),
    organizationId: row.organizationId,
    actor: ACTOR,
  }))
  await writeEvents(db, events)
}

const notRevoked = sql`status <> 'revoked'`
const schedules: readonly Schedule[] = [
  ...EXPIRING_DAYS.map((days): Schedule => ({
    name: `license.expiring ${days}`,
    table: 'licenses',
    daysBefore: days,
    // A license that was created less than `days` days before its expiry gets no event.
    condition: sql`${notRevoked} and created_at <= expires_at - ${days} * interval '1 day'`,
    async write(db, ids) {
      await writeLicenseEvents(db, 'license.expiring', ids, { days })
      await addEndingMails(db, days, ids)
    },
  })),
  {
    name: 'license.expired',
    table: 'licenses',
    daysBefore: 0,
    condition: notRevoked,
    write: (db, ids) => writeLicenseEvents(db, 'license.expired', ids),
  },
  {
    name: 'license.grace_ended',
    table: 'licenses',
    daysBefore: 0,
    time: LICENSE_END,
    condition: sql`grace_days > 0 and ${notRevoked}`,
    write: (db, ids) => writeLicenseEvents(db, 'license.grace_ended', ids),
  },
  {
    name: 'credential.expiring',
    table: 'credentials',
    daysBefore: CREDENTIAL_EXPIRING_DAYS,
    // A credential that was created less than this long before its expiry gets no event.
    condition: sql`revoked_at is null and created_at <= expires_at - ${CREDENTIAL_EXPIRING_DAYS} * interval '1 day'`,
    write: async (db, ids) => writeEvents(db, await expiringCredentialEvents(db, ids)),
  },
  { name: 'access_rule.expired', table: 'accessRules', daysBefore: 0, condition: sql`true`, write: writeRuleEvents },
]

/** Locks the schedule and returns the time up to which its events have been written. Returns null while another process holds the lock. */
async function lockSchedule(db: Db, name: string, now: Date): Promise<Date | null> {
  // At the first run, no past expiry is due.
  await sql`insert into event_schedules (name, until) values (${name}, ${now}) on conflict do nothing`.execute(db)
  const row = await db
    .selectFrom('eventSchedules')
    .select('until')
    .where('name', '=', name)
    .forUpdate()
    .skipLocked()
    .executeTakeFirst()
  return row?.until ?? null
}

/** Writes one batch of due events. Returns whether more events may be due. */
async function runSchedule(db: Db, schedule: Schedule, now: Date): Promise<boolean> {
  const since = await lockSchedule(db, schedule.name, now)
  if (since === null) return false
  const aheadMs = schedule.daysBefore * MS_PER_DAY
  const { time = sql`expires_at` } = schedule
  const [after, to] = [since.getTime() - LOOK_BACK_SECONDS * 1_000, now.getTime()].map((ms) => new Date(ms + aheadMs))
  const { rows } = await sql<{ resourceId: string }>`
    with due as (
      select id, ${time} as expiry, ${schedule.name} || ' ' || extract(epoch from ${time}) as mark from ${sql.table(schedule.table)}
      where ${time} > ${after} and ${time} <= ${to} and ${schedule.condition}
    )
    insert into event_marks (resource_id, mark, due)
    select id, mark, expiry - ${schedule.daysBefore} * interval '1 day' from due
    where not exists (select from event_marks m where m.resource_id = due.id and m.mark = due.mark)
    order by expiry limit ${BATCH}
    on conflict do nothing returning resource_id`.execute(db)
  if (rows.length > 0)
    await schedule.write(
      db,
      rows.map(({ resourceId }) => resourceId),
    )
  const isMore = rows.length === BATCH
  if (!isMore && since < now)
    await db.updateTable('eventSchedules').set({ until: now }).where('name', '=', schedule.name).execute()
  return isMore
}

/** Writes the events that are due at `now`, in transactions of bounded length. */
export async function writeDueEvents(db: Db, now: Date, signal?: AbortSignal): Promise<void> {
  for (const schedule of schedules) {
    for (let isMore = true; isMore;) {
      isMore = await db.transaction().execute((transaction) => runSchedule(transaction, schedule, now))
      if (signal?.aborted === true) return
    }
  }
}

/**
 * Writes the events about quotas (docs/api.md#w1), when the use of a quota reaches 80 % and when it reaches 100 %. After the use has fallen
 * below one of these levels, reaching the level again causes another event. The function `claim_slots` of the database reads the level of
 * `machines`.
 */

import { quotaName } from '@keyward/contract'
import { sql } from 'kysely'

import type { Db } from '../context.ts'
import { inOneProcess } from '../crud/in-one-process.ts'
import { type OwnedEvent, writeEvents } from '../events/writer.ts'
import { type Limits, limitOf } from '../quotas/quotas.ts'

const MARKS = [100, 80] as const
const ACTOR = { type: 'SYSTEM' } as const

interface Use extends Limits {
  organizationId: string
  quota: string
  used: number
  percent: number | null
}

/** Returns the use of every quota, and the level in percent that it had reached at the last run. */
async function readUses(db: Db): Promise<Use[]> {
  const { rows } = await sql<Use>`
    select u.organization_id, u.quota, sum(u.used)::bigint as used, o.plan, o.quotas, l.percent
    from organization_usage u join organizations o on o.id = u.organization_id
      left join quota_levels l on l.organization_id = u.organization_id and l.quota = u.quota
    where u.day is null or u.day = utc_day()
    group by u.organization_id, u.quota, o.id, l.percent`.execute(db)
  return rows
}

/** Writes the events in one transaction. Does nothing while another process writes these events. */
export async function writeQuotaEvents(db: Db): Promise<void> {
  await inOneProcess(db, 'quota events', async (transaction) => {
    const events: OwnedEvent[] = []
    for (const { organizationId, used, percent, ...use } of await readUses(transaction)) {
      const quota = quotaName.safeParse(use.quota).data
      if (quota === undefined) continue
      const limit = limitOf(use, quota)
      const reached = MARKS.find((mark) => used > 0 && used * 100 >= limit * mark) ?? 0
      if (reached === (percent ?? 0)) continue
      await sql`
        insert into quota_levels (organization_id, quota, percent) values (${organizationId}, ${quota}, ${reached})
        on conflict (organization_id, quota) do update set percent = excluded.percent`.execute(transaction)
      if (reached > (percent ?? 0))
        events.push({
          type: 'quota.reached',
          more: { quota, percent: reached, used, limit },
          organizationId,
          actor: ACTOR,
        })
    }
    await writeEvents(transaction, events)
  })
}

/**
 * Writes the events `license.blacklisted` (docs/api.md#w1). Validators count the blacklisted checks of each license in one row. A minute
 * after a row was created, one transaction writes its event and deletes the row. Any number of processes may run this job.
 */

import { sql } from 'kysely'

import type { Db } from '../context.ts'
import { type OwnedEvent, writeEvents } from '../events/writer.ts'
import { licensesById } from './licenses.ts'

const BATCH = 200
const ACTOR = { type: 'SYSTEM' } as const

interface BlacklistedChecks {
  licenseId: string
  count: number
  firstAt: Date
  lastAt: Date
}

/** Writes the events of one batch in the given transaction. Returns the number of rows in the batch. */
async function writeBatch(db: Db): Promise<number> {
  const { rows } = await sql<BlacklistedChecks>`
    delete from blacklisted_checks where license_id in (
      select license_id from blacklisted_checks where since <= now() - interval '1 minute'
      order by since limit ${BATCH} for update skip locked)
    returning license_id, count, first_at, last_at`.execute(db)
  const licenses = await licensesById(
    db,
    rows.map(({ licenseId }) => licenseId),
  )
  const events = rows.flatMap(({ licenseId, count, firstAt, lastAt }): OwnedEvent[] => {
    const owner = licenses.get(licenseId)
    if (owner === undefined) return [] // deleted
    const checks = { count, firstAt: firstAt.toISOString(), lastAt: lastAt.toISOString() }
    const { organizationId, license: resource } = owner
    return [{ type: 'license.blacklisted', resource, organizationId, actor: ACTOR, more: { checks } }]
  })
  await writeEvents(db, events)
  return rows.length
}

/** Writes the due events, in transactions of bounded length. */
export async function writeBlacklistedEvents(db: Db, signal?: AbortSignal): Promise<void> {
  for (;;) {
    const written = await db.transaction().execute(writeBatch)
    if (written < BATCH || signal?.aborted === true) return
  }
}

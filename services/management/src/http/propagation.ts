/**
 * `Prefer: wait=N` (RFC 7240): the answer comes when every live validator has applied the change. A validator writes down the
 * snapshot of the change log that it has applied; the change is in it when its transaction is visible in that snapshot.
 */
import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import type { Db } from './context.ts'

const longestWaitSeconds = 10
const pollMs = 15

/** A validator that has not written for this long answers no checks that count; see "How changes travel". */
export const liveWithin = sql`interval '5 seconds'`

/** The seconds to wait at most, or null when the caller does not ask for it. What cannot be read is ignored, as the RFC has it. */
export function parsePrefer(header: string | undefined): number | null {
  const seconds = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(header ?? '')?.[1]
  return seconds === undefined ? null : Math.min(longestWaitSeconds, Number(seconds))
}

/** The id of the running transaction, or null when it has logged no change, so that there is nothing to wait for. */
export async function changingTransaction(db: Db): Promise<string | null> {
  const { rows } = await sql<{ id: string }>`
    select xid::text as id from change_log where xid = pg_current_xact_id_if_assigned() limit 1`.execute(db)
  return rows[0]?.id ?? null
}

/** The id of the running transaction. Whoever has applied it has applied everything that was committed before. */
export async function thisTransaction(db: Db): Promise<string | null> {
  const { rows } = await sql<{ id: string }>`select pg_current_xact_id()::text as id`.execute(db)
  return rows[0]?.id ?? null
}

async function countApplied(db: Db, id: string | null): Promise<{ applied: number; live: number }> {
  const { rows } = await sql<{ applied: number; live: number }>`
    select count(*)::integer as live,
      (count(*) filter (where ${id}::xid8 is null or pg_visible_in_snapshot(${id}::xid8, applied::pg_snapshot)))::integer as applied
    from validators where applied is not null and seen_at > now() - ${liveWithin}`.execute(db)
  return rows[0] ?? { applied: 0, live: 0 }
}

/** Waits until all live validators have applied the transaction, or the time is up; tells how many have it. */
export async function waitForValidators(db: Db, id: string | null, seconds: number): Promise<Record<string, string>> {
  const deadlineMs = Date.now() + seconds * 1_000
  let state = await countApplied(db, id)
  while (state.applied < state.live && Date.now() < deadlineMs) {
    await sleep(pollMs)
    state = await countApplied(db, id)
  }
  return { 'preference-applied': 'wait', 'x-applied-by': `${state.applied}/${state.live}` }
}

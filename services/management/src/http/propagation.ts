/**
 * `Prefer: wait=N` (RFC 7240, docs/api.md#m3): the response is sent when every live validator has applied the change. Validators
 * write the snapshot of the change log that they have applied; a change is applied when its transaction is visible in that snapshot.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import type { Db } from './context.ts'

const MAX_WAIT_SECONDS = 10
const POLL_MS = 15

/** A validator that has not written its state for this long is not live (docs/api.md#p4). */
export const LIVE_WITHIN = sql`interval '5 seconds'`

/** Returns the seconds to wait, at most 10, or null without a `wait` preference. A malformed header is ignored, as in RFC 7240. */
export function parsePrefer(header: string | undefined): number | null {
  const seconds = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(header ?? '')?.[1]
  return seconds === undefined ? null : Math.min(MAX_WAIT_SECONDS, Number(seconds))
}

/** Returns the id of the running transaction, or null when it has logged no change for validators. */
export async function changingTransaction(db: Db): Promise<string | null> {
  const { rows } = await sql<{ id: string }>`
    select xid::text as id from change_log where xid = pg_current_xact_id_if_assigned() limit 1`.execute(db)
  return rows[0]?.id ?? null
}

/** Returns the id of the running transaction. A validator that has applied it has applied every transaction committed before. */
export async function thisTransaction(db: Db): Promise<string | null> {
  const { rows } = await sql<{ id: string }>`select pg_current_xact_id()::text as id`.execute(db)
  return rows[0]?.id ?? null
}

async function countApplied(db: Db, id: string | null): Promise<{ applied: number; live: number }> {
  const { rows } = await sql<{ applied: number; live: number }>`
    select count(*)::integer as live,
      (count(*) filter (where ${id}::xid8 is null or pg_visible_in_snapshot(${id}::xid8, applied::pg_snapshot)))::integer as applied
    from validators where applied is not null and seen_at > now() - ${LIVE_WITHIN}`.execute(db)
  return rows[0] ?? { applied: 0, live: 0 }
}

/** Waits until all live validators have applied the transaction or the time is over. Returns headers with the number that have. */
export async function waitForValidators(db: Db, id: string | null, seconds: number): Promise<Record<string, string>> {
  const deadlineMs = Date.now() + seconds * 1_000
  let state = await countApplied(db, id)
  while (state.applied < state.live && Date.now() < deadlineMs) {
    await sleep(POLL_MS)
    state = await countApplied(db, id)
  }
  return { 'preference-applied': 'wait', 'x-applied-by': `${state.applied}/${state.live}` }
}

/**
 * Implements `Prefer: wait=N` (RFC 7240, docs/api.md#m3). The response is sent when every live validator has applied the change, or after N
 * seconds. Validators write the snapshot of the change log that they have applied. A change is applied when its transaction is visible in
 * that snapshot.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { Tally } from '@keyward/runtime/tally'
import { sql } from 'kysely'

import type { Db } from '../context.ts'

const MAX_WAIT_SECONDS = 10
const POLL_MS = 15

/** The maximum age of the last heartbeat of a live validator (docs/api.md#p4). */
export const LIVE_WITHIN = sql`interval '5 seconds'`

/**
 * Returns the number of seconds to wait, at most 10, or null without a `wait` preference. A malformed header is ignored, as in RFC 7240.
 */
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

/**
 * Returns the id of the running transaction. A validator that has applied this transaction has applied every transaction that was committed
 * before this call.
 */
export async function thisTransaction(db: Db): Promise<string | null> {
  const { rows } = await sql<{ id: string }>`select pg_current_xact_id()::text as id`.execute(db)
  return rows[0]?.id ?? null
}

/**
 * The maximum number of requests of one organization that wait at once. A further request gets the current numbers of validators without a
 * wait.
 */
const MAX_WAITING = 100

interface State {
  applied: number
  live: number
}

interface Waiting {
  id: string | null
  organizationId: string
  deadlineMs: number
  settle(state: State): void
  fail(error: unknown): void
}

/**
 * Returns, for each element of `waiting`, the number of live validators and the number of those that have applied the transaction. While a
 * validator applies a large change of other organizations, its details contain a later snapshot than `applied` (`ValidatorDetails`). The
 * operator's changes affect any organization, so they wait for `applied`. The snapshot `1:1:` means that the snapshots of the validator
 * belong to another server.
 */
async function countApplied(db: Db, waiting: readonly Pick<Waiting, 'id' | 'organizationId'>[]): Promise<State[]> {
  const ids = waiting.map(({ id }) => id)
  const organizations = waiting.map(({ organizationId }) => organizationId)
  const { rows } = await sql<State>`
    select count(v.id)::integer as live,
      (count(v.id) filter (where w.id is null or pg_visible_in_snapshot(w.id, v.applied::pg_snapshot)
        or (w.organization <> '' and v.applied <> '1:1:' and not v.details->'others'->'except' @> to_jsonb(w.organization)
          and pg_visible_in_snapshot(w.id, (v.details->'others'->>'snapshot')::pg_snapshot))))::integer as applied
    from unnest(${ids}::xid8[], ${organizations}::text[]) with ordinality as w (id, organization, place)
    left join validators v on v.applied is not null and v.seen_at > now() - ${LIVE_WITHIN}
    group by w.place order by w.place`.execute(db)
  return rows
}

export interface Propagation {
  /**
   * Waits until all live validators have applied the transaction, or until `seconds` have passed. Returns headers with the number of
   * validators that have applied it.
   */
  wait(organizationId: string, id: string | null, seconds: number): Promise<Record<string, string>>
}

/** Creates the `Propagation` of one process. One statement at a time reads the state of validators for all waiting requests together. */
export function createPropagation(db: Db): Propagation {
  const waiting = new Set<Waiting>()
  const byOrganization = new Tally<string>()
  let isPolling = false

  const poll = async (): Promise<void> => {
    const asked = [...waiting]
    try {
      const states = await countApplied(db, asked)
      for (const [at, one] of asked.entries()) {
        const state = states[at] ?? { applied: 0, live: 0 }
        if (state.applied >= state.live || Date.now() >= one.deadlineMs) one.settle(state)
      }
    } catch (error) {
      for (const one of asked) one.fail(error)
    }
  }

  const pollAll = async (): Promise<void> => {
    isPolling = true
    for (; waiting.size > 0; await sleep(POLL_MS)) await poll()
    isPolling = false
  }

  return {
    async wait(organizationId, id, seconds) {
      const waitMs = byOrganization.of(organizationId) < MAX_WAITING ? seconds * 1_000 : 0
      byOrganization.add(organizationId)
      try {
        const { applied, live } = await new Promise<State>((resolve, reject) => {
          const one: Waiting = {
            id,
            organizationId,
            deadlineMs: Date.now() + waitMs,
            settle(state) {
              waiting.delete(one)
              resolve(state)
            },
            fail(error) {
              waiting.delete(one)
              reject(error)
            },
          }
          waiting.add(one)
          if (!isPolling) void pollAll()
        })
        return { 'preference-applied': 'wait', 'x-applied-by': `${applied}/${live}` }
      } finally {
        byOrganization.add(organizationId, -1)
      }
    },
  }
}

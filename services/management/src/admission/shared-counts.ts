/**
 * Counts requests in windows of ten seconds, by owner, such as a credential or an organization. Every request is counted in memory, so no
 * request waits for Postgres. Once a second, one statement adds the new counts to Postgres and returns the sums over all management
 * processes. Until the next exchange, the counts of a process do not include new requests to other processes.
 */

import { repeat } from '@keyward/runtime'
import { sql } from 'kysely'

import type { Db } from '../context.ts'

export const WINDOW_MS = 10_000
const EXCHANGE_INTERVAL_MS = 1_000
/** The maximum number of owners in one exchange. The counts of further owners are sent in the next exchange. */
const MAX_EXCHANGED = 5_000

/** The count of an owner in the current window. */
export interface Count {
  used: number
  /** The time until the window ends. */
  remainingMs: number
}

interface Entry {
  /** The sum of the count of this process and the last known counts of the other processes. */
  used: number
  /** The number of requests to this process that have not been added to the counts in Postgres yet. */
  unsent: number
  endsAtMs: number
}

export interface SharedCounts {
  /** Counts a request, unless the owner has reached its limit. For a request that is not counted, `used` is above the limit. */
  count(owner: string, limit: number): Count
  /** Adds points to the current window of an owner, also beyond its limit. Does nothing without a window, which `count` begins. */
  add(owner: string, points: number): void
  close(): Promise<void>
}

interface Shared {
  key: string
  points: number
  remainingMs: number
}

/** Adds the counts to those in Postgres and returns the sums. The order of the keys prevents deadlocks between processes. */
async function addAll(
  db: Db,
  keys: readonly string[],
  points: readonly number[],
  ends: readonly number[],
): Promise<Shared[]> {
  const { rows } = await sql<Shared>`
    with clock as (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms)
    insert into rate_limits as r (key, points, expire)
    select n.key, n.points, clock.ms + n.remaining
    from unnest(${keys}::text[], ${points}::integer[], ${ends}::bigint[]) as n (key, points, remaining), clock order by n.key
    on conflict (key) do update set
      points = case when r.expire > (select ms from clock) then r.points + excluded.points else excluded.points end,
      expire = case when r.expire > (select ms from clock) then r.expire else excluded.expire end
    returning key, points, (expire - (select ms from clock))::integer as "remainingMs"`.execute(db)
  return rows
}

export function createSharedCounts(db: Db, onError: (error: unknown) => void): SharedCounts {
  const entries = new Map<string, Entry>()

  const exchange = async (): Promise<void> => {
    const nowMs = Date.now()
    const sent: [string, Entry, number][] = []
    for (const [owner, entry] of entries)
      if (entry.endsAtMs <= nowMs) entries.delete(owner)
      else if (entry.unsent > 0 && sent.length < MAX_EXCHANGED) {
        sent.push([owner, entry, entry.unsent])
        entry.unsent = 0
      }
    if (sent.length === 0) return
    const rows = await addAll(
      db,
      sent.map(([owner]) => owner),
      sent.map(([, , points]) => points),
      sent.map(([, entry]) => entry.endsAtMs - nowMs),
    )
    const receivedMs = Date.now()
    for (const { key, points, remainingMs } of rows) {
      const entry = entries.get(key)
      if (!entry) continue
      entry.used = points + entry.unsent
      entry.endsAtMs = receivedMs + Math.min(WINDOW_MS, remainingMs)
    }
  }

  // While Postgres is unreachable, each process counts only its own requests.
  const stop = repeat(exchange, { everyMs: EXCHANGE_INTERVAL_MS, onError })

  return {
    count(owner, limit) {
      const nowMs = Date.now()
      let entry = entries.get(owner)
      if (!entry || entry.endsAtMs <= nowMs) {
        entry = { used: 0, unsent: 0, endsAtMs: nowMs + WINDOW_MS }
        entries.set(owner, entry)
      }
      const remainingMs = entry.endsAtMs - nowMs
      if (entry.used >= limit) return { used: limit + 1, remainingMs }
      entry.used++
      entry.unsent++
      return { used: entry.used, remainingMs }
    },
    add(owner, points) {
      const entry = entries.get(owner)
      if (!entry || entry.endsAtMs <= Date.now()) return
      entry.used += points
      entry.unsent += points
    },
    close: stop,
  }
}

/** Deletes the counts of windows that ended more than a minute ago. */
export async function deleteOldCounts(db: Db): Promise<void> {
  await sql`delete from rate_limits where expire < (extract(epoch from now()) * 1000)::bigint - 60000`.execute(db)
}

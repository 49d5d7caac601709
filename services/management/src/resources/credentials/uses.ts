/**
 * Records the last use of each credential and session, with a precision of one minute. Uses are collected in memory and written every
 * second. The uses of credentials have a separate table, so that validators do not receive them as changes of credentials.
 */

import { repeat } from '@keyward/runtime'
import { sql } from 'kysely'

import type { Db } from '../../context.ts'

const RESOLUTION_MS = 60_000
const WRITE_INTERVAL_MS = 1_000
const MAX_REMEMBERED = 100_000

interface UseRecorder {
  record: (credentialId: string) => void
  /** Writes the collected uses and stops. */
  close(): Promise<void>
}

export function createUseRecorder(db: Db, onError: (error: unknown) => void): UseRecorder {
  const recordedAtMs = new Map<string, number>()
  let unwritten = new Set<string>()
  const write = async (): Promise<void> => {
    if (unwritten.size === 0) return
    const ids = [...unwritten].toSorted()
    unwritten = new Set()
    await sql`
      insert into credential_uses (credential_id, last_used_at)
      select id, now() from credentials where id = any(${ids}::uuid[]) order by id
      on conflict (credential_id) do update set last_used_at = greatest(credential_uses.last_used_at, excluded.last_used_at)
    `.execute(db)
    await sql`update sessions set last_used_at = now() where id = any(${ids}::uuid[])`.execute(db)
  }
  const stop = repeat(write, { everyMs: WRITE_INTERVAL_MS, onError })
  return {
    record(credentialId) {
      const nowMs = Date.now()
      if (nowMs - (recordedAtMs.get(credentialId) ?? 0) < RESOLUTION_MS) return
      if (recordedAtMs.size >= MAX_REMEMBERED) recordedAtMs.clear()
      recordedAtMs.set(credentialId, nowMs)
      unwritten.add(credentialId)
    },
    async close() {
      await stop()
      await write().catch(onError)
    },
  }
}

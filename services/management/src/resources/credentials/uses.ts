/**
 * When a credential was last used, coarsely: noted in memory at most once a minute for each, and written behind. It is kept apart
 * from the credentials, so that noting a use wakes no validator.
 */
import { sql } from 'kysely'

import type { Db } from '../../http/context.ts'

const coarseMs = 60_000
const writeEveryMs = 1_000
const remembered = 100_000

export interface UseRecorder {
  note(credentialId: string): void
  /** Writes what is noted and stops. */
  close(): Promise<void>
}

export function createUseRecorder(db: Db, onError: (error: unknown) => void): UseRecorder {
  const lastNotedMs = new Map<string, number>()
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
  }
  const timer = setInterval(() => void write().catch(onError), writeEveryMs)
  timer.unref()
  return {
    note(credentialId) {
      const nowMs = Date.now()
      if (nowMs - (lastNotedMs.get(credentialId) ?? 0) < coarseMs) return
      if (lastNotedMs.size >= remembered) lastNotedMs.clear()
      lastNotedMs.set(credentialId, nowMs)
      unwritten.add(credentialId)
    },
    async close() {
      clearInterval(timer)
      await write().catch(onError)
    },
  }
}

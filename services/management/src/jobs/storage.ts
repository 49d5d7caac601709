/** Measures the size of the database and the use of the quotas that bound it, for alerts. No label contains an organization. */

import type { Logger } from '@keyward/runtime'
import { sql } from 'kysely'
import { Gauge, type Registry } from 'prom-client'

import type { Db } from '../context.ts'
import { DISK_QUOTAS, listDiskUses } from '../quotas/quotas.ts'

/** The share of a limit from which the log names the organization. */
const NOTABLE_SHARE = 0.8
/** The maximum number of log entries of one measurement. */
const MAX_LOGGED = 10

/** Returns a function that measures once. */
export function createStorageMeter(db: Db, registry: Registry, log: Logger): () => Promise<void> {
  const size = new Gauge({
    name: 'keyward_management_database_bytes',
    help: 'The size of the database in bytes, without the write-ahead log.',
    registers: [registry],
  })
  const share = new Gauge({
    name: 'keyward_management_quota_ratio',
    help: 'The largest share of a quota of machines or bytes that any organization uses.',
    labelNames: ['quota'],
    registers: [registry],
  })
  return async () => {
    const { rows } = await sql<{ bytes: number }>`select pg_database_size(current_database()) as bytes`.execute(db)
    size.set(rows[0]?.bytes ?? 0)
    const uses = await listDiskUses(db, 0)
    for (const quota of DISK_QUOTAS) {
      const largest = uses.find((use) => use.quota === quota)
      share.set({ quota }, largest ? largest.used / largest.limit : 0)
    }
    for (const use of uses.filter(({ used, limit }) => used >= limit * NOTABLE_SHARE).slice(0, MAX_LOGGED))
      log.warn(use, 'an organization has nearly used up a quota')
  }
}

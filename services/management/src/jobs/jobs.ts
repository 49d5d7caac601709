/**
 * Writes, at intervals, the events that no request causes: those about changes by validators, blacklisted checks, expiries and quotas.
 * Every management process runs these jobs. Locks in Postgres keep two processes from writing the same event. All processes deliver
 * webhooks, in parallel with the jobs. Jobs and deliveries share a separate connection pool.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { createPool } from '@keyward/database'
import { createDatabase } from '@keyward/database/kysely'
import type { Logger } from '@keyward/runtime'
import { sql } from 'kysely'
import type { Registry } from 'prom-client'

import type { Db } from '../context.ts'
import type { Keyring } from '../keyring/keyring.ts'
import type { WebhookNetwork } from '../outbound/network.ts'
import { createSender } from '../outbound/sender.ts'
import { createWebhookMetrics } from '../webhooks/metrics.ts'
import { WebhookWorker } from '../webhooks/worker.ts'
import { writeBlacklistedEvents } from './blacklisted.ts'
import { writeDueEvents } from './expiries.ts'
import { writeOccurrences } from './occurrences.ts'
import { writeQuotaEvents } from './quota-levels.ts'

/** These connections suffice for one statement of each of the four jobs and three statements of the webhook worker at the same time. */
const CONNECTIONS = 7
const OCCURRENCES_MS = 500
const DUE_EVENTS_MS = 5_000
const QUOTAS_MS = 30_000
const BLACKLISTED_MS = 5_000
/** The minimum time between two log entries about errors. During an outage of Postgres, every run fails. */
const LOG_INTERVAL_MS = 10_000

/** Writes the events of all occurrences, in transactions of bounded length. */
export async function writeAllOccurrences(db: Db, signal?: AbortSignal): Promise<void> {
  for (;;) {
    const taken = await db.transaction().execute(async (transaction) => {
      const { rows } = await sql<{ locked: boolean }>`
        select pg_try_advisory_xact_lock(hashtext('keyward occurrences')) as locked`.execute(transaction)
      return rows[0]?.locked === true ? writeOccurrences(transaction) : 0
    })
    if (taken === 0 || signal?.aborted === true) return
  }
}

/** Returns the time of Postgres. This time determines which events are due, because the clocks of processes differ. */
async function databaseTime(db: Db): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select now() as now`.execute(db)
  return rows[0]!.now
}

interface JobOptions {
  config: { databaseUrl: string; webhookNetwork: WebhookNetwork }
  log: Logger
  keyring: Keyring
  registry: Registry
  /** Receives errors of idle connections. */
  onError: (error: unknown) => void
}

/** Starts the jobs and the delivery of webhooks. Returns a function that stops both and resolves when the running jobs have ended. */
export function startJobs({ config, log, keyring, registry, onError }: JobOptions): () => Promise<void> {
  const db = createDatabase(
    createPool(config.databaseUrl, { name: 'keyward-management-jobs', max: CONNECTIONS, onError }),
  )
  const sender = createSender(config.webhookNetwork)
  const worker = new WebhookWorker({ db, keyring, sender, metrics: createWebhookMetrics(registry), log })
  const stopping = new AbortController()
  const { signal } = stopping
  let lastLogMs = 0
  const repeat = async (everyMs: number, task: () => Promise<void>): Promise<void> => {
    for (;;) {
      if (signal.aborted) return
      await task().catch((error: unknown) => {
        if (Date.now() - lastLogMs < LOG_INTERVAL_MS) return
        lastLogMs = Date.now()
        log.error({ err: error }, 'events could not be written')
      })
      await sleep(everyMs, undefined, { signal }).catch(() => undefined)
    }
  }
  const running = Promise.all([
    repeat(OCCURRENCES_MS, () => writeAllOccurrences(db, signal)),
    repeat(DUE_EVENTS_MS, async () => writeDueEvents(db, await databaseTime(db), signal)),
    repeat(QUOTAS_MS, () => writeQuotaEvents(db)),
    repeat(BLACKLISTED_MS, () => writeBlacklistedEvents(db, signal)),
  ])
  return async () => {
    stopping.abort()
    await running
    await worker.close()
    await db.destroy()
  }
}

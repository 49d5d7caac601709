/**
 * Writes, at intervals, the events that no request causes: those about changes by validators, blacklisted checks, expiries and quotas. Also
 * signs the delegations of signing keys, changes many licenses at a time, and ends transactions that a validator holds open.
 * Every management process runs these jobs. Locks in Postgres keep two processes from writing the same event. All processes deliver
 * webhooks and send mails, in parallel with the jobs, with which they share a separate connection pool.
 */

import { createPool, endStuckValidators } from '@keyward/database'
import { createDatabase } from '@keyward/database/kysely'
import { type Logger, repeat, throttledLog } from '@keyward/runtime'
import { sql } from 'kysely'
import type { Registry } from 'prom-client'

import type { Db } from '../context.ts'
import { inOneProcess } from '../crud/in-one-process.ts'
import { runJobs } from '../crud/paged-jobs.ts'
import { signDelegations } from '../delegations/delegations.ts'
import type { Keyring } from '../keyring/keyring.ts'
import { createMailer } from '../mails/mailer.ts'
import type { MailOptions } from '../mails/smtp-options.ts'
import { startMailWorker } from '../mails/worker.ts'
import type { WebhookNetwork } from '../outbound/network.ts'
import { createSender } from '../outbound/sender.ts'
import { foldCounters } from '../quotas/quotas.ts'
import { runningJobs } from '../resources/license-jobs/run.ts'
import { createPortalSession } from '../resources/portal/store.ts'
import { applications } from '../resources/templates/apply.ts'
import { createWebhookMetrics } from '../webhooks/metrics.ts'
import { startWebhookWorker } from '../webhooks/worker.ts'
import { writeBlacklistedEvents } from './blacklisted.ts'
import { writeDueEvents } from './expiries.ts'
import { writeOccurrences } from './occurrences.ts'
import { writeQuotaEvents } from './quota-levels.ts'
import { createStorageMeter } from './storage.ts'

/** These connections suffice for one statement of each of the nine jobs and two statements of the workers of webhooks and of mails at the same time. */
const CONNECTIONS = 13
const SYSTEM = { type: 'SYSTEM' } as const
const OCCURRENCES_MS = 500
const DUE_EVENTS_MS = 5_000
/** In this time, an organization does not use up the last 20 % of its quota of machines, which claims count only from 80 % on. */
const QUOTAS_MS = 10_000
const BLACKLISTED_MS = 5_000
const DELEGATIONS_MS = 1_000
const STORAGE_MS = 60_000
const PAGED_MS = 1_000
const STUCK_MS = 10_000
/** The age from which a transaction of a validator counts as stuck. */
const STUCK_SECONDS = 30
/** The minimum time between two log entries about errors. During an outage of Postgres, every run fails. */
const LOG_INTERVAL_MS = 10_000

/** Writes the events of all occurrences, in transactions of bounded length. */
async function writeAllOccurrences(db: Db, signal?: AbortSignal): Promise<void> {
  for (;;) {
    const taken = (await inOneProcess(db, 'occurrences', writeOccurrences)) ?? 0
    if (taken === 0 || signal?.aborted === true) return
  }
}

/** Returns the time of Postgres. This time determines which events are due, because the clocks of processes differ. */
async function databaseTime(db: Db): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select now() as now`.execute(db)
  return rows[0]!.now
}

interface JobOptions {
  config: { databaseUrl: string; webhookNetwork: WebhookNetwork; mail: MailOptions | null }
  log: Logger
  keyring: Keyring
  registry: Registry
  /** Receives errors of idle connections. */
  onError: (error: unknown) => void
}

/** Starts the jobs, the delivery of webhooks and the sending of mails. Returns a function that stops them and resolves when the running jobs have ended. */
export function startJobs({ config, log, keyring, registry, onError }: JobOptions): () => Promise<void> {
  const pool = createPool(config.databaseUrl, { name: 'keyward-management-jobs', max: CONNECTIONS, onError })
  const db = createDatabase(pool)
  const sender = createSender(config.webhookNetwork)
  const worker = startWebhookWorker({ db, keyring, sender, metrics: createWebhookMetrics(registry), log })
  const { mail } = config
  const createLink = async (organizationId: string, customerId: string): Promise<string> => {
    const origin = mail?.portal ?? null
    if (origin === null) throw new Error('KEYWARD_MAIL_PORTAL_URL is not set.')
    const link = { customerId, actions: ['release', 'files'], origin, isMailed: true } as const
    const { url } = await db
      .transaction()
      .execute((transaction) => createPortalSession({ db: transaction, organizationId, actor: SYSTEM }, link))
    return url
  }
  const mailWorker =
    mail && startMailWorker({ db, mailer: createMailer(mail), perDay: mail.perDay, createLink, log, registry })
  const logFailure = throttledLog(log, 'events could not be written', { level: 'error', intervalMs: LOG_INTERVAL_MS })
  const logDelegations = throttledLog(log, 'delegations could not be signed', {
    level: 'error',
    intervalMs: LOG_INTERVAL_MS,
  })
  const onFailure = (err: unknown) => logFailure({ err })
  const endStuck = async () => {
    const connections = await endStuckValidators(pool, STUCK_SECONDS)
    if (connections > 0) log.warn({ connections }, 'connections of validators with stuck transactions were ended')
  }
  const jobs = [
    repeat((signal) => writeAllOccurrences(db, signal), { everyMs: OCCURRENCES_MS, onError: onFailure }),
    repeat(async (signal) => writeDueEvents(db, await databaseTime(db), signal), {
      everyMs: DUE_EVENTS_MS,
      onError: onFailure,
    }),
    repeat(() => foldCounters(db).then(() => writeQuotaEvents(db)), { everyMs: QUOTAS_MS, onError: onFailure }),
    repeat((signal) => runJobs(db, applications, signal), { everyMs: PAGED_MS, onError: onFailure }),
    repeat((signal) => runJobs(db, runningJobs, signal), { everyMs: PAGED_MS, onError: onFailure }),
    repeat((signal) => writeBlacklistedEvents(db, signal), { everyMs: BLACKLISTED_MS, onError: onFailure }),
    repeat((signal) => signDelegations(db, keyring, signal), {
      everyMs: DELEGATIONS_MS,
      onError: (err) => logDelegations({ err }),
    }),
    repeat(endStuck, { everyMs: STUCK_MS, onError: onFailure }),
    repeat(createStorageMeter(db, registry, log), { everyMs: STORAGE_MS, onError: onFailure }),
  ]
  return async () => {
    await Promise.all(jobs.map((stop) => stop()))
    await Promise.all([worker.close(), mailWorker?.close()])
    await db.destroy()
  }
}

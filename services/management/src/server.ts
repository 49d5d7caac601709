/**
 * Starts and stops the management service: pool, keys, HTTP server, admin port and housekeeping. All durable state is in Postgres, so any
 * number of processes may run. The server listens after the signing keys and webhook secrets are sealed under the current master key.
 */

import { createServer, type Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { createOriginResolver } from '@keyward/address'
import { VERSION } from '@keyward/contract/version'
import { createPool, dropOldPartitions, Notifier, requireMigrated } from '@keyward/database'
import { createDatabase, runPipelined } from '@keyward/database/kysely'
import { createLogger, type Logger, type Readiness, repeat, startAdminServer } from '@keyward/runtime'
import { sql } from 'kysely'
import type { Pool } from 'pg'

import { Admission } from './admission/admission.ts'
import { createGates, READ_CONNECTIONS, WRITE_CONNECTIONS } from './admission/gates.ts'
import { createRateLimiter } from './admission/rate-limit.ts'
import { createSharedCounts, deleteOldCounts } from './admission/shared-counts.ts'
import { createSignInLimiter } from './admission/sign-in-limits.ts'
import { createApp } from './app.ts'
import type { ManagementConfig } from './config.ts'
import type { Db } from './context.ts'
import { createDecidingValidators } from './dry-run/deciding-validators.ts'
import { messageClasses } from './http/express-messages.ts'
import { StoredBytes } from './http/idempotency.ts'
import { createPropagation } from './http/propagation.ts'
import { handleProtocolErrors } from './http/protocol-errors.ts'
import { startJobs } from './jobs/jobs.ts'
import { createKeyring, type Keyring } from './keyring/keyring.ts'
import { createAppFiles } from './license-files/for-app.ts'
import { createMetrics } from './metrics.ts'
import type { Dependencies } from './operations/dependencies.ts'
import { resealConnectionSecrets } from './resources/commerce/secrets.ts'
import { createCommerceWorker } from './resources/commerce/worker.ts'
import { createUseRecorder } from './resources/credentials/uses.ts'
import { OpenidProvider } from './resources/openid/identity-provider.ts'
import { resealSigningKeys } from './resources/signing-keys/store.ts'
import { applyRetention } from './retention/retention.ts'
import { resealWebhookSecrets } from './webhooks/secrets.ts'

export interface Management {
  port: number
  adminPort: number
  /** Completes the running requests, writes the collected uses of credentials, and closes all connections. */
  close(): Promise<void>
}

/** The timeout of one statement of a read. A change, such as a deletion with its cascade, may take longer. */
const READ_TIMEOUT_MS = 2_000
const SERVER_TIMEOUTS = { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 65_000 }
const HOUSEKEEPING_INTERVAL_MS = 10 * 60_000
const HEALTH_CHECK_INTERVAL_MS = 1_000
const IDLE_CHECK_INTERVAL_MS = 50
/** The time after which a stop closes all connections. It is longer than the longest wait of a request for the validators. */
const STOP_TIMEOUT_MS = 12_000

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })
}

/**
 * Closes the server when its running requests have ended. For `drainMs`, the server still accepts requests and closes each connection after
 * the response. During this time, balancers detect that the service is not ready. Afterwards the server closes idle connections. Closing
 * them earlier could lose a request that a balancer has just sent.
 */
async function closeServer(server: Server, drainMs: number): Promise<void> {
  server.prependListener('request', (_request, response) => void response.setHeader('connection', 'close'))
  await sleep(drainMs)
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_INTERVAL_MS)
  const limit = setTimeout(() => server.closeAllConnections(), STOP_TIMEOUT_MS)
  return new Promise((resolve) => {
    server.close(() => {
      clearInterval(idle)
      clearTimeout(limit)
      resolve()
    })
    server.closeIdleConnections()
  })
}

/** Returns why management cannot serve requests, or null when Postgres responds as a primary. */
async function databaseProblem(db: Db): Promise<string | null> {
  try {
    const { rows } = await sql<{ standby: boolean }>`select pg_is_in_recovery() as standby`.execute(db)
    return rows[0]?.standby === true ? 'Postgres is a standby, which accepts no changes' : null
  } catch {
    return 'Postgres is unreachable'
  }
}

/** Checks at an interval whether Postgres responds as a primary. */
function watchDatabase(db: Db, onError: (error: unknown) => void): { problem(): string | null; stop(): Promise<void> } {
  let problem: string | null = null
  const check = async (): Promise<void> => {
    problem = await databaseProblem(db)
  }
  return { problem: () => problem, stop: repeat(check, { everyMs: HEALTH_CHECK_INTERVAL_MS, onError }) }
}

/** Creates separate pools for changes and for reads, so that slow requests of one kind do not occupy the connections of the other. */
function createPools({ databaseUrl: url, preparesStatements }: ManagementConfig, onError: (error: unknown) => void) {
  const shared = { name: 'keyward-management', preparesStatements, onError }
  const notifier = new Notifier(url, 'keyward-management-notifier', onError)
  const pool = createPool(url, { ...shared, max: WRITE_CONNECTIONS, pipelines: true, notify: notifier.notify })
  const readPool = createPool(url, { ...shared, max: READ_CONNECTIONS, statementTimeoutMs: READ_TIMEOUT_MS })
  const closePools = async (): Promise<void> => {
    await Promise.all([pool.end(), readPool.end()])
    await notifier.close()
  }
  return { pool, db: createDatabase(pool), readDb: createDatabase(readPool), closePools }
}

/** Checks the version of the database, and seals keys and secrets under the current master key. */
async function prepare(pool: Pool, db: Db, keyring: Keyring, log: Logger): Promise<void> {
  await requireMigrated(pool)
  const resealed = await resealSigningKeys(db, keyring)
  if (resealed > 0) log.info({ resealed }, 'sealed signing keys under the current master key')
  const secrets = (await resealWebhookSecrets(db, keyring)) + (await resealConnectionSecrets(db, keyring))
  if (secrets > 0) log.info({ resealed: secrets }, 'sealed webhook and shop secrets under the current master key')
}

async function deleteOld(
  config: ManagementConfig,
  pool: Pool,
  db: Db,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  await deleteOldCounts(db)
  const dropped = await dropOldPartitions(pool, config.activityRetentionDays, config.analyticsRetentionDays)
  if (dropped.length > 0) log.info({ dropped }, 'dropped partitions past their retention')
  const deleted = await applyRetention(db, { days: config.retentionDays, signal })
  if (Object.keys(deleted).length > 0) log.info({ deleted }, 'deleted rows past their retention')
}

function readinessFor(problems: (string | null)[]): Readiness {
  const reasons = problems.filter((reason) => reason !== null)
  return { ready: reasons.length === 0, reasons }
}

/** Returns which mails the operator has made possible. */
function mailsOf({ mail }: ManagementConfig): Pick<Dependencies, 'mailEnabled' | 'portalMailEnabled'> {
  return { mailEnabled: mail !== null, portalMailEnabled: (mail?.portal ?? null) !== null }
}

export async function startManagement(config: ManagementConfig): Promise<Management> {
  const log = createLogger('management', config.logLevel)
  const onError = (error: unknown) => log.error({ err: error }, 'background query failed')
  const { pool, db, readDb, closePools } = createPools(config, onError)
  const metrics = createMetrics()
  const keyring = createKeyring(config.masterKey, config.previousMasterKey)
  const counts = createSharedCounts(db, onError)
  const shared = {
    db,
    transaction: <Result>(work: (transaction: Db) => Promise<Result>) => runPipelined(pool, work),
    readDb,
    gates: createGates(metrics.countOverShare),
    propagation: createPropagation(db),
    storedBytes: new StoredBytes(),
    keyring,
    operatorTokens: config.operatorTokens,
    validators: createDecidingValidators(config.validatorAdminUrls, log),
    signInLimiter: createSignInLimiter(counts),
    identityProvider: config.identityProvider && new OpenidProvider(config.identityProvider, log),
    log,
    resolver: createOriginResolver(config.resolver),
    webhookNetwork: config.webhookNetwork,
    ...mailsOf(config),
  }
  const commerce = createCommerceWorker({ ...shared, registry: metrics.registry })
  const appFiles = createAppFiles(shared, metrics.countOverShare)
  const dependencies: Dependencies = { ...shared, appFiles, wakeCommerce: commerce.wake }
  await prepare(pool, db, keyring, log).catch(async (error: unknown) => {
    await Promise.all([counts.close(), closePools()])
    throw error
  })
  const uses = createUseRecorder(db, onError)
  const { corsOrigins } = config
  const rateLimiter = createRateLimiter(counts, config.rateLimits)
  const admission = new Admission({ ...dependencies, db: readDb, rateLimiter, onReject: metrics.countOverShare })
  const app = createApp({ dependencies, admission, metrics, corsOrigins, onCredentialUse: uses.record })
  const server = createServer({ ...SERVER_TIMEOUTS, ...messageClasses(app), requireHostHeader: false })
  server.maxConnections = config.maxConnections
  handleProtocolErrors(server, app)
  const health = watchDatabase(readDb, onError)
  const stopHousekeeping = repeat((signal) => deleteOld(config, pool, db, log, signal), {
    everyMs: HOUSEKEEPING_INTERVAL_MS,
    onError: (error) => log.error({ err: error }, 'housekeeping failed'),
  })
  const stopJobs = startJobs({ config, log, onError, keyring, registry: metrics.registry })
  const stopCommerce = commerce.start()
  const port = await listen(server, config.port, config.host)
  let stopping = false
  const admin = await startAdminServer({
    host: config.adminHost,
    port: config.adminPort,
    registry: metrics.registry,
    version: VERSION,
    isReady: () => readinessFor([stopping ? 'stopping' : null, health.problem()]),
  })
  log.info({ port, adminPort: admin.port }, 'listening')
  return {
    port,
    adminPort: admin.port,
    async close() {
      stopping = true
      const stopped = [health.stop(), stopHousekeeping()]
      await closeServer(server, config.drainMs)
      await Promise.all(stopped)
      await Promise.all([stopJobs(), stopCommerce()])
      await Promise.all([uses.close(), counts.close(), admin.close()])
      await closePools()
    },
  }
}

/**
 * Starts and stops the management service: pool, keys, HTTP, admin port and housekeeping. It is stateless beside Postgres, so any
 * number of processes may run. It serves only once the signing keys are sealed under the current master key.
 */
import { createServer, type Server } from 'node:http'

import { createPool, dropOldPartitions, requireMigrated } from '@keyward/database'
import { createDatabase } from '@keyward/database/kysely'
import { createLogger, type Logger, startAdminServer } from '@keyward/process'

import { createApp } from './app.ts'
import { type Config, resolverOf } from './config.ts'
import { withMask } from './evaluate/mask.ts'
import type { Db, Services } from './http/context.ts'
import { forgetOldAnswers } from './http/idempotency.ts'
import { answerUnserved } from './http/protocol-errors.ts'
import { createRateLimiter } from './http/rate-limit.ts'
import { createKeyring, type Keyring } from './keyring/keyring.ts'
import { createMetrics } from './metrics.ts'
import { createUseRecorder } from './resources/credentials/uses.ts'
import { forgetFoldedRules } from './resources/customers/merge.ts'
import { resealSigningKeys } from './resources/signing-keys/store.ts'

export interface Management {
  port: number
  adminPort: number
  /** Answers what is in flight, writes what is gathered, closes. */
  close(): Promise<void>
}

const poolSize = 20
const housekeepingMs = 10 * 60_000
const healthEveryMs = 1_000
const idleCheckMs = 50
/** Longer than any request that waits for the validators. */
const stopLimitMs = 12_000

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })
}

/** Lets requests in flight end; a connection that is idle after that must not hold the stop up. */
function closeServer(server: Server): Promise<void> {
  const idle = setInterval(() => server.closeIdleConnections(), idleCheckMs)
  const limit = setTimeout(() => server.closeAllConnections(), stopLimitMs)
  return new Promise((resolve) => {
    server.close(() => {
      clearInterval(idle)
      clearTimeout(limit)
      resolve()
    })
    server.closeIdleConnections()
  })
}

/** Runs the task now and then, first at once; an error is logged, and the next time is another try. The result ends it. */
function repeat(everyMs: number, log: Logger, task: () => Promise<void>): () => Promise<void> {
  let running = Promise.resolve()
  const run = () => {
    running = task().catch((error: unknown) => log.error({ err: error }, 'housekeeping failed'))
  }
  const timer = setInterval(run, everyMs)
  timer.unref()
  run()
  return () => {
    clearInterval(timer)
    return running
  }
}

/** Whether Postgres answered lately. */
function watchDatabase(db: Db): { reachable(): boolean; stop(): void } {
  let reachable = true
  let asking = false
  const ask = async (): Promise<void> => {
    // A server that has gone silent must not gather questions, which would take the pool's connections.
    if (asking) return
    asking = true
    reachable = await db
      .selectFrom('organizations')
      .select('id')
      .limit(1)
      .execute()
      .then(
        () => true,
        () => false,
      )
    asking = false
  }
  const timer = setInterval(() => void ask(), healthEveryMs)
  timer.unref()
  return { reachable: () => reachable, stop: () => clearInterval(timer) }
}

async function prepareKeys(db: Db, keyring: Keyring, log: Logger): Promise<void> {
  const resealed = await resealSigningKeys(db, keyring)
  if (resealed > 0) log.info({ resealed }, 'signing keys are sealed under the current master key')
}

export async function startManagement(config: Config): Promise<Management> {
  const log = createLogger('management', config.LOG_LEVEL)
  const onError = (error: unknown) => log.error({ err: error }, 'Postgres failed in the background')
  const pool = createPool(withMask(config.DATABASE_URL), { name: 'keyward-management', max: poolSize, onError })
  const db = createDatabase(pool)
  const keyring = createKeyring(config.MASTER_KEY, config.MASTER_KEY_PREVIOUS ?? null)
  const services: Services = { db, keyring, log, resolver: resolverOf(config), operatorToken: config.OPERATOR_TOKEN }
  try {
    await requireMigrated(pool)
    await prepareKeys(db, keyring, log)
  } catch (error) {
    // Not through kysely, which leaves a pool alone that it has not used yet.
    await pool.end()
    throw error
  }
  const uses = createUseRecorder(db, onError)
  const metrics = createMetrics()
  const rateLimiter = createRateLimiter(pool, config.MANAGEMENT_RATE_LIMIT)
  const corsOrigins = config.CORS_ORIGINS
  const app = createApp({ services, rateLimiter, metrics, corsOrigins, noteUse: (id) => uses.note(id) })
  const timeouts = { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 65_000 }
  const server = createServer({ ...timeouts, requireHostHeader: false })
  answerUnserved(server, (request, response) => void app(request, response))
  const health = watchDatabase(db)
  const stopHousekeeping = repeat(housekeepingMs, log, async () => {
    await forgetOldAnswers(db)
    await forgetFoldedRules(db)
    const dropped = await dropOldPartitions(pool, config.ACTIVITY_RETENTION_DAYS, config.ANALYTICS_RETENTION_DAYS)
    if (dropped.length > 0) log.info({ dropped }, 'records past their age were dropped')
  })
  const port = await listen(server, config.MANAGEMENT_PORT, config.MANAGEMENT_HOST)
  let stopping = false
  const admin = await startAdminServer({
    host: config.MANAGEMENT_HOST,
    port: config.MANAGEMENT_ADMIN_PORT,
    registry: metrics.registry,
    isReady() {
      const reasons = [...(stopping ? ['stopping'] : []), ...(health.reachable() ? [] : ['Postgres cannot be reached'])]
      return { ready: reasons.length === 0, reasons }
    },
  })
  log.info({ port, adminPort: admin.port }, 'listening')
  return {
    port,
    adminPort: admin.port,
    async close() {
      stopping = true
      health.stop()
      await closeServer(server)
      await stopHousekeeping()
      await uses.close()
      await admin.close()
      await db.destroy()
    },
  }
}

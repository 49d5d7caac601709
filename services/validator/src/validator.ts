/**
 * The validator as a whole: the main thread follows Postgres, writes the index, takes slots and shows its health; worker
 * threads answer checks from the index. Data flows one way: change log, index, check.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { createIndex, INDEX_IS_FULL, type IndexWriter, LARGE_INDEX_BYTES } from '@keyward/engine'
import { createLogger, type Logger, type Readiness, startAdminServer } from '@keyward/process'
import { collectGarbage } from '@keyward/process/collect-garbage'

import { Metrics } from './admin/metrics.ts'
import { quietly } from './admin/throttled-log.ts'
import type { ValidatorConfig } from './config.ts'
import { Follower } from './feed/follower.ts'
import { Freshness } from './feed/freshness.ts'
import { Heartbeat } from './feed/heartbeat.ts'
import { Keeper } from './feed/index-updater.ts'
import { Unmigrated } from './feed/migration-status.ts'
import { PostgresSource } from './feed/postgres-source.ts'
import { Pruner } from './feed/pruner.ts'
import { KeyLinks } from './public-keys/publisher.ts'
import { KeyRing } from './public-keys/store.ts'
import { Control } from './shared/control.ts'
import type { ReleaseRequest, WorkAnswer, WorkRequest } from './shared/messages.ts'
import { Reverified } from './shared/recheck-throttle.ts'
import { PostgresSlots } from './slots/postgres-slots.ts'
import { noteClaim, SlotDesk } from './slots/slot-service.ts'
import { RecordKeeper } from './usage/recorder.ts'
import { WorkerPool } from './workers/pool.ts'

export interface RunningValidator {
  port: number
  adminPort: number
  /** Resolves when the index is loaded. */
  loaded: Promise<void>
  /** Finishes what is in flight, writes what is gathered, closes. */
  close(): Promise<void>
}

/** In flight requests have their own deadline of 2 s. */
const STOP_GRACE_MS = 2_500

/** Listens at once and answers 503 until everything is loaded. Rejects when a port cannot be had. */
export async function startValidator(
  config: ValidatorConfig,
  reserve: 'small' | 'large' = 'large',
): Promise<RunningValidator> {
  const validator = new Validator(config, reserve)
  try {
    return await validator.start()
  } catch (error) {
    await validator.close()
    throw error
  }
}

class Validator {
  readonly #config: ValidatorConfig
  readonly #log: Logger
  readonly #metrics = new Metrics()
  readonly #index: IndexWriter
  readonly #keys = new KeyRing()
  readonly #control = new Control()
  readonly #keyLinks = new KeyLinks(this.#keys, this.#control)
  readonly #freshness: Freshness
  readonly #unmigrated = new Unmigrated((sentence) => this.#log.warn(sentence))
  readonly #keeper: Keeper
  readonly #slots: PostgresSlots
  readonly #desk: SlotDesk
  readonly #records: RecordKeeper
  readonly #heartbeat: Heartbeat
  readonly #pruner: Pruner
  readonly #follower: Follower
  readonly #pool: WorkerPool
  #admin: { port: number; close(): Promise<void> } | null = null
  /** Rows that the first load had no room for: verdicts without them would be wrong, so none is given. */
  #leftOut = 0
  #isClosing = false

  constructor(config: ValidatorConfig, reserve: 'small' | 'large') {
    this.#config = config
    this.#index = createIndex({ hashKey: randomBytes(16), reserve })
    this.#log = createLogger('validator', config.logLevel)
    this.#freshness = new Freshness(this.#control, config)
    this.#heartbeat = new Heartbeat(
      config.databaseUrl,
      () => this.#readiness().ready,
      this.#warn('The heartbeat failed.'),
    )
    this.#keeper = new Keeper(this.#index, this.#keys, {
      heard: (snapshot) => this.#heard(snapshot),
      loading: () => this.#freshness.loading(),
    })
    const onClaimError = this.#warn('A slot statement failed.', () => this.#metrics.claimErrors.inc())
    this.#slots = new PostgresSlots(config.databaseUrl, onClaimError)
    this.#desk = new SlotDesk(this.#slots, this.#keeper, {
      onError: onClaimError,
      onBatch: (size, tookMs) => {
        this.#metrics.claimBatches.observe(size)
        this.#metrics.claimSeconds.observe(tookMs / 1_000)
      },
    })
    this.#records = new RecordKeeper({
      url: config.databaseUrl,
      validatorId: this.#heartbeat.id,
      index: this.#index.shared,
      record: (claims) => this.#slots.execute(claims, false),
      note: (claim, answer) => noteClaim(this.#keeper, claim, answer),
      onError: this.#warn('Records could not be written.'),
    })
    this.#pruner = new Pruner(config.databaseUrl, this.#warn('The change log could not be pruned.'))
    this.#follower = this.#createFollower()
    this.#pool = this.#createPool()
    this.#metrics.observe({
      pool: this.#pool,
      index: this.#index,
      freshness: this.#freshness,
      waitingClaims: () => this.#desk.waiting,
      records: () => this.#records.standing,
    })
  }

  async start(): Promise<RunningValidator> {
    const { adminHost, adminPort } = this.#config
    const { reservedBytes } = this.#index.stats()
    if (reservedBytes < LARGE_INDEX_BYTES) {
      collectGarbage() // what was tried for the index has taken all that the system promises
      this.#log.warn({ reservedBytes }, 'The system promises less memory than a large index may need.')
    }
    this.#follower.start()
    const port = await this.#pool.start()
    this.#admin = await startAdminServer({
      host: adminHost,
      port: adminPort,
      isReady: () => this.#readiness(),
      registry: this.#metrics.registry,
    })
    this.#heartbeat.start()
    this.#records.start()
    this.#pruner.start()
    this.#log.info({ port, adminPort: this.#admin.port }, 'Listening.')
    return { port, adminPort: this.#admin.port, loaded: this.#loaded, close: () => this.close() }
  }

  /** Not ready first, so that the balancer turns away; then what is in flight; then what is gathered. */
  async close(): Promise<void> {
    if (this.#isClosing) return
    this.#isClosing = true
    if (this.#admin) await sleep(this.#config.drainMs)
    this.#control.stop()
    await this.#pool.stop(STOP_GRACE_MS)
    await this.#follower.stop()
    this.#desk.close()
    await this.#records.close()
    await Promise.all([this.#heartbeat.close(), this.#slots.close(), this.#pruner.close()])
    this.#freshness.close()
    await this.#admin?.close()
    this.#log.info('Stopped.')
  }

  #resolveLoaded: () => void = () => undefined
  readonly #loaded = new Promise<void>((resolve) => {
    this.#resolveLoaded = resolve
  })

  #heard(snapshot: string): void {
    this.#unmigrated.followed()
    this.#heartbeat.applied(snapshot)
    if (this.#leftOut > 0) return
    this.#freshness.heard()
    this.#resolveLoaded()
  }

  #readiness(): Readiness {
    const reasons: string[] = []
    if (this.#isClosing) reasons.push('The validator is stopping.')
    if (this.#unmigrated.reason !== null) reasons.push(this.#unmigrated.reason)
    else if (this.#leftOut > 0) reasons.push(`The index is full: ${this.#leftOut} rows have no room in it.`)
    else if (!this.#freshness.isLoaded) reasons.push('The index is not loaded yet.')
    else if (this.#freshness.isStale) reasons.push('Postgres has been silent for longer than STALE_AFTER.')
    return { ready: reasons.length === 0, reasons }
  }

  #createFollower(): Follower {
    const onError = this.#warn('The change log cannot be followed.', () => this.#metrics.feedErrors.inc())
    const onFull = quietly(this.#log, 'The index is full: a row was skipped.')
    return new Follower(new PostgresSource(this.#config.databaseUrl, onError), this.#keeper, {
      onError,
      onUnreadable: (row) => {
        this.#metrics.unreadableRows.inc({ entity: row.entity })
        if (row.reason === INDEX_IS_FULL) onFull(row)
        else this.#log.error(row, 'A row was skipped.')
      },
      onLoaded: (tookMs, rows, leftOut) => {
        // Who serves goes on with all that was there before.
        this.#leftOut = this.#freshness.isLoaded ? 0 : leftOut
        if (!this.#freshness.isLoaded) collectGarbage() // nobody waits for an answer yet
        this.#metrics.reloads.inc()
        this.#log.info({ tookMs: Math.round(tookMs), rows, leftOut }, 'Loaded.')
      },
      onRead: (tookMs) => this.#metrics.feedReads.observe(tookMs / 1_000),
    })
  }

  #createPool(): WorkerPool {
    const { host, port, workers, corsOrigins, resolver } = this.#config
    return new WorkerPool({
      count: workers,
      host,
      port,
      setup: {
        index: this.#index.shared,
        control: this.#control.shared,
        reverified: new Reverified().shared,
        corsOrigins,
        resolver,
      },
      openKeys: () => this.#keyLinks.open(),
      createRecords: () => this.#records.addRing(),
      releaseRecords: (records) => this.#records.removeRing(records),
      onRequest: (request, answer) => this.#answer(request, answer),
      onError: (error, fatal) => {
        if (fatal) this.#metrics.workerFaults.inc()
        this.#log.error({ err: error, fatal }, 'A worker reports an error.')
      },
    })
  }

  #answer(request: WorkRequest, answer: (answer: WorkAnswer) => void): void {
    const { ticket } = request
    switch (request.kind) {
      case 'claim':
        this.#desk.claim(request, (outcome) => answer({ kind: 'claim', ticket, outcome }))
        return
      case 'release':
        void this.#release(request, answer)
        return
      default:
        request satisfies never
    }
  }

  async #release(request: ReleaseRequest, answer: (answer: WorkAnswer) => void): Promise<void> {
    const { licenseId, machineId, ticket } = request
    const isRecorded = await this.#records.recordNow(licenseId, machineId)
    const outcome = isRecorded ? await this.#desk.release(licenseId, machineId) : { released: null }
    answer({ kind: 'release', ticket, outcome })
  }

  #warn(message: string, also?: () => void): (error: unknown) => void {
    const warn = quietly(this.#log, message)
    return (error) => {
      also?.()
      if (!this.#unmigrated.explains(error)) warn(error)
    }
  }
}

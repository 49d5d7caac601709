/**
 * Composes the validator. The main thread follows the change feed, writes the index, claims slots, records usage and serves the
 * admin port. The worker threads decide checks from the index. Data flows from the change log through the index to the checks.
 */

import { type KeyObject, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { VERSION } from '@keyward/contract/version'
import { bytesToUuid, type ReleaseAnswer } from '@keyward/database'
import { createIndex, INDEX_IS_FULL, type IndexWriter, LARGE_INDEX_BYTES, openIndex } from '@keyward/engine'
import { createLogger, type Logger, type Readiness, startAdminServer, throttledLog } from '@keyward/runtime'
import { collectGarbage } from '@keyward/runtime/collect-garbage'
import { privateKeyOf, publicKeyText } from '@keyward/runtime/ed25519'

import { Metrics } from './admin/metrics.ts'
import { adminUrl, type ValidatorConfig } from './config.ts'
import { CallerKey } from './decide/caller-key.ts'
import { Decider } from './decide/decider.ts'
import { decideEndpoint } from './decide/endpoint.ts'
import { CatchUp } from './feed/catch-up.ts'
import { Follower } from './feed/follower.ts'
import { Freshness } from './feed/freshness.ts'
import { Heartbeat, PostgresHeartbeats } from './feed/heartbeat.ts'
import { IndexUpdater } from './feed/index-updater.ts'
import { MigrationStatus } from './feed/migration-status.ts'
import { PostgresSource } from './feed/postgres-source.ts'
import { Pruner } from './feed/pruner.ts'
import { type FilePosition, IndexFile } from './index-file/index-file.ts'
import { Restoration } from './index-file/restoration.ts'
import { PublicKeyPublisher } from './public-keys/publisher.ts'
import { PublicKeyStore } from './public-keys/store.ts'
import { monotonicMs } from './shared/clock.ts'
import { Control } from './shared/control.ts'
import { Leases } from './shared/leases.ts'
import type { WorkRequest, WorkResponse } from './shared/messages.ts'
import { Throttle } from './shared/throttle.ts'
import type { Claim } from './slots/claim-queue.ts'
import { FailoverSafety, SLOTS_AT_RISK } from './slots/failover-safety.ts'
import { PostgresSlots } from './slots/postgres-slots.ts'
import type { Release } from './slots/release-queue.ts'
import { applyClaim, SlotService } from './slots/slot-service.ts'
import { Recorder } from './usage/recorder.ts'
import type { CheckThreads, OpenCheckThreads } from './workers/check-threads.ts'

export interface RunningValidator {
  port: number
  adminPort: number
  /** Resolves when the index is loaded. */
  loaded: Promise<void>
  /** Resolves when the index has become unusable. The process must then be restarted. */
  unusable: Promise<void>
  /** Finishes the requests in flight, writes the recorded usage, and ends all connections and threads (docs/api.md#p5). */
  close(): Promise<void>
}

/** The time in which a stopping validator finishes open requests. It is longer than the deadline of a request. */
const STOP_GRACE_MS = 2_500

/**
 * Starts a validator. The validator listens at once and responds 503 until the index is loaded (docs/api.md#p3). Rejects when a
 * port is not available. `openThreads` creates the threads that decide checks. `reserve` selects the size of the index. Tests use a small index.
 */
export async function startValidator(
  config: ValidatorConfig,
  openThreads: OpenCheckThreads,
  reserve: 'small' | 'large' = 'large',
): Promise<RunningValidator> {
  const validator = new Validator(config, openThreads, reserve)
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
  /** Signs responses (docs/api.md#g2). Without an index file, the key exists only in memory. */
  readonly #answerKey: KeyObject
  readonly #publicKeys: PublicKeyStore
  readonly #control = new Control()
  readonly #leases: Leases
  readonly #publicKeyPublisher: PublicKeyPublisher
  readonly #freshness: Freshness
  readonly #indexFile: IndexFile | null
  /** Restores the index from its file. The field is null when no index file is configured. */
  readonly #restoration: Restoration | null
  readonly #migrationStatus = new MigrationStatus((reason) => this.#log.warn({ reason }, 'database not migrated'))
  readonly #updater: IndexUpdater
  readonly #slots: PostgresSlots
  readonly #safety: FailoverSafety
  readonly #slotService: SlotService
  readonly #recorder: Recorder
  readonly #heartbeat: Heartbeat
  readonly #pruner: Pruner
  readonly #follower: Follower
  readonly #catchUp = new CatchUp(() => this.#follower.readNow())
  readonly #callerKey: CallerKey
  readonly #threads: CheckThreads
  readonly #loaded = Promise.withResolvers<void>()
  readonly #unusable = Promise.withResolvers<void>()
  /** The server of the admin port. It is null until the server listens. */
  #admin: { port: number; close(): Promise<void> } | null = null
  #isClosing = false

  constructor(config: ValidatorConfig, openThreads: OpenCheckThreads, reserve: 'small' | 'large') {
    const { databaseUrl, logLevel } = config
    this.#config = config
    this.#log = createLogger('validator', logLevel)
    this.#indexFile = openIndexFile(config, this.#log)
    this.#index = createIndex({
      hashKey: this.#indexFile?.keys.hashKey ?? randomBytes(16),
      reserve,
      onUnusable: () => {
        this.#log.fatal('index unusable')
        this.#unusable.resolve()
      },
    })
    this.#answerKey = privateKeyOf(this.#indexFile?.keys.answerSeed ?? randomBytes(32))
    const answerKey = publicKeyText(this.#answerKey)
    this.#publicKeys = new PublicKeyStore(answerKey)
    this.#publicKeyPublisher = new PublicKeyPublisher(this.#publicKeys, this.#control)
    this.#leases = new Leases()
    this.#freshness = new Freshness(this.#control, config)
    this.#updater = new IndexUpdater(this.#index, this.#publicKeys, {
      onRebuild: () => this.#freshness.rebuild(),
      onOtherServer: () => this.#leases.clear(monotonicMs()),
      recorder: this.#indexFile?.journal ?? null,
    })
    const onHeartbeatError = this.#warning('heartbeat failed')
    this.#heartbeat = new Heartbeat(new PostgresHeartbeats(databaseUrl, onHeartbeatError), {
      answerKey,
      isReady: () => this.#readiness().ready,
      onError: onHeartbeatError,
    })
    const onSlotError = this.#warning('slot statement failed', () => this.#metrics.claimErrors.inc())
    this.#slots = new PostgresSlots(databaseUrl, onSlotError)
    this.#safety = new FailoverSafety(() => this.#slots.replication())
    const store = {
      execute: (claims: readonly Claim[], waits: boolean) => this.#whenThawed(this.#slots.execute(claims, waits)),
      isHopeless: this.#slots.isHopeless.bind(this.#slots),
      release: (releases: readonly Release[]) => this.#whenThawed(this.#release(releases)),
    }
    this.#slotService = new SlotService(store, this.#updater, {
      leases: this.#leases,
      onError: onSlotError,
      onBatch: (size, tookMs) => {
        this.#metrics.claimBatches.observe(size)
        this.#metrics.claimSeconds.observe(tookMs / 1_000)
      },
      onLease: (event) => this.#metrics.leases.inc({ event }),
    })
    this.#recorder = new Recorder({
      url: databaseUrl,
      validatorId: this.#heartbeat.id,
      index: this.#index.shared,
      flushMs: config.usageFlushMs,
      recordMachines: (claims, waits) => this.#whenThawed(this.#slots.record(claims, waits)),
      onMachine: (claim, result) => applyClaim(this.#updater, claim, result),
      onError: this.#warning('usage not written'),
    })
    this.#pruner = new Pruner(databaseUrl, this.#warning('change log not pruned'))
    this.#follower = this.#createFollower()
    this.#restoration = this.#indexFile && this.#createRestoration(this.#indexFile)
    this.#callerKey = new CallerKey(databaseUrl, this.#warning('key of management not read'))
    this.#threads = this.#openThreads(openThreads)
    this.#observe()
  }

  #observe(): void {
    this.#metrics.observe({
      threads: this.#threads,
      index: this.#index,
      freshness: this.#freshness,
      missingRows: () => this.#updater.missingRows,
      waitingClaims: () => this.#slotService.waiting,
      waitingReleases: () => this.#slotService.waitingReleases,
      recorder: () => this.#recorder.status,
      areSlotsSafe: () => this.#safety.isSafe,
    })
  }

  async start(): Promise<RunningValidator> {
    const { adminHost, adminPort } = this.#config
    const { reservedBytes } = this.#index.stats()
    if (reservedBytes < LARGE_INDEX_BYTES) {
      collectGarbage() // frees the memory of failed attempts to reserve a large index
      this.#log.warn({ reservedBytes }, 'index reserved less memory than a large index needs')
    }
    this.#follower.start(this.#restore())
    const port = await this.#threads.start()
    this.#admin = await startAdminServer({
      host: adminHost,
      port: adminPort,
      isReady: () => this.#readiness(),
      version: VERSION,
      registry: this.#metrics.registry,
      posts: decideEndpoint({
        decider: new Decider(openIndex(this.#index.shared)),
        key: this.#callerKey,
        catchUp: (...wanted) => this.#catchUp.until(...wanted),
        isServing: () => this.#control.isServing,
        onError: this.#warning('key of management not read'),
      }),
    })
    this.#heartbeat.start(adminUrl(this.#config, this.#admin.port))
    this.#recorder.start()
    this.#pruner.start()
    this.#safety.start()
    this.#startIndexFile()
    this.#log.info({ port, adminPort: this.#admin.port, httpLibrary: this.#threads.httpLibrary }, 'listening')
    return {
      port,
      adminPort: this.#admin.port,
      loaded: this.#loaded.promise,
      unusable: this.#unusable.promise,
      close: () => this.close(),
    }
  }

  /**
   * Stops the validator, which first reports that it is not ready, so that the balancer sends no further requests. The
   * validator then finishes the open requests and writes the recorded usage.
   */
  async close(): Promise<void> {
    if (this.#isClosing) return
    this.#isClosing = true
    if (this.#admin) await sleep(this.#config.drainMs)
    this.#control.stop()
    await this.#threads.stop(STOP_GRACE_MS)
    await this.#follower.stop()
    this.#slotService.close()
    this.#safety.close()
    await this.#recorder.close()
    await this.#indexFile?.close()
    await Promise.all([this.#heartbeat.close(), this.#slots.close(), this.#pruner.close(), this.#callerKey.close()])
    this.#freshness.close()
    await this.#admin?.close()
    this.#log.info('stopped')
  }

  /** Restores the index from its file if this version of the program wrote it. Otherwise the follower loads all rows. */
  #restore(): FilePosition | null {
    if (this.#restoration === null) return null
    const startedMs = performance.now()
    try {
      const { ageMs, isComplete, ...position } = this.#restoration.restore()
      this.#metrics.indexFileRestored.set(1)
      const tookMs = Math.round(performance.now() - startedMs)
      this.#log.info({ tookMs, ageMs, isComplete }, 'index restored from its file')
      return position
    } catch (error) {
      this.#log.info({ reason: error instanceof Error ? error.message : String(error) }, 'index file not used')
      return null
    }
  }

  #startIndexFile(): void {
    this.#indexFile?.start({
      index: this.#index,
      publicKeys: this.#publicKeys,
      pause: () => (this.#updater.missingRows === 0 ? this.#follower.pause() : Promise.resolve(null)),
      resume: () => this.#follower.resume(),
      position: () => (this.#updater.missingRows === 0 ? this.#follower.position : null),
      currentAtMs: () => Date.now() - this.#freshness.sinceCurrentMs,
      onWritten: (bytes, pausedMs) => this.#metrics.indexFileWritten(bytes, pausedMs),
      onError: this.#warning('index file not written', () => this.#metrics.indexFileErrors.inc()),
    })
  }

  #createRestoration(file: IndexFile): Restoration {
    return new Restoration(file, {
      index: this.#index,
      publicKeys: this.#publicKeys,
      updater: this.#updater,
      follower: this.#follower,
      freshness: this.#freshness,
      wallMs: () => Date.now(),
    })
  }

  /** Delays a result while the index must not be changed. */
  #whenThawed<T>(result: Promise<T>): Promise<T> {
    return this.#indexFile?.whenThawed(result) ?? result
  }

  #readiness(): Readiness {
    const reasons: string[] = []
    if (this.#isClosing) reasons.push('The validator is stopping.')
    if (this.#migrationStatus.reason !== null) reasons.push(this.#migrationStatus.reason)
    else if (this.#updater.missingRows > 0) {
      reasons.push(`The index is full: ${this.#updater.missingRows} rows do not fit.`)
    } else if (!this.#freshness.isLoaded) reasons.push('The index is not loaded yet.')
    else if (this.#freshness.isInGap) reasons.push('The index has missed changes and is being compared with Postgres.')
    else if (this.#freshness.isStale)
      reasons.push('The index has not been current for longer than KEYWARD_STALE_AFTER.')
    return { ready: reasons.length === 0, reasons, warnings: this.#safety.isSafe ? [] : [SLOTS_AT_RISK] }
  }

  #createFollower(): Follower {
    const onError = this.#warning('change feed interrupted', () => this.#metrics.feedErrors.inc())
    const onFull = throttledLog(this.#log, 'row skipped: index is full')
    return new Follower(new PostgresSource(this.#config.databaseUrl, this.#heartbeat.id, onError), this.#updater, {
      onError: (error) => {
        onError(error)
        const ageMs = this.#restoration?.serve() ?? null
        if (ageMs !== null) this.#log.warn({ ageMs }, 'postgres not reached: checks are decided from the index file')
      },
      onSkipped: (row) => {
        this.#metrics.skippedRows.inc({ entity: row.entity })
        if (row.reason === INDEX_IS_FULL) onFull(row)
        else this.#log.error(row, 'row skipped')
      },
      onLoadProgress: () => this.#freshness.loadProgress(),
      onLoaded: (tookMs, rows, rowsOverCapacity) => {
        if (!this.#freshness.isLoaded) collectGarbage() // no checks are decided yet, so none is delayed
        this.#metrics.reloads.inc()
        this.#log.info({ tookMs: Math.round(tookMs), rows, rowsOverCapacity }, 'index loaded')
      },
      onRead: (tookMs) => this.#metrics.feedReads.observe(tookMs / 1_000),
      onGap: () => {
        this.#restoration?.end()
        this.#freshness.gap()
        this.#log.warn('position lost: index is compared')
      },
      onCaughtUpButLarge: (position, organizations) => {
        const { snapshot, identity, asOfMs } = position
        if (!this.#freshness.isLoaded) return
        this.#freshness.caughtUp(asOfMs)
        if (this.#updater.missingRows > 0) return
        this.#acknowledge(position, () => this.#heartbeat.appliedExcept(snapshot, identity, organizations))
        this.#catchUp.caughtUpExcept(
          snapshot,
          organizations.map((id) => bytesToUuid(id)),
        )
      },
      onCaughtUp: (position) => {
        const { snapshot, identity, asOfMs } = position
        this.#migrationStatus.clear()
        this.#restoration?.end()
        const isComplete = this.#updater.missingRows === 0
        // A validator begins to decide checks only when all rows fit into the index. Later it continues even if the index
        // becomes full.
        if (isComplete || this.#freshness.isLoaded) this.#freshness.caughtUp(asOfMs)
        this.#acknowledge(position, () => isComplete && this.#heartbeat.applied(snapshot, identity))
        if (!isComplete) return
        this.#catchUp.caughtUp(snapshot)
        this.#loaded.resolve()
      },
    })
  }

  /** Calls `publish` when a restart of this validator will not forget the changes up to the position (docs/api.md#p6). */
  #acknowledge({ identity, snapshot }: FilePosition, publish: () => void): void {
    if (this.#indexFile === null) return publish()
    const currentAtMs = Date.now() - this.#freshness.sinceCurrentMs
    void this.#indexFile.journal.commit({ identity, snapshot, currentAtMs }).then((isDurable) => isDurable && publish())
  }

  #openThreads(open: OpenCheckThreads): CheckThreads {
    const { corsOrigins, resolver } = this.#config
    return open(this.#config, {
      setup: {
        index: this.#index.shared,
        control: this.#control.shared,
        recheckThrottle: new Throttle().shared,
        renewalThrottle: new Throttle().shared,
        leases: this.#leases.shared,
        answerKey: this.#answerKey,
        corsOrigins,
        resolver,
      },
      openPublicKeys: () => this.#publicKeyPublisher.open(),
      createRing: () => this.#recorder.addRing(),
      releaseRing: (ring) => this.#recorder.removeRing(ring),
      onRequest: (request, respond) => this.#handle(request, respond),
      onKeyUsed: (row, generation, atMs) => this.#recorder.keyUsed(row, generation, atMs),
      onError: (error, fatal) => {
        if (fatal) this.#metrics.workerFailures.inc()
        this.#log.error({ err: error, fatal }, 'worker error')
      },
    })
  }

  /** Handles a worker's request to claim, release or renew a slot. */
  #handle(request: WorkRequest, respond: (response: WorkResponse) => void): void {
    const { requestId } = request
    switch (request.kind) {
      case 'claim':
        this.#slotService.claim(request, (decision) => respond({ kind: 'claim', requestId, decision }))
        return
      case 'release':
        this.#slotService.release(request, (result) => respond({ kind: 'release', requestId, result }))
        return
      case 'renew':
        this.#slotService.renew(request)
        respond({ kind: 'renew', requestId })
        return
      default:
        request satisfies never
    }
  }

  /** Releases machines. Machines that wait to be recorded are recorded first. A release is undecided if the recording fails. */
  async #release(releases: readonly Release[]): Promise<(ReleaseAnswer | null)[]> {
    const unknown = releases.filter(({ isKnown, ref }) => !isKnown && ref === null)
    const unrecorded = unknown.length === 0 ? [] : await this.#recorder.recordNow(unknown)
    const answers = await this.#slots.release(releases)
    return answers.map((answer, i) => (unrecorded.includes(releases[i]!) ? null : answer))
  }

  /** Returns a handler that calls `also` for every error, and logs the errors that no missing migration explains. */
  #warning(message: string, also?: () => void): (error: unknown) => void {
    const warn = throttledLog(this.#log, message)
    return (error) => {
      also?.()
      if (!this.#migrationStatus.explains(error)) warn({ err: error })
    }
  }
}

/** Returns the index file, or null when none is configured or its folder is not writable. */
function openIndexFile({ indexFile, databaseUrl }: ValidatorConfig, log: Logger): IndexFile | null {
  if (indexFile === null) return null
  try {
    return new IndexFile({ ...indexFile, databaseUrl })
  } catch (error) {
    log.error({ err: error }, 'index file cannot be used')
    return null
  }
}

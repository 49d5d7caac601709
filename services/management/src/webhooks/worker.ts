/**
 * Delivers events to webhook endpoints (docs/api.md#w5). Every management process runs a worker. Each worker limits the number of its
 * concurrent attempts for each endpoint and each organization, so a slow endpoint does not delay others. A failing endpoint gets one
 * attempt at a time. An outcome is written after its attempt, so when a process is killed, attempts may be repeated but no delivery is
 * lost.
 */

import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

import { uuidv7 } from '@keyward/database'
import { type Logger, repeat, throttledLog } from '@keyward/runtime'
import { Tally } from '@keyward/runtime/tally'

import type { Db } from '../context.ts'
import { eventBody } from '../events/body.ts'
import type { Keyring } from '../keyring/keyring.ts'
import type { Sender } from '../outbound/sender.ts'
import { signatureHeaders } from '../outbound/signature.ts'
import { type Allowance, allowancesOf } from './allowances.ts'
import { disableEndpoint } from './disable.ts'
import type { WebhookMetrics } from './metrics.ts'
import {
  beat,
  claim,
  type Claimed,
  countDue,
  failClaimed,
  failPending,
  findDue,
  leave,
  type Outcome,
  release,
  releaseOthers,
  writeOutcomes,
} from './queue.ts'
import { ResponseBytes } from './response-bytes.ts'
import { GONE, secondsToRetry } from './retries.ts'
import { type EndpointRow, openSecrets } from './secrets.ts'

/** The maximum numbers of concurrent attempts. */
const MAX_RUNNING_OF_ENDPOINT = 20
const MAX_RUNNING_OF_ORGANIZATION = 60
/**
 * The pauses after a claim: IDLE_MS if the claim returned no delivery, BUSY_MS if an endpoint has a backlog, and otherwise CALM_MS. A claim
 * and a flush cost about the same for few deliveries as for many, so both wait for more deliveries while no endpoint has a backlog.
 */
const IDLE_MS = 250
const CALM_MS = 50
const BUSY_MS = 10
const FLUSH_MS = 50
const BEAT_MS = 1_500
const COUNT_MS = 5_000
const RECONCILE_MS = 15_000
const MAX_STARTS = 5
/** The time for which `close` waits for running attempts. */
const STOP_MS = 3_000
const LOG_INTERVAL_MS = 10_000
const USER_AGENT = 'Keyward-Webhooks/1'

interface WorkerOptions {
  db: Db
  keyring: Keyring
  sender: Sender
  metrics: WebhookMetrics
  log: Logger
}

/** A claimed delivery with its endpoint and the body of its attempt. */
interface Ready {
  claimed: Claimed
  endpoint: EndpointRow
  body: string
}

/** Returns the pause after a claim. An endpoint has a backlog if the claim returned all deliveries that its allowance permits. */
function pauseAfter(claimed: readonly Claimed[], allowances: readonly Allowance[]): number {
  if (claimed.length === 0) return IDLE_MS
  const counts = new Tally<string>()
  for (const { endpointId } of claimed) counts.add(endpointId)
  return allowances.some(({ endpointId, count }) => counts.of(endpointId) === count) ? BUSY_MS : CALM_MS
}

export class WebhookWorker {
  readonly #options: WorkerOptions
  readonly #id = uuidv7()
  readonly #stopping = new AbortController()
  /** The number of claimed deliveries, including running attempts, by endpoint and by organization. */
  readonly #claimed = new Tally<string>()
  /** The number of running attempts, by endpoint and by organization. */
  readonly #running = new Tally<string>()
  readonly #responses = new ResponseBytes()
  readonly #attempts = new Set<Promise<void>>()
  /** The ids of claimed deliveries whose outcome is not stored yet. */
  readonly #mine = new Set<string>()
  #lastReconciledMs = Date.now()
  /** The claimed deliveries that are not attempted yet, in the order of their claims. */
  #waiting: Ready[] = []
  /** Starts further attempts in the next turn of the event loop. */
  #continuation: NodeJS.Immediate | null = null
  #outcomes: Outcome[] = []
  readonly #logFailure: (fields: object) => void
  readonly #loops: Promise<unknown>

  constructor(options: WorkerOptions) {
    this.#options = options
    this.#logFailure = throttledLog(options.log, 'webhooks could not be delivered', {
      level: 'error',
      intervalMs: LOG_INTERVAL_MS,
    })
    this.#loops = this.#run()
  }

  /** Waits up to STOP_MS for running attempts, and releases deliveries that have not been attempted. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#loops
    await Promise.race([Promise.all(this.#attempts), sleep(STOP_MS)])
    await this.#options.sender.close()
    const onError = (err: unknown) => this.#logFailure({ err })
    await this.#flush().catch(onError)
    await leave(this.#options.db, this.#id).catch(onError)
  }

  async #run(): Promise<void> {
    const { db, metrics } = this.#options
    const { signal } = this.#stopping
    const onError = (err: unknown) => this.#logFailure({ err })
    // The first heartbeat is written before the first claim, because other workers release the claims of a worker without a heartbeat.
    await beat(db, this.#id).catch(onError)
    const stops = [
      repeat(() => beat(db, this.#id), { everyMs: BEAT_MS, onError }),
      repeat(() => this.#flush(), { everyMs: FLUSH_MS, onError }),
      repeat(async () => metrics.setDue(await countDue(db)), { everyMs: COUNT_MS, onError }),
      repeat(() => this.#claim(), { everyMs: IDLE_MS, onError }),
    ]
    if (!signal.aborted) await once(signal, 'abort')
    await Promise.all(stops.map((stop) => stop()))
  }

  /** Claims and attempts due deliveries within the allowances. Returns the pause until the next claim. */
  async #claim(): Promise<number> {
    const { db, keyring } = this.#options
    if (Date.now() - this.#lastReconciledMs >= RECONCILE_MS) {
      // If the response to a claim was lost in an outage, this worker has claimed deliveries that `#mine` does not contain.
      await releaseOthers(db, this.#id, [...this.#mine])
      this.#lastReconciledMs = Date.now()
    }
    const due = await findDue(db)
    await failPending(
      db,
      due.filter(({ enabled }) => enabled !== true).map(({ endpointId }) => endpointId),
    )
    const allowances = allowancesOf(due, this.#claimed, this.#attempts.size + this.#waiting.length)
    const claimed = await claim(db, this.#id, allowances)
    const gone: string[] = []
    const sealed: string[] = []
    for (const one of claimed) {
      if (one.endpoint === null || one.type === null || one.data === null) gone.push(one.id)
      // Only a process with another master key can open the secret.
      else if (!keyring.canOpen(one.endpoint.masterKeyId)) sealed.push(one.id)
      else {
        const body = eventBody({ ...one, id: one.eventId, type: one.type, data: one.data })
        this.#mine.add(one.id)
        this.#waiting.push({ claimed: one, endpoint: one.endpoint, body })
        for (const key of [one.endpointId, one.organizationId]) this.#claimed.add(key)
      }
    }
    this.#startWaiting()
    await failClaimed(db, this.#id, gone)
    await release(db, this.#id, sealed)
    return pauseAfter(claimed, allowances)
  }

  /**
   * Starts the attempts that the limits of endpoint and organization allow. Starts at most MAX_STARTS in one turn of the event loop, so
   * that requests to this process do not wait for many attempts.
   */
  #startWaiting(): void {
    const rest: Ready[] = []
    let started = 0
    for (const ready of this.#waiting) {
      const { endpointId, organizationId } = ready.claimed
      const isAllowed =
        started < MAX_STARTS &&
        this.#running.of(endpointId) < MAX_RUNNING_OF_ENDPOINT &&
        this.#running.of(organizationId) < MAX_RUNNING_OF_ORGANIZATION
      if (isAllowed) {
        this.#start(ready)
        started++
      } else rest.push(ready)
    }
    this.#waiting = rest
    if (started < MAX_STARTS || this.#continuation !== null) return
    this.#continuation = setImmediate(() => {
      this.#continuation = null
      if (!this.#stopping.signal.aborted) this.#startWaiting()
    })
  }

  #start(ready: Ready): void {
    const keys = [ready.claimed.endpointId, ready.claimed.organizationId]
    for (const key of keys) this.#running.add(key)
    const attempt = this.#deliver(ready).finally(() => {
      for (const key of keys) {
        this.#running.add(key, -1)
        this.#claimed.add(key, -1)
      }
      this.#attempts.delete(attempt)
      if (!this.#stopping.signal.aborted) this.#startWaiting()
    })
    this.#attempts.add(attempt)
  }

  async #deliver({ claimed, endpoint, body }: Ready): Promise<void> {
    const { keyring, sender, metrics } = this.#options
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'user-agent': USER_AGENT,
      ...signatureHeaders(openSecrets(keyring, endpoint), claimed.eventId, body),
    }
    const sent = await sender.send(endpoint.url, headers, body)
    const attempt = { ...sent, response: this.#responses.take(claimed.organizationId, sent.response) }
    // This process stops, and another process will attempt the delivery.
    if (this.#stopping.signal.aborted && attempt.status === null) return
    metrics.observe(attempt)
    const retryInSeconds = attempt.error === null ? null : secondsToRetry(claimed.attempts + 1, attempt)
    this.#outcomes.push({ deliveryId: claimed.id, endpointId: endpoint.id, attempt, retryInSeconds })
    if (attempt.error !== null) this.#returnWaiting(endpoint.id)
  }

  /** Releases the waiting deliveries of a failing endpoint. They are then claimed one at a time. */
  #returnWaiting(endpointId: string): void {
    const returned = this.#waiting.filter(({ claimed }) => claimed.endpointId === endpointId)
    if (returned.length === 0) return
    this.#waiting = this.#waiting.filter(({ claimed }) => claimed.endpointId !== endpointId)
    for (const { claimed } of returned)
      for (const key of [claimed.endpointId, claimed.organizationId]) this.#claimed.add(key, -1)
    const ids = returned.map(({ claimed }) => claimed.id)
    for (const id of ids) this.#mine.delete(id)
    release(this.#options.db, this.#id, ids).catch((err: unknown) => this.#logFailure({ err }))
  }

  /** Writes the outcomes since the previous call. After an error, the next call writes them again. */
  async #flush(): Promise<void> {
    const outcomes = this.#outcomes
    if (outcomes.length === 0) return
    this.#outcomes = []
    try {
      await writeOutcomes(this.#options.db, this.#id, outcomes)
    } catch (error) {
      // The list is bounded, because a claimed delivery is not claimed again before its outcome is written.
      this.#outcomes = [...outcomes, ...this.#outcomes]
      throw error
    }
    for (const { deliveryId } of outcomes) this.#mine.delete(deliveryId)
    await this.#disable(outcomes)
  }

  async #disable(outcomes: readonly Outcome[]): Promise<void> {
    const { db, log } = this.#options
    const failed = outcomes.filter(({ attempt }) => attempt.error !== null)
    for (const endpointId of new Set(failed.map((outcome) => outcome.endpointId))) {
      const isGone = failed.some((outcome) => outcome.endpointId === endpointId && outcome.attempt.status === GONE)
      const reason = isGone ? 'GONE' : 'FAILING'
      if (await disableEndpoint(db, endpointId, reason)) log.warn({ endpointId, reason }, 'webhook endpoint disabled')
    }
  }
}

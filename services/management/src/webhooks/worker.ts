/**
 * Delivers events to webhook endpoints (docs/api.md#w5). Every management process runs a worker. Each worker limits the number of its
 * concurrent attempts for each endpoint and each organization, so a slow endpoint does not delay others. A failing endpoint gets one
 * attempt at a time. An outcome is written after its attempt, so when a process is killed, attempts may be repeated but no delivery is
 * lost.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { uuidv7 } from '@keyward/database'
import type { Logger } from '@keyward/runtime'

import type { Db } from '../context.ts'
import { eventBody } from '../events/body.ts'
import type { Keyring } from '../keyring/keyring.ts'
import type { Sender } from '../outbound/sender.ts'
import { signatureHeaders } from '../outbound/signature.ts'
import { add, type Allowance, allowancesOf, countOf } from './allowances.ts'
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

export interface WorkerOptions {
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
  const counts = new Map<string, number>()
  for (const { endpointId } of claimed) add(counts, endpointId, 1)
  return allowances.some(({ endpointId, count }) => countOf(counts, endpointId) === count) ? BUSY_MS : CALM_MS
}

export class WebhookWorker {
  readonly #options: WorkerOptions
  readonly #id = uuidv7()
  readonly #stopping = new AbortController()
  /** The number of claimed deliveries, including running attempts, by endpoint and by organization. */
  readonly #claimed = new Map<string, number>()
  /** The number of running attempts, by endpoint and by organization. */
  readonly #running = new Map<string, number>()
  readonly #attempts = new Set<Promise<void>>()
  /** The ids of claimed deliveries whose outcome is not stored yet. */
  readonly #mine = new Set<string>()
  #lastReconciledMs = Date.now()
  /** The claimed deliveries that are not attempted yet, in the order of their claims. */
  #waiting: Ready[] = []
  /** Starts further attempts in the next turn of the event loop. */
  #continuation: NodeJS.Immediate | null = null
  #outcomes: Outcome[] = []
  #lastLogMs = 0
  readonly #loops: Promise<unknown>

  constructor(options: WorkerOptions) {
    this.#options = options
    this.#loops = this.#run()
  }

  /** Waits up to STOP_MS for running attempts, and releases deliveries that have not been attempted. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#loops
    await Promise.race([Promise.all(this.#attempts), sleep(STOP_MS)])
    await this.#options.sender.close()
    await this.#attempt(() => this.#flush())
    await this.#attempt(() => leave(this.#options.db, this.#id))
  }

  async #run(): Promise<void> {
    const { db, metrics } = this.#options
    // The first heartbeat is written before the first claim, because other workers release the claims of a worker without a heartbeat.
    await this.#attempt(() => beat(db, this.#id))
    await Promise.all([
      this.#repeat(
        () => BEAT_MS,
        () => beat(db, this.#id),
      ),
      this.#repeat(
        () => FLUSH_MS,
        () => this.#flush(),
      ),
      this.#repeat(
        () => COUNT_MS,
        async () => metrics.setDue(await countDue(db)),
      ),
      this.#repeat(
        (pauseMs) => pauseMs ?? IDLE_MS,
        () => this.#claim(),
      ),
    ])
  }

  async #repeat<Result>(pauseMs: (result: Result | undefined) => number, task: () => Promise<Result>): Promise<void> {
    const { signal } = this.#stopping
    for (;;) {
      if (signal.aborted) return
      const result = await this.#attempt(task)
      await sleep(pauseMs(result), undefined, { signal }).catch(() => undefined)
    }
  }

  /** Returns undefined after an error, such as an outage of Postgres. Errors are logged at most once per LOG_INTERVAL_MS. */
  async #attempt<Result>(task: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await task()
    } catch (error) {
      if (Date.now() - this.#lastLogMs >= LOG_INTERVAL_MS) {
        this.#lastLogMs = Date.now()
        this.#options.log.error({ err: error }, 'webhooks could not be delivered')
      }
      return undefined
    }
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
        for (const key of [one.endpointId, one.organizationId]) add(this.#claimed, key, 1)
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
        countOf(this.#running, endpointId) < MAX_RUNNING_OF_ENDPOINT &&
        countOf(this.#running, organizationId) < MAX_RUNNING_OF_ORGANIZATION
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
    for (const key of keys) add(this.#running, key, 1)
    const attempt = this.#deliver(ready).finally(() => {
      for (const key of keys) {
        add(this.#running, key, -1)
        add(this.#claimed, key, -1)
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
    const attempt = await sender.send(endpoint.url, headers, body)
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
      for (const key of [claimed.endpointId, claimed.organizationId]) add(this.#claimed, key, -1)
    const ids = returned.map(({ claimed }) => claimed.id)
    for (const id of ids) this.#mine.delete(id)
    void this.#attempt(() => release(this.#options.db, this.#id, ids))
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

/**
 * Delivers events to webhook endpoints (docs/api.md#w5). Every management process runs a worker. The number of concurrent attempts is
 * limited for each endpoint and each organization, so a slow endpoint does not delay others. A failing endpoint gets one attempt at a time.
 * An outcome is written after its attempt, so when a process is killed, attempts may be repeated and no delivery is lost.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { uuidv7 } from '@keyward/database'
import type { Logger } from '@keyward/process'

import { eventBody } from '../events/body.ts'
import type { Db } from '../http/context.ts'
import type { Keyring } from '../keyring/keyring.ts'
import type { Sender } from '../outbound/sender.ts'
import { signatureHeaders } from '../outbound/signature.ts'
import { disableEndpoint } from './disable.ts'
import type { WebhookMetrics } from './metrics.ts'
import {
  beat,
  claim,
  type Claimed,
  countDue,
  type DueEndpoint,
  failClaimed,
  failPending,
  findDue,
  leave,
  type Outcome,
  release,
  writeOutcomes,
} from './queue.ts'
import { GONE, secondsToRetry } from './retries.ts'
import { openSecrets } from './secrets.ts'

const MAX_PER_ENDPOINT = 20
const MAX_PER_ORGANIZATION = 60
const MAX_IN_ALL = 600
/**
 * The number of running attempts at which failing endpoints get no further attempts, so that endpoints that do not respond leave capacity
 * for others.
 */
const MAX_FAILING = 300
/** The pauses before the next claim: after a claim that found no delivery, and after any other claim. */
const IDLE_MS = 250
const BUSY_MS = 10
const FLUSH_MS = 20
const BEAT_MS = 1_500
const COUNT_MS = 5_000
/** The time for which a stopping process waits for running attempts. */
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

export class WebhookWorker {
  readonly #options: WorkerOptions
  readonly #id = uuidv7()
  readonly #stopping = new AbortController()
  /** The number of running attempts, by endpoint and by organization. */
  readonly #running = new Map<string, number>()
  readonly #attempts = new Set<Promise<void>>()
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
        (isBusy) => (isBusy ? BUSY_MS : IDLE_MS),
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

  /** Returns undefined after an error, such as an outage of Postgres, which is logged at most once per LOG_INTERVAL_MS. */
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

  #runningOf(key: string): number {
    return this.#running.get(key) ?? 0
  }

  #add(key: string, change: number): void {
    const count = this.#runningOf(key) + change
    if (count === 0) this.#running.delete(key)
    else this.#running.set(key, count)
  }

  /** Returns the number of deliveries of each endpoint that may be claimed now. */
  #allowances(due: readonly DueEndpoint[]): { endpointId: string; count: number }[] {
    let left = MAX_IN_ALL - this.#attempts.size
    let leftToFailing = MAX_FAILING - this.#attempts.size
    const given = new Map<string, number>()
    return due.flatMap(({ endpointId, organizationId, enabled, isFailing }) => {
      if (organizationId === null || enabled !== true || left <= 0) return []
      const ofOrganization = given.get(organizationId) ?? 0
      const count = Math.min(
        (isFailing ? 1 : MAX_PER_ENDPOINT) - this.#runningOf(endpointId),
        MAX_PER_ORGANIZATION - this.#runningOf(organizationId) - ofOrganization,
        isFailing ? Math.min(left, leftToFailing) : left,
      )
      if (count <= 0) return []
      given.set(organizationId, ofOrganization + count)
      left -= count
      leftToFailing -= count
      return [{ endpointId, count }]
    })
  }

  /** Claims and attempts due deliveries within the allowances. Returns whether a delivery was claimed. */
  async #claim(): Promise<boolean> {
    const { db, keyring } = this.#options
    const due = await findDue(db)
    await failPending(
      db,
      due.filter(({ enabled }) => enabled !== true).map(({ endpointId }) => endpointId),
    )
    const claimed = await claim(db, this.#id, this.#allowances(due))
    const gone: string[] = []
    const sealed: string[] = []
    for (const one of claimed) {
      if (one.endpoint === null || one.type === null || one.data === null) gone.push(one.id)
      // Only a process with another master key can open the secret.
      else if (!keyring.canOpen(one.endpoint.masterKeyId)) sealed.push(one.id)
      else this.#start(one, one.endpoint, eventBody({ ...one, id: one.eventId, type: one.type, data: one.data }))
    }
    await failClaimed(db, this.#id, gone)
    await release(db, this.#id, sealed)
    return claimed.length > 0
  }

  #start(claimed: Claimed, endpoint: NonNullable<Claimed['endpoint']>, body: string): void {
    this.#add(claimed.endpointId, 1)
    this.#add(claimed.organizationId, 1)
    const attempt = this.#deliver(claimed, endpoint, body).finally(() => {
      this.#add(claimed.endpointId, -1)
      this.#add(claimed.organizationId, -1)
      this.#attempts.delete(attempt)
    })
    this.#attempts.add(attempt)
  }

  async #deliver(claimed: Claimed, endpoint: NonNullable<Claimed['endpoint']>, body: string): Promise<void> {
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

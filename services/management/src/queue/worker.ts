/**
 * Attempts the due rows of a queue (docs/api.md#w5). Every management process runs a worker for each queue. Each worker limits the number of
 * its concurrent attempts for each lane and each organization, so a slow lane does not delay others. A failing lane gets one attempt at a
 * time. An outcome is written after its attempt, so when a process is killed, attempts may be repeated but no row is lost.
 */

import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

import { uuidv7 } from '@keyward/database'
import { type Logger, repeat, throttledLog } from '@keyward/runtime'
import { Tally } from '@keyward/runtime/tally'

import type { Db } from '../context.ts'
import { allowancesOf, type ClaimLimits } from './allowances.ts'
import { type Allowance, beat, countDue, type DueLane, leave, type Queue, release, releaseOthers } from './queue.ts'

/**
 * The pauses after a claim: IDLE_MS if it claimed no row, BUSY_MS if a lane has a backlog, and otherwise CALM_MS. A claim and a flush
 * cost about the same for few rows as for many, so both wait for more rows while no lane has a backlog.
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

/** A claimed row with everything that its attempt requires. */
export interface Job {
  id: string
  lane: string
  organizationId: string
}

/** The result of an attempt. */
export interface Outcome {
  id: string
  /** Whether the lane fails. Its waiting rows are released, and are then claimed one at a time. */
  isFailing: boolean
}

export interface Claim<OneJob extends Job> {
  jobs: OneJob[]
  ended: readonly Pick<Job, 'lane'>[]
  later: string[]
}

/** The part of a worker that depends on the queue. */
export interface Work<OneJob extends Job, OneOutcome extends Outcome> {
  queue: Queue
  claimed: ClaimLimits
  /** The maximum numbers of concurrent attempts. */
  running: { lane: number; organization: number }
  /** The log message when a statement fails. */
  failure: string
  findDue: () => Promise<DueLane[]>
  /** Claims due rows. Ends the rows that cannot be attempted, and returns them in `ended`. Rows in `later` are for another process. */
  claim: (worker: string, allowances: readonly Allowance[]) => Promise<Claim<OneJob>>
  /** Makes an attempt. Never rejects. Returns null when the attempt ended because the process stops. */
  attempt: (job: OneJob, stopping: AbortSignal) => Promise<OneOutcome | null>
  write: (worker: string, outcomes: readonly OneOutcome[]) => Promise<void>
  /** Called after the outcomes are written. */
  written?: (outcomes: readonly OneOutcome[]) => Promise<void>
  setDue: (count: number) => void
  /** Ends the attempts that are still running STOP_MS after the stop. */
  close?: () => Promise<void>
}

export class QueueWorker<OneJob extends Job, OneOutcome extends Outcome> {
  readonly #db: Db
  readonly #work: Work<OneJob, OneOutcome>
  readonly #id = uuidv7()
  readonly #stopping = new AbortController()
  /** The numbers of claimed rows, including running attempts. */
  readonly #claimed = { lanes: new Tally<string>(), organizations: new Tally<string>() }
  readonly #running = { lanes: new Tally<string>(), organizations: new Tally<string>() }
  readonly #attempts = new Set<Promise<void>>()
  /** The ids of claimed rows whose outcome is not stored yet. */
  readonly #mine = new Set<string>()
  #lastReconciledMs = Date.now()
  /** The claimed rows that are not attempted yet, in the order of their claims. */
  #waiting: OneJob[] = []
  /** Starts further attempts in the next turn of the event loop. */
  #continuation: NodeJS.Immediate | null = null
  #outcomes: OneOutcome[] = []
  readonly #logFailure: (fields: object) => void
  readonly #loops: Promise<unknown>

  constructor(db: Db, log: Logger, work: Work<OneJob, OneOutcome>) {
    this.#db = db
    this.#work = work
    this.#logFailure = throttledLog(log, work.failure, { level: 'error', intervalMs: LOG_INTERVAL_MS })
    this.#loops = this.#run()
  }

  /** Waits up to STOP_MS for running attempts, and releases rows that have not been attempted. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#loops
    await Promise.race([Promise.all(this.#attempts), sleep(STOP_MS)])
    await this.#work.close?.()
    const onError = (err: unknown) => this.#logFailure({ err })
    await this.#flush().catch(onError)
    await leave(this.#db, this.#work.queue, this.#id).catch(onError)
  }

  async #run(): Promise<void> {
    const db = this.#db
    const { queue, setDue } = this.#work
    const { signal } = this.#stopping
    const onError = (err: unknown) => this.#logFailure({ err })
    // The first heartbeat is written before the first claim, because other workers release the claims of a worker without a heartbeat.
    await beat(db, queue, this.#id).catch(onError)
    const stops = [
      repeat(() => beat(db, queue, this.#id), { everyMs: BEAT_MS, onError }),
      repeat(() => this.#flush(), { everyMs: FLUSH_MS, onError }),
      repeat(async () => setDue(await countDue(db, queue)), { everyMs: COUNT_MS, onError }),
      repeat(() => this.#claim(), { everyMs: IDLE_MS, onError }),
    ]
    if (!signal.aborted) await once(signal, 'abort')
    await Promise.all(stops.map((stop) => stop()))
  }

  #count(counted: 'claimed' | 'running', { lane, organizationId }: Job, change: 1 | -1): void {
    const { lanes, organizations } = counted === 'claimed' ? this.#claimed : this.#running
    lanes.add(lane, change)
    organizations.add(organizationId, change)
  }

  /** Claims and attempts due rows within the allowances. Returns the pause until the next claim. */
  async #claim(): Promise<number> {
    const { queue, claimed: limits, findDue, claim } = this.#work
    if (Date.now() - this.#lastReconciledMs >= RECONCILE_MS) {
      // After a failed claim, or one whose response was lost in an outage, this worker has claimed rows that `#mine` does not contain.
      await releaseOthers(this.#db, queue, this.#id, [...this.#mine])
      this.#lastReconciledMs = Date.now()
    }
    const inAll = this.#attempts.size + this.#waiting.length
    const allowances = allowancesOf(limits, await findDue(), this.#claimed, inAll)
    if (allowances.length === 0) return IDLE_MS
    const { jobs, ended, later } = await claim(this.#id, allowances).catch((error: unknown) => {
      // The failed claim may have claimed rows. The next one releases them first.
      this.#lastReconciledMs = -Infinity
      throw error
    })
    const counts = new Tally<string>()
    for (const { lane } of ended) counts.add(lane)
    for (const job of jobs) {
      this.#mine.add(job.id)
      this.#waiting.push(job)
      this.#count('claimed', job, 1)
      counts.add(job.lane)
    }
    this.#startWaiting()
    await release(this.#db, queue, this.#id, later)
    if (jobs.length + ended.length === 0) return IDLE_MS
    // A lane has a backlog if the claim returned all rows that its allowance permits.
    return allowances.some(({ lane, count }) => counts.of(lane) === count) ? BUSY_MS : CALM_MS
  }

  /**
   * Starts the attempts that the limits of lane and organization allow. Starts at most MAX_STARTS in one turn of the event loop, so that
   * requests to this process do not wait for many attempts.
   */
  #startWaiting(): void {
    const { running } = this.#work
    const rest: OneJob[] = []
    let started = 0
    for (const job of this.#waiting) {
      const isAllowed =
        started < MAX_STARTS &&
        this.#running.lanes.of(job.lane) < running.lane &&
        this.#running.organizations.of(job.organizationId) < running.organization
      if (isAllowed) {
        this.#start(job)
        started++
      } else rest.push(job)
    }
    this.#waiting = rest
    if (started < MAX_STARTS || this.#continuation !== null) return
    this.#continuation = setImmediate(() => {
      this.#continuation = null
      if (!this.#stopping.signal.aborted) this.#startWaiting()
    })
  }

  #start(job: OneJob): void {
    this.#count('running', job, 1)
    const attempt = this.#attempt(job).finally(() => {
      this.#count('running', job, -1)
      this.#count('claimed', job, -1)
      this.#attempts.delete(attempt)
      if (!this.#stopping.signal.aborted) this.#startWaiting()
    })
    this.#attempts.add(attempt)
  }

  async #attempt(job: OneJob): Promise<void> {
    const outcome = await this.#work.attempt(job, this.#stopping.signal)
    // This process stops, and another process will attempt the row.
    if (outcome === null) return
    this.#outcomes.push(outcome)
    if (outcome.isFailing) this.#returnWaiting(job.lane)
  }

  /** Releases the waiting rows of a failing lane. They are then claimed one at a time. */
  #returnWaiting(lane: string): void {
    const returned = this.#waiting.filter((job) => job.lane === lane)
    if (returned.length === 0) return
    this.#waiting = this.#waiting.filter((job) => job.lane !== lane)
    for (const job of returned) {
      this.#count('claimed', job, -1)
      this.#mine.delete(job.id)
    }
    const ids = returned.map(({ id }) => id)
    release(this.#db, this.#work.queue, this.#id, ids).catch((err: unknown) => this.#logFailure({ err }))
  }

  /** Writes the outcomes since the previous call. After an error, the next call writes them again. */
  async #flush(): Promise<void> {
    const outcomes = this.#outcomes
    if (outcomes.length === 0) return
    this.#outcomes = []
    try {
      await this.#work.write(this.#id, outcomes)
    } catch (error) {
      // The list is bounded, because a claimed row is not claimed again before its outcome is written.
      this.#outcomes = [...outcomes, ...this.#outcomes]
      throw error
    }
    for (const { id } of outcomes) this.#mine.delete(id)
    await this.#work.written?.(outcomes)
  }
}

/**
 * Sends requests over keep-alive connections at a fixed rate. Every latency is measured from the time at which its request was due. A
 * stall of the server therefore counts for every request that had to wait (no coordinated omission). Without a rate, each connection sends
 * its next request when it has received the previous response.
 */

import { Connection } from './connection.ts'
import { LatencyHistogram } from './histogram.ts'
import { codeOf, Tally, type LoadOutcome } from './outcome.ts'
import { Timeline } from './timeline.ts'

export interface LoadOptions {
  url: URL
  /** Returns the next HTTP request, complete with headers and body. */
  nextRequest: () => Buffer | string
  /** The rate, or null to send as fast as possible. */
  ratePerSecond: number | null
  /** The rate at the end of the run, up or down to which the rate changes evenly. By default, the rate stays. */
  rampToPerSecond?: number | null
  /** Whether the outcome contains the intervals of the run. */
  recordsIntervals?: boolean
  connections: number
  durationMs: number
  /** The length of the warm-up before the measurement, at the same rate. */
  warmUpMs?: number
  timeoutMs?: number
  /** The time after the measurement in which requests that were due earlier may still be sent and get their response. */
  drainMs?: number
  /**
   * Whether to sleep a millisecond between sends, so that other programs can use the core. Requests that are due
   * meanwhile are sent together.
   */
  sleeps?: boolean
  /** Receives the number of responses so far, once a second. */
  onProgress?: (responses: number) => void
  signal?: AbortSignal | undefined
}

export interface Ramp {
  toPerSecond: number
  durationMs: number
}

/**
 * Computes the times at which requests are due, one every `1e9 / ratePerSecond` nanoseconds from the start. Without a rate, they are always
 * due. During a ramp, the rate changes evenly, and stays at the last rate afterwards.
 */
export class Schedule {
  readonly #startNs: number
  readonly #perNs: number | null
  readonly #ramp: { perNs2: number; requests: number; durationNs: number; lastPerNs: number } | null
  #taken = 0

  constructor(startNs: number, ratePerSecond: number | null, ramp: Ramp | null = null) {
    this.#startNs = startNs
    this.#perNs = ratePerSecond === null ? null : ratePerSecond / 1e9
    this.#ramp = null
    if (ramp === null || this.#perNs === null || ramp.toPerSecond === ratePerSecond) return
    const [lastPerNs, durationNs] = [ramp.toPerSecond / 1e9, ramp.durationMs * 1e6]
    const requests = (durationNs * (this.#perNs + lastPerNs)) / 2
    this.#ramp = { perNs2: (lastPerNs - this.#perNs) / durationNs, requests, durationNs, lastPerNs }
  }

  /** Returns the time at which the next request is due. */
  nextNs(nowNs: number): number {
    if (this.#perNs === null) return nowNs
    if (this.#ramp === null) return this.#startNs + this.#taken / this.#perNs
    const { perNs2, requests, durationNs, lastPerNs } = this.#ramp
    if (this.#taken >= requests) return this.#startNs + durationNs + (this.#taken - requests) / lastPerNs
    // The root of taken = perNs * t + perNs2 * t^2 / 2, in a form that does not cancel for a slow ramp.
    const root = Math.sqrt(this.#perNs * this.#perNs + 2 * perNs2 * this.#taken)
    return this.#startNs + (2 * this.#taken) / (this.#perNs + root)
  }

  take(nowNs: number): number {
    const due = this.nextNs(nowNs)
    this.#taken += 1
    return due
  }
}

/** The rate above which timers are too coarse, so the loop spins and needs a whole core. */
const SPIN_ABOVE_PER_SECOND = 500
const DEFAULT_DRAIN_MS = 2000
const DEFAULT_TIMEOUT_MS = 10_000
const END_POLL_MS = 5

export function runLoad(options: LoadOptions): Promise<LoadOutcome> {
  return new LoadRun(options).run()
}

class LoadRun {
  readonly #options: LoadOptions
  readonly #connections: Connection[] = []
  readonly #idle: Connection[] = []
  readonly #latency = new LatencyHistogram()
  readonly #statuses = new Tally()
  readonly #codes = new Tally()
  readonly #errors = new Tally()
  readonly #timeline: Timeline | null
  /** Null until the run starts. */
  #schedule: Schedule | null = null
  #measureFromNs = 0
  #endNs = 0
  #drainedNs = Number.POSITIVE_INFINITY
  #lastResponseNs = 0
  #started = false
  #isOver = false
  readonly #over = Promise.withResolvers<void>()

  constructor(options: LoadOptions) {
    this.#options = options
    this.#timeline = options.recordsIntervals === true ? new Timeline(options.durationMs) : null
  }

  async run(): Promise<LoadOutcome> {
    const { connections, url, signal, onProgress } = this.#options
    const housekeeping = setInterval(() => {
      this.#abandonLateRequests()
      onProgress?.(this.#latency.count)
    }, 1000)
    const end = (): void => this.#over.resolve()
    signal?.addEventListener('abort', end)
    if (signal?.aborted === true) end()
    const events = {
      responded: (connection: Connection, status: number, body: string) => this.#responded(connection, status, body),
      failed: (connection: Connection, reason: string, busy: boolean) => this.#failed(connection, reason, busy),
      ready: (connection: Connection) => this.#ready(connection),
    }
    for (let n = 0; n < connections; n += 1) this.#connections.push(new Connection(url, events))
    const late = setTimeout(() => this.#start(), 1000)
    await this.#over.promise
    this.#isOver = true
    signal?.removeEventListener('abort', end)
    clearTimeout(late)
    clearInterval(housekeeping)
    for (const connection of this.#connections) connection.close()
    return this.#outcome()
  }

  #ready(connection: Connection): void {
    this.#idle.push(connection)
    if (!this.#started && this.#idle.length === this.#options.connections) this.#start()
    else if (this.#started) this.#sendDue()
  }

  #start(): void {
    if (this.#started) return
    this.#started = true
    const { durationMs, warmUpMs = 0, ratePerSecond, rampToPerSecond = null } = this.#options
    const { drainMs = DEFAULT_DRAIN_MS } = this.#options
    const nowNs = clockNs()
    const ramp = rampToPerSecond === null ? null : { toPerSecond: rampToPerSecond, durationMs: warmUpMs + durationMs }
    this.#schedule = new Schedule(nowNs, ratePerSecond, ramp)
    this.#measureFromNs = nowNs + warmUpMs * 1e6
    this.#endNs = this.#measureFromNs + durationMs * 1e6
    this.#drainedNs = this.#endNs + drainMs * 1e6
    this.#lastResponseNs = nowNs
    this.#loop(this.#schedule)
  }

  #loop(schedule: Schedule): void {
    if (this.#isOver) return
    this.#sendDue()
    const nowNs = clockNs()
    const nextNs = schedule.nextNs(nowNs)
    const allSent = nextNs >= this.#endNs
    if ((allSent && this.#connections.every((connection) => !connection.busy)) || nowNs > this.#drainedNs) {
      return this.#end()
    }
    const { ratePerSecond, rampToPerSecond, sleeps = false } = this.#options
    const fastest = ratePerSecond === null ? 0 : Math.max(ratePerSecond, rampToPerSecond ?? 0)
    const spins = fastest > SPIN_ABOVE_PER_SECOND && !sleeps
    if (spins && !allSent) setImmediate(() => this.#loop(schedule))
    else setTimeout(() => this.#loop(schedule), allSent ? END_POLL_MS : Math.max(0, (nextNs - nowNs) / 1e6))
  }

  #sendDue(): void {
    const nowNs = clockNs()
    const untilNs = Math.min(nowNs, this.#endNs - 1)
    while (this.#schedule !== null && this.#schedule.nextNs(nowNs) <= untilNs) {
      const connection = this.#idle.shift()
      if (connection === undefined) return
      connection.dueNs = this.#schedule.take(nowNs)
      connection.send(this.#options.nextRequest())
    }
  }

  #responded(connection: Connection, status: number, body: string): void {
    const nowNs = clockNs()
    if (connection.dueNs >= this.#measureFromNs) {
      const latencyUs = (nowNs - connection.dueNs) / 1000
      this.#latency.record(latencyUs)
      this.#timeline?.responded((connection.dueNs - this.#measureFromNs) / 1e6, latencyUs)
      this.#statuses.add(String(status))
      this.#codes.add(codeOf(body))
      this.#lastResponseNs = nowNs
    }
    this.#idle.push(connection)
    this.#sendDue()
  }

  #failed(connection: Connection, reason: string, busy: boolean): void {
    this.#timeline?.failed((clockNs() - this.#measureFromNs) / 1e6)
    this.#errors.add(busy ? reason : `connection: ${reason}`)
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
  }

  #abandonLateRequests(): void {
    const oldestMs = performance.now() - (this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS)
    for (const connection of this.#connections) {
      if (connection.busy && connection.sentAtMs < oldestMs) connection.abandon('timed out')
    }
  }

  #end(): void {
    const nowNs = clockNs()
    while (this.#schedule !== null && this.#schedule.nextNs(nowNs) < this.#endNs) {
      const dueNs = this.#schedule.take(nowNs)
      this.#timeline?.failed((dueNs - this.#measureFromNs) / 1e6)
      this.#errors.add('never sent: the server fell behind the rate')
    }
    this.#over.resolve()
  }

  #outcome(): LoadOutcome {
    const { signal, ratePerSecond, rampToPerSecond = null } = this.#options
    const untilNs = signal?.aborted === true ? this.#lastResponseNs : Math.max(this.#lastResponseNs, this.#endNs)
    const durationMs = Math.max(1, (untilNs - this.#measureFromNs) / 1e6)
    return {
      generator: ratePerSecond === null ? 'as-fast-as-possible' : 'fixed-rate',
      requests: this.#latency.count,
      durationMs,
      perSecond: (this.#latency.count / durationMs) * 1000,
      latency: this.#latency.summary(),
      statuses: this.#statuses.toObject(),
      codes: this.#codes.toObject(),
      errors: this.#errors.toObject(),
      targetPerSecond:
        ratePerSecond === null || rampToPerSecond === null ? ratePerSecond : (ratePerSecond + rampToPerSecond) / 2,
      ...(rampToPerSecond === null ? {} : { rampToPerSecond }),
      ...(this.#timeline === null ? {} : { intervals: this.#timeline.intervals(durationMs) }),
    }
  }
}

function clockNs(): number {
  return performance.now() * 1e6
}

/**
 * Gathers the claims of all workers and takes them to Postgres in batches: one statement for what comes within a few
 * milliseconds, over all licenses (API document, states rule 3). Two claims for one machine of one license are one claim. A
 * license whose row somebody holds delays nobody else: what the batch skipped is tried again by itself, a batch that fails
 * is tried again by halves, and after its time a claim ends without an answer. A claim that Postgres granted unheard is
 * answered `known` when it comes again, so ending without an answer loses no slot.
 */

import type { ClaimAnswer } from '@keyward/database'
import { machineKey } from '@keyward/database/ids'

export interface Claim {
  licenseId: Uint8Array
  machineId: Uint8Array
  hostname: string | null
  /** Memory says that the license is full. While somebody holds its row, that is answer enough. */
  isRecheck: boolean
}

export interface ClaimExecutor {
  /** One statement; answers in the order of the claims. With `waits`, waits a moment for rows that others hold. */
  execute(claims: readonly Claim[], waits: boolean): Promise<ClaimAnswer[]>
  /** True when the error says that smaller batches would fail as well. */
  isHopeless(error: unknown): boolean
}

export interface ClaimQueueOptions {
  executor: ClaimExecutor
  windowMs?: number
  /** After this a claim ends without an answer. */
  limitMs?: number
  maxBatch?: number
  maxConcurrent?: number
  maxQueued?: number
  onBatch?: (size: number, tookMs: number) => void
  onError?: (error: unknown) => void
}

interface Entry {
  claim: Claim
  key: string
  expiresMs: number
  waiting: ((answer: ClaimAnswer | null) => void)[]
  isSettled: boolean
}

export class ClaimQueue {
  readonly #options: Required<ClaimQueueOptions>
  readonly #entries = new Map<string, Entry>()
  #queue: Entry[] = []
  #running = 0
  #timer: NodeJS.Timeout | null = null
  readonly #sweeper: NodeJS.Timeout

  constructor(options: ClaimQueueOptions) {
    const defaults = { windowMs: 2, limitMs: 1_500, maxBatch: 256, maxConcurrent: 4, maxQueued: 50_000 }
    this.#options = { ...defaults, onBatch: () => undefined, onError: () => undefined, ...options }
    this.#sweeper = setInterval(() => this.#sweep(), 50)
  }

  /** How many claims wait or run. */
  get size(): number {
    return this.#entries.size
  }

  /** `done` gets null when Postgres gave no answer in time. */
  claim(claim: Claim, done: (answer: ClaimAnswer | null) => void): void {
    const key = machineKey(claim.licenseId, claim.machineId)
    const known = this.#entries.get(key)
    if (known) {
      known.waiting.push(done)
      return
    }
    if (this.#entries.size >= this.#options.maxQueued) return done(null)
    const expiresMs = performance.now() + this.#options.limitMs
    const entry = { claim, key, expiresMs, waiting: [done], isSettled: false }
    this.#entries.set(key, entry)
    this.#queue.push(entry)
    this.#schedule()
  }

  /** Ends every claim without an answer. */
  close(): void {
    clearInterval(this.#sweeper)
    if (this.#timer) clearTimeout(this.#timer)
    for (const entry of this.#entries.values()) this.#settle(entry, null)
  }

  /** A window is waited out once; while all connections are busy the batch grows instead. */
  #schedule(): void {
    if (this.#timer || this.#queue.length === 0 || this.#running >= this.#options.maxConcurrent) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      const batch = this.#queue.splice(0, this.#options.maxBatch).filter((entry) => !entry.isSettled)
      if (batch.length > 0) void this.#run(batch)
      this.#schedule()
    }, this.#options.windowMs)
  }

  async #run(batch: Entry[]): Promise<void> {
    this.#running++
    try {
      await this.#attempt(batch, false)
    } finally {
      this.#running--
      this.#schedule()
    }
  }

  async #attempt(batch: Entry[], waits: boolean): Promise<void> {
    const startedMs = performance.now()
    let settled: ClaimAnswer[]
    try {
      settled = await this.#options.executor.execute(
        batch.map((entry) => entry.claim),
        waits,
      )
    } catch (error) {
      this.#options.onError(error)
      return this.#retry(batch, waits, error)
    }
    this.#options.onBatch(batch.length, performance.now() - startedMs)
    const busy = batch.filter((entry, i) => {
      const answer = settled[i] ?? null
      if (answer?.outcome === 'busy' && !waits && !entry.claim.isRecheck) return true
      this.#settle(entry, answer?.outcome === 'busy' ? null : answer)
      return false
    })
    await Promise.all(byLicense(busy).map((group) => this.#attempt(group, true)))
  }

  /** By halves, so that one bad claim fails alone; not at all when nothing can work. One after the other: both may be of one license. */
  async #retry(batch: Entry[], waits: boolean, error: unknown): Promise<void> {
    if (batch.length === 1 || this.#options.executor.isHopeless(error)) {
      for (const entry of batch) this.#settle(entry, null)
      return
    }
    const open = batch.filter((entry) => !entry.isSettled && entry.expiresMs > performance.now())
    const middle = Math.ceil(open.length / 2)
    for (const half of [open.slice(0, middle), open.slice(middle)])
      if (half.length > 0) await this.#attempt(half, waits)
  }

  #settle(entry: Entry, settled: ClaimAnswer | null): void {
    if (entry.isSettled) return
    entry.isSettled = true
    if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key)
    for (const done of entry.waiting) done(settled)
  }

  /** Claims leave in the order in which they came, so the first that has time ends the search. */
  #sweep(): void {
    const nowMs = performance.now()
    for (const entry of this.#entries.values()) {
      if (entry.expiresMs > nowMs) break
      this.#settle(entry, null)
    }
  }
}

function byLicense(entries: readonly Entry[]): Entry[][] {
  const groups = new Map<string, Entry[]>()
  for (const entry of entries) {
    const license = entry.key.slice(0, 32)
    const group = groups.get(license)
    if (group) group.push(entry)
    else groups.set(license, [entry])
  }
  return [...groups.values()]
}

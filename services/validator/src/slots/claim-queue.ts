/**
 * Collects the claims of all workers and executes them in batches (docs/api.md#s1). One statement executes the claims that
 * arrive within a few milliseconds, for any number of licenses. Equal claims of one machine and license are combined. Claims of
 * a license whose row is locked are retried separately, so they do not delay other licenses. A failed batch is retried in
 * halves. A claim that takes too long ends undecided. If Postgres granted it nevertheless, the machine's next claim finds the
 * slot as `known`, so no slot is lost.
 *
 * Organizations take turns in a batch. The number of an organization's claims is limited in one batch, in all executing
 * batches, and in total. Therefore a flood of claims from one organization does not delay the others (docs/api.md#s9).
 */

import type { ClaimAnswer } from '@keyward/database'
import { machineKey, toHex } from '@keyward/database/ids'
import { FairQueue } from '@keyward/runtime/fair-queue'
import { Tally } from '@keyward/runtime/tally'

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'
import type { LeaseKey } from '../shared/leases.ts'

const SWEEP_MS = 50

export interface Claim {
  /** The row of the organization in the index. */
  organization: number
  licenseId: Uint8Array
  machineId: Uint8Array
  hostname: string | null
  /** Whether the license is full in the index. The claim is then not retried when the row of the license is locked. */
  isRecheck: boolean
  /** The key under which a lease of the machine is stored. It is null for a license without leases. */
  lease: LeaseKey | null
}

export interface ClaimExecutor {
  /** Executes one statement, which waits briefly for locked rows if `waits` is true. Results are in the order of the claims. */
  execute(claims: readonly Claim[], waits: boolean): Promise<ClaimAnswer[]>
  /** Returns whether smaller batches would fail with this error as well. */
  isHopeless(error: unknown): boolean
}

export interface ClaimQueueOptions {
  executor: ClaimExecutor
  /** The time for which a batch collects claims. */
  windowMs?: number
  /** The time after which a claim ends undecided. */
  limitMs?: number
  maxBatch?: number
  maxConcurrent?: number
  maxQueued?: number
  /** The maximum numbers of one organization's claims: waiting or executing, executing, and in one batch. */
  organization?: { maxQueued: number; maxExecuting: number; maxBatch: number }
  onBatch?: (size: number, tookMs: number) => void
  onError?: (error: unknown) => void
  /** Receives the result of a claim that has ended undecided meanwhile. */
  onLate?: (claim: Claim, result: ClaimAnswer) => void
  clock?: Clock
}

/**
 * Receives the result, or null when the claim ended undecided. `sentMs` is the time at which the statement of the claim was
 * sent.
 */
type Done = (result: ClaimAnswer | null, sentMs: number) => void

interface Entry {
  claim: Claim
  key: string
  expiresMs: number
  /** The callbacks of every claim of this machine and license, at least one. */
  waiting: Done[]
  /** Whether the callbacks have been called. */
  isSettled: boolean
}

export class ClaimQueue {
  readonly #options: Required<ClaimQueueOptions>
  /** Every entry that is not settled, by license and machine id, in the order of arrival. */
  readonly #entries = new Map<string, Entry>()
  /** The entries that are in no batch yet. Settled entries are skipped when a batch is formed. */
  readonly #queue = new FairQueue<number, Entry>({ isDead: ({ isSettled }) => isSettled })
  /** The number of entries that are not settled, by organization. */
  readonly #open = new Tally<number>()
  /** The number of claims in batches that are executing, by organization. */
  readonly #executing = new Tally<number>()
  /** The number of batches that are executing, at most `maxConcurrent`. */
  #running = 0
  /** Cancels the window of the next batch. The function is null while no window is open. */
  #cancelWindow: (() => void) | null = null
  /** Cancels the next sweep. */
  #cancelSweep: () => void

  constructor(options: ClaimQueueOptions) {
    const limits = { windowMs: 2, limitMs: 1_500, maxBatch: 256, maxConcurrent: 4, maxQueued: 50_000 }
    const organization = { maxQueued: 10_000, maxExecuting: 128, maxBatch: 64 }
    const defaults = {
      ...limits,
      organization,
      onBatch: () => undefined,
      onError: () => undefined,
      onLate: () => undefined,
      clock: SYSTEM_CLOCK,
    }
    this.#options = { ...defaults, ...options }
    this.#cancelSweep = this.#scheduleSweep()
  }

  /** The number of claims that wait or execute. */
  get size(): number {
    return this.#entries.size
  }

  claim(claim: Claim, done: Done): void {
    const key = machineKey(claim.licenseId, claim.machineId)
    const known = this.#entries.get(key)
    if (known) {
      known.waiting.push(done)
      return
    }
    const { maxQueued, organization } = this.#options
    const isFull = this.#entries.size >= maxQueued || this.#open.of(claim.organization) >= organization.maxQueued
    if (isFull) return done(null, 0)
    const expiresMs = this.#options.clock.nowMs() + this.#options.limitMs
    const entry = { claim, key, expiresMs, waiting: [done], isSettled: false }
    this.#entries.set(key, entry)
    this.#open.add(claim.organization)
    this.#queue.add(claim.organization, entry)
    this.#schedule()
  }

  /** Ends every claim undecided. */
  close(): void {
    this.#cancelSweep()
    this.#cancelWindow?.()
    for (const entry of this.#entries.values()) this.#settle(entry, null)
  }

  /** Starts a window, unless one is open. While all connections are busy, claims collect for the next batch. */
  #schedule(): void {
    if (this.#cancelWindow || this.#queue.size === 0 || this.#running >= this.#options.maxConcurrent) return
    this.#cancelWindow = this.#options.clock.after(this.#options.windowMs, () => {
      this.#cancelWindow = null
      const { maxBatch, organization } = this.#options
      const batch = this.#queue.take(maxBatch, (row) =>
        Math.min(organization.maxBatch, organization.maxExecuting - this.#executing.of(row)),
      )
      if (batch.length > 0) void this.#run(batch)
      // If the batch is empty, every waiting organization has reached its limit. The end of an executing batch then opens a
      // window.
      if (batch.length > 0 || this.#running === 0) this.#schedule()
    })
  }

  async #run(batch: Entry[]): Promise<void> {
    this.#running++
    for (const { claim } of batch) this.#executing.add(claim.organization)
    try {
      await this.#attempt(batch, false)
    } finally {
      for (const { claim } of batch) this.#executing.add(claim.organization, -1)
      this.#running--
      this.#schedule()
    }
  }

  async #attempt(batch: Entry[], waits: boolean): Promise<void> {
    const startedMs = this.#options.clock.nowMs()
    let results: ClaimAnswer[]
    try {
      results = await this.#options.executor.execute(
        batch.map((entry) => entry.claim),
        waits,
      )
    } catch (error) {
      this.#options.onError(error)
      return this.#retry(batch, waits, error)
    }
    this.#options.onBatch(batch.length, this.#options.clock.nowMs() - startedMs)
    const busy = batch.filter((entry, i) => {
      const result = results[i] ?? null
      if (result?.outcome === 'busy' && !waits && !entry.claim.isRecheck) return true
      this.#settle(entry, result?.outcome === 'busy' ? null : result, startedMs)
      return false
    })
    const organizations = Map.groupBy(busy, ({ claim }) => claim.organization)
    await Promise.all(Array.from(organizations.values(), (entries) => this.#attemptEach(entries)))
  }

  /** Retries one license after the other, so that the locked licenses of an organization occupy only one connection. */
  async #attemptEach(busy: readonly Entry[]): Promise<void> {
    for (const group of Map.groupBy(busy, ({ claim }) => toHex(claim.licenseId)).values()) {
      const open = group.filter((entry) => !entry.isSettled)
      if (open.length > 0) await this.#attempt(open, true)
    }
  }

  /**
   * Retries a failed batch in halves, so that one invalid claim fails alone. The halves run one after the other, because both
   * may contain claims of the same license.
   */
  async #retry(batch: Entry[], waits: boolean, error: unknown): Promise<void> {
    if (batch.length === 1 || this.#options.executor.isHopeless(error)) {
      for (const entry of batch) this.#settle(entry, null)
      return
    }
    const open = batch.filter((entry) => !entry.isSettled && entry.expiresMs > this.#options.clock.nowMs())
    const middle = Math.ceil(open.length / 2)
    for (const half of [open.slice(0, middle), open.slice(middle)])
      if (half.length > 0) await this.#attempt(half, waits)
  }

  #settle(entry: Entry, result: ClaimAnswer | null, sentMs = 0): void {
    if (entry.isSettled) {
      if (result !== null) this.#options.onLate(entry.claim, result)
      return
    }
    entry.isSettled = true
    this.#open.add(entry.claim.organization, -1)
    if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key)
    for (const done of entry.waiting) done(result, sentMs)
  }

  #scheduleSweep(): () => void {
    return this.#options.clock.after(SWEEP_MS, () => {
      this.#cancelSweep = this.#scheduleSweep()
      this.#sweep()
    })
  }

  /** Ends expired claims. Entries are in the order of arrival, so the first one that has not expired ends the search. */
  #sweep(): void {
    const nowMs = this.#options.clock.nowMs()
    for (const entry of this.#entries.values()) {
      if (entry.expiresMs > nowMs) break
      this.#settle(entry, null)
    }
  }
}

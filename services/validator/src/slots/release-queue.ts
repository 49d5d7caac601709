/**
 * Collects the releases of all workers and executes them in batches (docs/api.md#s7). A batch is one statement, and thus one commit, for
 * many machines of many licenses. Anyone with an app's API key can send deactivations and invent machine ids, so the queue bounds their cost
 * by organization and by license. Two batches may execute at the same time, but an organization takes part in only one of them, so that a
 * slow batch does not delay the releases of other organizations.
 */

import type { ReleaseAnswer } from '@keyward/database'
import { machineKey } from '@keyward/database/ids'
import { FairQueue } from '@keyward/runtime/fair-queue'
import { Tally } from '@keyward/runtime/tally'

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'
import { RateLimit } from './rate-limit.ts'

export interface Release {
  /** The row of the organization in the index. */
  organization: number
  licenseId: Uint8Array
  /** The machine id, or empty if `ref` names the machine. */
  machineId: Uint8Array
  ref: string | null
  /** Whether the machine holds a slot according to the index. */
  isKnown: boolean
}

/** Executes one statement. Results are in the order of the releases. A null result means that the release is undecided. */
export type ReleaseExecutor = (releases: readonly Release[]) => Promise<readonly (ReleaseAnswer | null)[]>

/** Receives the result, or null when the release ended undecided. */
type Done = (result: ReleaseAnswer | null) => void

interface Entry {
  release: Release
  key: string
  /** The id of the license in hexadecimal. */
  license: string
  expiresMs: number
  /** The callbacks of all equal releases, at least one. */
  waiting: Done[]
}

const WINDOW_MS = 2
/** The interval at which the queue is examined while limits or an executing batch delay the waiting releases. */
const TICK_MS = 10
/** The number of batches in which an organization or license may take part before its rate is limited. */
const BURST = 10
const ORGANIZATION_INTERVAL_MS = 50
const LICENSE_INTERVAL_MS = 200
/** The delay before the next attempt, after the row of a license was locked. */
const LOCKED_DELAY_MS = 25
const MAX_BATCH = 256
const MAX_CONCURRENT = 2
const MAX_ORGANIZATION_BATCH = 64
/** The maximum number of waiting releases of one license for machines that the index does not contain. */
const MAX_UNKNOWN = 16
const MAX_ORGANIZATION_WAITING = 1_000
const MAX_WAITING = 20_000
/** The time after which a release ends undecided. It is shorter than the deadline of a request. */
const LIMIT_MS = 1_500
const LICENSE_HEX = 32

export class ReleaseQueue {
  readonly #execute: ReleaseExecutor
  readonly #clock: Clock
  /** The releases that are in no batch, by license and machine id, in the order of arrival. */
  readonly #entries = new Map<string, Entry>()
  readonly #queue = new FairQueue<number, Entry>({
    isDead: (entry) => this.#entries.get(entry.key) !== entry,
    isReady: ({ license }) => this.#licenses.isReady(license, this.#clock.nowMs()),
  })
  readonly #organizations = new RateLimit<number>(ORGANIZATION_INTERVAL_MS, BURST)
  readonly #licenses = new RateLimit<string>(LICENSE_INTERVAL_MS, BURST)
  readonly #waitingOf = new Tally<number>()
  /** The number of waiting releases for unknown machines, by license. */
  readonly #unknownOf = new Tally<string>()
  /** The organizations that take part in executing batches. */
  readonly #executing = new Set<number>()
  /** The number of batches that are executing. */
  #running = 0
  /** Cancels the timer of the next batch. The function is null while there is no timer. */
  #cancelTimer: (() => void) | null = null
  /** The time at which the next batch is due, if there is a timer. */
  #dueMs = 0

  constructor(execute: ReleaseExecutor, clock: Clock = SYSTEM_CLOCK) {
    this.#execute = execute
    this.#clock = clock
  }

  /** The number of releases that are in no batch. */
  get size(): number {
    return this.#entries.size
  }

  /** Adds a release. Calls `done` with null at once when too many releases wait. */
  add(release: Release, done: Done): void {
    // The keys of machine ids contain only bytes, so none contains this character.
    const ref = release.ref === null ? '' : `\u2192${release.ref}`
    const key = machineKey(release.licenseId, release.machineId) + ref
    const equal = this.#entries.get(key)
    if (equal) {
      equal.waiting.push(done)
      return
    }
    const license = key.slice(0, LICENSE_HEX)
    const isFull =
      this.#entries.size >= MAX_WAITING ||
      this.#waitingOf.of(release.organization) >= MAX_ORGANIZATION_WAITING ||
      (!release.isKnown && this.#unknownOf.of(license) >= MAX_UNKNOWN)
    if (isFull) return done(null)
    const nowMs = this.#clock.nowMs()
    const entry = { release, key, license, expiresMs: nowMs + LIMIT_MS, waiting: [done] }
    this.#insert(entry)
    this.#queue.add(release.organization, entry)
    const isReady = this.#isReady(release.organization, nowMs) && this.#licenses.isReady(license, nowMs)
    this.#schedule(isReady ? WINDOW_MS : TICK_MS)
  }

  /** Ends every waiting release undecided. */
  close(): void {
    this.#cancelTimer?.()
    for (const entry of this.#entries.values()) this.#end(entry)
  }

  #isReady(organization: number, nowMs: number): boolean {
    return !this.#executing.has(organization) && this.#organizations.isReady(organization, nowMs)
  }

  #insert(entry: Entry): void {
    this.#entries.set(entry.key, entry)
    this.#waitingOf.add(entry.release.organization)
    if (!entry.release.isKnown) this.#unknownOf.add(entry.license)
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry.key)
    this.#waitingOf.add(entry.release.organization, -1)
    if (!entry.release.isKnown) this.#unknownOf.add(entry.license, -1)
  }

  #end(entry: Entry): void {
    this.#remove(entry)
    settle(entry, null)
  }

  #schedule(delayMs: number): void {
    if (this.#running >= MAX_CONCURRENT || this.#entries.size === 0) return
    const dueMs = this.#clock.nowMs() + delayMs
    if (this.#cancelTimer && this.#dueMs <= dueMs) return
    this.#cancelTimer?.()
    this.#dueMs = dueMs
    this.#cancelTimer = this.#clock.after(delayMs, () => {
      this.#cancelTimer = null
      const batch = this.#take(this.#clock.nowMs())
      if (batch.length > 0) void this.#run(batch)
      // Other organizations may take part in a second batch.
      this.#schedule(TICK_MS)
    })
  }

  async #run(batch: Entry[]): Promise<void> {
    const organizations = new Set(batch.map(({ release }) => release.organization))
    this.#running++
    for (const one of organizations) this.#executing.add(one)
    const results = await this.#execute(batch.map(({ release }) => release)).catch(() => [])
    this.#running--
    for (const one of organizations) this.#executing.delete(one)
    const isLocked = (i: number): boolean => results[i]?.outcome === 'busy'
    for (const [i, entry] of batch.entries()) if (!isLocked(i)) settle(entry, results[i] ?? null)
    this.#retry(batch.filter((_, i) => isLocked(i)))
    this.#schedule(WINDOW_MS)
  }

  /** Puts releases of locked licenses back, or combines them with equal releases that have arrived since. */
  #retry(locked: readonly Entry[]): void {
    const retried = locked.filter((entry) => {
      const equal = this.#entries.get(entry.key)
      if (equal) equal.waiting.unshift(...entry.waiting)
      else this.#insert(entry)
      return equal === undefined
    })
    if (retried.length === 0) return
    this.#clock.after(LOCKED_DELAY_MS, () => {
      for (const entry of retried.filter((one) => this.#entries.get(one.key) === one)) {
        if (entry.expiresMs <= this.#clock.nowMs()) this.#end(entry)
        else this.#queue.add(entry.release.organization, entry)
      }
      this.#schedule(WINDOW_MS)
    })
  }

  /** Ends expired releases, and returns the next batch. */
  #take(nowMs: number): Entry[] {
    for (const entry of this.#entries.values()) {
      if (entry.expiresMs > nowMs) break // the later entries are newer, except those of locked licenses, which `#retry` ends
      this.#end(entry)
    }
    const batch = this.#queue.take(MAX_BATCH, (organization) =>
      this.#isReady(organization, nowMs) ? MAX_ORGANIZATION_BATCH : 0,
    )
    for (const entry of batch) this.#remove(entry)
    for (const one of new Set(batch.map(({ release }) => release.organization))) this.#organizations.spend(one, nowMs)
    for (const license of new Set(batch.map((entry) => entry.license))) this.#licenses.spend(license, nowMs)
    return batch
  }
}

/** Calls the callbacks of equal releases. Only the first callback receives `released` (docs/api.md#h10). */
function settle({ waiting }: Entry, result: ReleaseAnswer | null): void {
  for (const [i, done] of waiting.entries())
    done(i > 0 && result?.outcome === 'released' ? { outcome: 'unknown', used: null, xid: null } : result)
}

/**
 * Collects the releases of all workers and executes them in batches (docs/api.md#s7). A batch is one statement, and thus one
 * commit, for many machines of many licenses. Anyone with an app's API key can send deactivations, so the queue bounds their
 * cost. After a burst, an organization takes part in at most one batch every ORGANIZATION_INTERVAL_MS, and a license in at
 * most one every LICENSE_INTERVAL_MS. For each organization, the number of machines in a batch and the number of waiting
 * releases are limited. Equal releases that wait are combined. Two batches may execute at the same time, but an organization takes part
 * in only one of them. While a batch is slow, the other batch therefore still executes the releases of other organizations.
 *
 * For each license, only a few releases of machines that the index does not contain may wait, because callers can invent
 * machine ids.
 */

import type { ReleaseAnswer } from '@keyward/database'
import { machineKey } from '@keyward/database/ids'

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'

export interface Release {
  /** The row of the organization in the index. */
  organization: number
  licenseId: Uint8Array
  machineId: Uint8Array
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
  expiresMs: number
  /** The callbacks of all equal releases, at least one. */
  waiting: Done[]
}

/** The releases of one license that are in no batch. */
interface License {
  known: Entry[]
  unknown: Entry[]
  throttle: Throttle
}

interface Organization {
  /** Whether the organization takes part in a batch that is executing. */
  isExecuting: boolean
  /** The licenses that have waiting releases or are throttled, by license id in hexadecimal. */
  licenses: Map<string, License>
  /** The number of waiting releases of the organization. */
  waiting: number
  throttle: Throttle
}

const WINDOW_MS = 2
/** The interval at which the queue is examined while throttles or an executing batch delay the waiting releases. */
const TICK_MS = 10
const ORGANIZATION_INTERVAL_MS = 50
const LICENSE_INTERVAL_MS = 200
/** The number of batches in which an organization or license may take part before it is throttled. */
const BURST = 10
/** The time for which a license takes part in no batch after its row was locked. */
const BUSY_BACKOFF_MS = 25
const MAX_BATCH = 256
const MAX_CONCURRENT = 2
const MAX_ORGANIZATION_BATCH = 64
const MAX_UNKNOWN = 16
const MAX_ORGANIZATION_WAITING = 1_000
const MAX_WAITING = 20_000
/** The time after which a release ends undecided. It is shorter than the deadline of a request. */
const LIMIT_MS = 1_500
const LICENSE_HEX = 32

/** Allows BURST steps at once, and on average one step per `intervalMs` (the generic cell rate algorithm). */
class Throttle {
  readonly #intervalMs: number
  /** The time at which the intervals of all previous steps have passed. */
  #idleAtMs = 0
  /** The earliest time of the next step. */
  #notBeforeMs = 0

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  isReady(nowMs: number): boolean {
    return nowMs >= this.#notBeforeMs && this.#idleAtMs - nowMs <= (BURST - 1) * this.#intervalMs
  }

  /** Returns whether the intervals of all steps have passed. The throttle is then equivalent to a new one. */
  isIdle(nowMs: number): boolean {
    return nowMs >= this.#notBeforeMs && nowMs >= this.#idleAtMs
  }

  spend(nowMs: number): void {
    this.#idleAtMs = Math.max(this.#idleAtMs, nowMs) + this.#intervalMs
  }

  backOffUntil(ms: number): void {
    this.#notBeforeMs = ms
  }
}

export class ReleaseQueue {
  readonly #execute: ReleaseExecutor
  readonly #clock: Clock
  /** The organizations that have waiting releases or are throttled, by row, in the order of their turns. */
  readonly #organizations = new Map<number, Organization>()
  /** The releases that are in no batch, by license and machine id, in the order of arrival. */
  readonly #entries = new Map<string, Entry>()
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
    const key = machineKey(release.licenseId, release.machineId)
    const equal = this.#entries.get(key)
    if (equal) {
      equal.waiting.push(done)
      return
    }
    const organization = this.#organization(release.organization)
    const license = licenseOf(organization, key.slice(0, LICENSE_HEX))
    const isFull =
      this.#entries.size >= MAX_WAITING ||
      organization.waiting >= MAX_ORGANIZATION_WAITING ||
      (!release.isKnown && license.unknown.length >= MAX_UNKNOWN)
    if (isFull) return done(null)
    const nowMs = this.#clock.nowMs()
    const entry = { release, key, expiresMs: nowMs + LIMIT_MS, waiting: [done] }
    this.#insert(entry, organization, license)
    const mustWait =
      organization.isExecuting || !organization.throttle.isReady(nowMs) || !license.throttle.isReady(nowMs)
    this.#schedule(mustWait ? TICK_MS : WINDOW_MS)
  }

  /** Ends every waiting release undecided. */
  close(): void {
    this.#cancelTimer?.()
    this.#organizations.clear()
    for (const entry of this.#entries.values()) for (const done of entry.waiting) done(null)
    this.#entries.clear()
  }

  #organization(row: number): Organization {
    let organization = this.#organizations.get(row)
    if (!organization) {
      organization = {
        isExecuting: false,
        licenses: new Map(),
        waiting: 0,
        throttle: new Throttle(ORGANIZATION_INTERVAL_MS),
      }
      this.#organizations.set(row, organization)
    }
    return organization
  }

  #schedule(delayMs: number): void {
    if (this.#running >= MAX_CONCURRENT || this.#organizations.size === 0) return
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
    this.#running++
    const executing = new Set(batch.map((entry) => this.#organization(entry.release.organization)))
    for (const organization of executing) organization.isExecuting = true
    const results = await this.#execute(batch.map((entry) => entry.release)).catch(() => [])
    this.#running--
    for (const organization of executing) organization.isExecuting = false
    const nowMs = this.#clock.nowMs()
    for (const [i, entry] of batch.entries()) {
      const result = results[i] ?? null
      if (result?.outcome !== 'busy') settle(entry, result)
      else if (entry.expiresMs <= nowMs) settle(entry, null)
      else this.#repeat(entry, nowMs)
    }
    this.#schedule(WINDOW_MS)
  }

  /** Puts a release of a locked license back into the queue, or combines it with an equal release that has arrived since. */
  #repeat(entry: Entry, nowMs: number): void {
    const equal = this.#entries.get(entry.key)
    if (equal) {
      equal.waiting.unshift(...entry.waiting)
      return
    }
    const organization = this.#organization(entry.release.organization)
    const license = licenseOf(organization, entry.key.slice(0, LICENSE_HEX))
    license.throttle.backOffUntil(nowMs + BUSY_BACKOFF_MS)
    this.#insert(entry, organization, license)
  }

  #insert(entry: Entry, organization: Organization, license: License): void {
    this.#entries.set(entry.key, entry)
    organization.waiting++
    if (entry.release.isKnown) license.known.push(entry)
    else license.unknown.push(entry)
  }

  /**
   * Returns the next batch, in which organizations take turns. Deletes organizations that have no waiting releases and are not
   * throttled.
   */
  #take(nowMs: number): Entry[] {
    this.#expire(nowMs)
    const batch: Entry[] = []
    const turn = [...this.#organizations]
    for (const [row, organization] of turn) {
      if (batch.length >= MAX_BATCH) break
      if (organization.isExecuting || !organization.throttle.isReady(nowMs)) continue
      const most = Math.min(MAX_ORGANIZATION_BATCH, MAX_BATCH - batch.length)
      const taken = takeOf(organization, most, nowMs)
      batch.push(...taken)
      if (taken.length > 0) organization.throttle.spend(nowMs)
      this.#organizations.delete(row)
      const isIdle = organization.licenses.size === 0 && organization.throttle.isIdle(nowMs)
      if (!isIdle) this.#organizations.set(row, organization) // behind the others
    }
    for (const { key } of batch) this.#entries.delete(key)
    return batch
  }

  /**
   * Ends expired releases. The search misses expired entries that were put back, because those are out of order. `#run` ends them
   * instead of putting them back again.
   */
  #expire(nowMs: number): void {
    for (const entry of this.#entries.values()) {
      if (entry.expiresMs > nowMs) break
      this.#entries.delete(entry.key)
      const { organization: row, isKnown } = entry.release
      const organization = this.#organization(row)
      const license = licenseOf(organization, entry.key.slice(0, LICENSE_HEX))
      organization.waiting--
      if (isKnown) license.known = license.known.filter((other) => other !== entry)
      else license.unknown = license.unknown.filter((other) => other !== entry)
      for (const done of entry.waiting) done(null)
    }
  }
}

function licenseOf(organization: Organization, id: string): License {
  let license = organization.licenses.get(id)
  if (!license) {
    license = { known: [], unknown: [], throttle: new Throttle(LICENSE_INTERVAL_MS) }
    organization.licenses.set(id, license)
  }
  return license
}

/** Takes the next releases of an organization, whose licenses take turns. */
function takeOf(organization: Organization, most: number, nowMs: number): Entry[] {
  const taken: Entry[] = []
  const turn = [...organization.licenses]
  for (const [id, license] of turn) {
    if (taken.length >= most) break
    if (!license.throttle.isReady(nowMs)) continue
    const known = license.known.splice(0, most - taken.length)
    const unknown = license.unknown.splice(0, most - taken.length - known.length)
    const isTaken = known.length + unknown.length > 0
    taken.push(...known, ...unknown)
    if (isTaken) license.throttle.spend(nowMs)
    else if (!license.throttle.isIdle(nowMs)) continue
    organization.licenses.delete(id)
    if (isTaken) organization.licenses.set(id, license) // behind the others
  }
  organization.waiting -= taken.length
  return taken
}

/** Calls the callbacks of equal releases. Only the first callback receives `released` (docs/api.md#h10). */
function settle({ waiting }: Entry, result: ReleaseAnswer | null): void {
  for (const [i, done] of waiting.entries())
    done(i > 0 && result?.outcome === 'released' ? { outcome: 'unknown', used: null, xid: null } : result)
}

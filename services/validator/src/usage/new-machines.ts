/**
 * Records machines of licenses without a machine limit in batches, after the response (docs/api.md#s4). Postgres stores a
 * limited number of machines per license. When a license has reached this number, its new machines are skipped for 30 seconds,
 * so that they cause no load. Organizations share the memory fairly and take turns in a batch.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import type { ClaimAnswer } from '@keyward/database'
import { machineKey, toHex } from '@keyward/database/ids'
import { FairQueue } from '@keyward/runtime/fair-queue'
import { Tally } from '@keyward/runtime/tally'

import { FairShare } from '../shared/fair-share.ts'
import type { Claim } from '../slots/claim-queue.ts'

/** The capacity in machines, of which one organization alone may use half. */
const MAX_WAITING = 20_000
const BATCH = 200
/**
 * The maximum number of machines of one organization in a flush. It prevents a flood of invented machines from occupying Postgres.
 */
const MAX_PER_FLUSH = 1_000
const CAPPED_MS = 30_000

export interface Machine {
  licenseId: Uint8Array
  machineId: Uint8Array
}

interface NewMachinesOptions {
  /**
   * Records machines in Postgres. Results are in the order of the claims. If `waits` is true, the statement waits for locked
   * licenses.
   */
  recordMachines(claims: readonly Claim[], waits: boolean): Promise<ClaimAnswer[]>
  onMachine(claim: Claim, result: ClaimAnswer): void
}

export class NewMachines {
  readonly #options: NewMachinesOptions
  /** The machines that are not written yet, by license and machine id, at most MAX_WAITING. */
  readonly #waiting = new Map<string, Claim>()
  /** The keys of the waiting machines that are in no batch. The keys of machines that were written meanwhile are skipped later. */
  readonly #order = new FairQueue<number, string>({
    isDead: (key) => !this.#waiting.has(key) || this.#writingNow.has(key),
  })
  /** The keys of the waiting machines that `writeNow` is writing. */
  readonly #writingNow = new Set<string>()
  readonly #share = new FairShare(MAX_WAITING)
  /** The time until which the machines of a license are skipped, by license id in hexadecimal. */
  readonly #cappedUntil = new Map<string, number>()
  #dropped = 0
  /** The batch that is being written, and a promise that resolves at the end of the write. It is null between batches. */
  #writing: { keys: ReadonlySet<string>; done: Promise<void> } | null = null
  /** The flush in progress, or null. */
  #flushing: Promise<void> | null = null

  constructor(options: NewMachinesOptions) {
    this.#options = options
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** The number of machines that did not fit. The next check of a dropped machine adds the machine again. */
  get dropped(): number {
    return this.#dropped
  }

  /** Returns whether the machine still waits to be written. */
  isWaiting(licenseId: Uint8Array, machineId: Uint8Array): boolean {
    return this.#waiting.has(machineKey(licenseId, machineId))
  }

  /**
   * Returns whether the organization has no capacity for another machine, and counts the machine as dropped in this case. Call this method
   * before `add`, so that machines of a flood are not copied.
   */
  refuses(organization: number): boolean {
    if (this.#share.fits(organization)) return false
    this.#dropped++
    return true
  }

  /** Adds a machine, or drops it if there is no capacity. Copies `machineId`. The caller must not write to `licenseId`. */
  add(organization: number, licenseId: Uint8Array, machineId: Uint8Array, hostname: string | null): void {
    const untilMs = this.#cappedUntil.get(toHex(licenseId))
    if (untilMs !== undefined && untilMs > performance.now()) return
    const key = machineKey(licenseId, machineId)
    if (this.#waiting.has(key)) return
    if (!this.#share.take(organization)) {
      this.#dropped++
      return
    }
    this.#waiting.set(key, {
      organization,
      licenseId,
      machineId: machineId.slice(),
      hostname,
      isRecheck: false,
      lease: null,
    })
    this.#order.add(organization, key)
  }

  /**
   * Writes up to MAX_PER_FLUSH machines of each organization, or joins the flush in progress, which also writes machines that
   * are added meanwhile. Rejects when a batch fails. The machines of that batch, and those of locked licenses, wait for the next
   * flush.
   */
  flush(): Promise<void> {
    this.#flushing ??= this.#flushAll().finally(() => {
      this.#flushing = null
    })
    return this.#flushing
  }

  /** Writes the given machines immediately, if they wait. Rejects when the write fails; the machines then still wait. */
  async writeNow(machines: readonly Machine[]): Promise<void> {
    const keys = machines.map(({ licenseId, machineId }) => machineKey(licenseId, machineId))
    const { keys: written, done } = this.#writing ?? { keys: new Set<string>(), done: null }
    // A machine that is written again after its release would hold a slot again.
    if (keys.some((key) => written.has(key))) await done
    // Each machine is written only once, so this call skips machines that another call is writing.
    const own = keys.filter((key) => this.#waiting.has(key) && !this.#writingNow.has(key))
    if (own.length === 0) return
    for (const key of own) this.#writingNow.add(key)
    try {
      this.#enqueue(await this.#write(own, true))
    } finally {
      for (const key of own) this.#writingNow.delete(key)
    }
  }

  async #flushAll(): Promise<void> {
    for (const [license, untilMs] of this.#cappedUntil)
      if (untilMs <= performance.now()) this.#cappedUntil.delete(license)
    const written = new Tally<number>()
    const locked = new Set<string>()
    try {
      for (let keys = this.#take(written); keys.size > 0; keys = this.#take(written)) {
        const startedMs = performance.now()
        const writing = this.#write([...keys], false)
        this.#writing = { keys, done: writing.then(noop, noop) }
        try {
          for (const key of await writing) locked.add(key)
        } finally {
          this.#writing = null
        }
        // Postgres serves other statements for as long as it has worked on a full batch.
        if (keys.size === BATCH) await sleep(performance.now() - startedMs)
      }
    } finally {
      this.#enqueue([...locked])
    }
  }

  /**
   * Takes the keys of a batch. Adds the number of keys to `written`, which contains the number of machines in this flush by
   * organization.
   */
  #take(written: Tally<number>): ReadonlySet<string> {
    const keys = this.#order.take(BATCH, (organization) => MAX_PER_FLUSH - written.of(organization))
    for (const key of keys) written.add(this.#waiting.get(key)!.organization)
    return new Set(keys)
  }

  /**
   * Writes a batch. Returns the keys of the machines that were not written because their licenses are locked. Rejects when the
   * statement fails; the machines then wait again.
   */
  async #write(keys: readonly string[], waits: boolean): Promise<string[]> {
    const claims = keys.map((key) => this.#waiting.get(key)!)
    let results: ClaimAnswer[]
    try {
      results = await this.#options.recordMachines(claims, waits)
    } catch (error) {
      this.#enqueue(keys)
      throw error
    }
    return keys.filter((key, i) => {
      if (results[i]!.outcome === 'busy') return true
      this.#waiting.delete(key)
      this.#share.release(claims[i]!.organization)
      this.#settle(claims[i]!, results[i]!)
      return false
    })
  }

  /** Puts waiting machines into the queue from which a flush takes its batches. */
  #enqueue(keys: readonly string[]): void {
    for (const key of keys) this.#order.add(this.#waiting.get(key)!.organization, key)
  }

  #settle(claim: Claim, result: ClaimAnswer): void {
    if (result.outcome === 'capped') this.#cappedUntil.set(toHex(claim.licenseId), performance.now() + CAPPED_MS)
    this.#options.onMachine(claim, result)
  }
}

const noop = (): void => undefined

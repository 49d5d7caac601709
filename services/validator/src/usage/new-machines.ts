/**
 * Machines of licenses without a limit, which are recorded in batches behind the response (docs/api.md#s4). Postgres stores
 * a limited number per license. Once a license reaches it, its machines are skipped for a while, so that many new machines
 * cause no load.
 */

import type { ClaimAnswer } from '@keyward/database'
import { machineKey, toHex } from '@keyward/database/ids'

import type { Claim } from '../slots/claim-queue.ts'

const MAX_WAITING = 10_000
const BATCH = 500
const CAPPED_MS = 30_000

export interface Machine {
  licenseId: Uint8Array
  machineId: Uint8Array
}

export interface NewMachinesOptions {
  /** Results are in the order of the claims. */
  recordMachines(claims: readonly Claim[]): Promise<ClaimAnswer[]>
  onMachine(claim: Claim, result: ClaimAnswer): void
}

export class NewMachines {
  readonly #options: NewMachinesOptions
  /** By license and machine id: the machines that are not written yet, at most MAX_WAITING. */
  readonly #waiting = new Map<string, Claim>()
  /** By license in hex: until when its machines are skipped. */
  readonly #cappedUntil = new Map<string, number>()
  #dropped = 0
  /** The machines of the batch that is being written, and the end of that write. Null between batches. */
  #writing: { keys: ReadonlySet<string>; done: Promise<void> } | null = null
  /** The flush in progress. Null between flushes. */
  #flushing: Promise<void> | null = null

  constructor(options: NewMachinesOptions) {
    this.#options = options
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** How many machines did not fit. Each of them is added again with its next check. */
  get dropped(): number {
    return this.#dropped
  }

  /** Returns whether the machine is not written yet. */
  isWaiting(licenseId: Uint8Array, machineId: Uint8Array): boolean {
    return this.#waiting.has(machineKey(licenseId, machineId))
  }

  /** Adds a machine, or drops it if there is no capacity. Copies `machineId`, keeps `licenseId`. */
  add(licenseId: Uint8Array, machineId: Uint8Array, hostname: string | null): void {
    const key = machineKey(licenseId, machineId)
    if (this.#waiting.has(key)) return
    const untilMs = this.#cappedUntil.get(toHex(licenseId))
    if (untilMs !== undefined && untilMs > performance.now()) return
    if (this.#waiting.size >= MAX_WAITING) this.#dropped++
    else this.#waiting.set(key, { licenseId, machineId: machineId.slice(), hostname, isRecheck: false })
  }

  /**
   * Writes all machines, or joins the flush in progress, which also writes machines that are added meanwhile. Rejects when a
   * batch fails; its machines stay for the next flush.
   */
  flush(): Promise<void> {
    this.#flushing ??= this.#flushAll().finally(() => {
      this.#flushing = null
    })
    return this.#flushing
  }

  /** Writes those of the machines that are waiting, before all others. Rejects when that fails; they stay. */
  async writeNow(machines: readonly Machine[]): Promise<void> {
    const keys = machines.map(({ licenseId, machineId }) => machineKey(licenseId, machineId))
    const { keys: written, done } = this.#writing ?? { keys: new Set<string>(), done: null }
    // A machine that is written once more after its release would hold a slot again.
    if (keys.some((key) => written.has(key))) await done
    const claims: Claim[] = []
    for (const key of keys) {
      const claim = this.#waiting.get(key)
      if (claim === undefined) continue
      claims.push(claim)
      this.#waiting.delete(key) // so that no flush writes it too
    }
    if (claims.length === 0) return
    try {
      await this.#write(claims)
    } catch (error) {
      for (const claim of claims) this.#waiting.set(machineKey(claim.licenseId, claim.machineId), claim)
      throw error
    }
  }

  async #flushAll(): Promise<void> {
    for (const [license, untilMs] of this.#cappedUntil)
      if (untilMs <= performance.now()) this.#cappedUntil.delete(license)
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting].slice(0, BATCH)
      const done = this.#write(batch.map(([, claim]) => claim))
      this.#writing = { keys: new Set(batch.map(([key]) => key)), done: done.catch(() => undefined) }
      try {
        await done
      } finally {
        this.#writing = null
      }
    }
  }

  async #write(claims: readonly Claim[]): Promise<void> {
    const results = await this.#options.recordMachines(claims)
    for (const { licenseId, machineId } of claims) this.#waiting.delete(machineKey(licenseId, machineId))
    for (const [i, claim] of claims.entries()) this.#settle(claim, results[i])
  }

  #settle(claim: Claim, result: ClaimAnswer | undefined): void {
    if (!result) return
    if (result.outcome === 'capped') this.#cappedUntil.set(toHex(claim.licenseId), performance.now() + CAPPED_MS)
    this.#options.onMachine(claim, result)
  }
}

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

  /** Writes all machines. Rejects when a batch fails; its machines stay for the next flush. */
  async flush(): Promise<void> {
    for (const [license, untilMs] of this.#cappedUntil)
      if (untilMs <= performance.now()) this.#cappedUntil.delete(license)
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting].slice(0, BATCH)
      const claims = batch.map(([, claim]) => claim)
      const results = await this.#options.recordMachines(claims)
      for (const [key] of batch) this.#waiting.delete(key)
      for (const [i, claim] of claims.entries()) this.#settle(claim, results[i])
    }
  }

  #settle(claim: Claim, result: ClaimAnswer | undefined): void {
    if (!result) return
    if (result.outcome === 'capped') this.#cappedUntil.set(toHex(claim.licenseId), performance.now() + CAPPED_MS)
    this.#options.onMachine(claim, result)
  }
}

/**
 * Machines of licenses without a limit (API document, license fields): they are recorded behind, in batches, and a check
 * never waits for it. The database keeps so many a license; of one that is full nothing more is asked for a while, so that
 * nobody can make it a load.
 */

import type { ClaimAnswer } from '@keyward/database'
import { machineKey, toHex } from '@keyward/database/ids'

import type { Claim } from '../slots/claim-queue.ts'

const MOST_WAITING = 10_000
const BATCH = 500
const CAPPED_MS = 30_000

export interface NewMachinesOptions {
  record(claims: readonly Claim[]): Promise<ClaimAnswer[]>
  note(claim: Claim, answer: ClaimAnswer): void
}

export class NewMachines {
  readonly #options: NewMachinesOptions
  readonly #waiting = new Map<string, Claim>()
  readonly #cappedUntil = new Map<string, number>()

  #dropped = 0

  constructor(options: NewMachinesOptions) {
    this.#options = options
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** How often there was no room for a machine. */
  get dropped(): number {
    return this.#dropped
  }

  /** Whether the machine is yet to be recorded. */
  isWaiting(licenseId: Uint8Array, machineId: Uint8Array): boolean {
    return this.#waiting.has(machineKey(licenseId, machineId))
  }

  /** A machine that does not fit now comes again with its next check. */
  add(licenseId: Uint8Array, machineId: Uint8Array, hostname: string | null): void {
    const key = machineKey(licenseId, machineId)
    if (this.#waiting.has(key)) return
    const untilMs = this.#cappedUntil.get(toHex(licenseId))
    if (untilMs !== undefined && untilMs > performance.now()) return
    if (this.#waiting.size >= MOST_WAITING) this.#dropped++
    else this.#waiting.set(key, { licenseId, machineId: machineId.slice(), hostname, isRecheck: false })
  }

  /** Rejects when a batch fails; what it held then waits on. */
  async flush(): Promise<void> {
    for (const [license, untilMs] of this.#cappedUntil)
      if (untilMs <= performance.now()) this.#cappedUntil.delete(license)
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting].slice(0, BATCH)
      const claims = batch.map(([, claim]) => claim)
      const answers = await this.#options.record(claims)
      for (const [key] of batch) this.#waiting.delete(key)
      for (const [i, claim] of claims.entries()) this.#settle(claim, answers[i])
    }
  }

  #settle(claim: Claim, answer: ClaimAnswer | undefined): void {
    if (!answer) return
    if (answer.outcome === 'capped') this.#cappedUntil.set(toHex(claim.licenseId), performance.now() + CAPPED_MS)
    this.#options.note(claim, answer)
  }
}

/**
 * Renews leases after the checks that requested the renewals (docs/api.md#l4). Renewals are collected, so that many machines
 * cost few statements, and then executed as claims. Equal renewals are combined. The number of renewals per organization is
 * limited, so that capacity remains for claims of checks that wait for a response. The next check requests a dropped renewal
 * again. A failed renewal is retried, because the next check may arrive after the end of the lease.
 */

import { machineKey } from '@keyward/database/ids'
import { Tally } from '@keyward/runtime/tally'

import type { Clock } from '../shared/clock.ts'
import type { Claim } from './claim-queue.ts'

const WINDOW_MS = 500
const MAX_OF_ORGANIZATION = 2_000
/** A failed attempt takes up to 1.5 s, so a renewal is dropped after about ten seconds. */
const MAX_ATTEMPTS = 5

interface Renewal {
  key: string
  claim: Claim
  attempts: number
}

/** Executes a claim. `done` receives whether Postgres has decided the claim. */
type Enqueue = (claim: Claim, done: (isDecided: boolean) => void) => void

export class Renewals {
  readonly #enqueue: Enqueue
  readonly #clock: Clock
  /** The renewals that wait or execute, by license and machine. */
  readonly #open = new Set<string>()
  #waiting: Renewal[] = []
  /** The number of open renewals, by organization. */
  readonly #counts = new Tally<number>()
  /** Cancels the timer that ends the window. The function is null while no renewal waits. */
  #cancelWindow: (() => void) | null = null
  #isClosed = false

  constructor(enqueue: Enqueue, clock: Clock) {
    this.#enqueue = enqueue
    this.#clock = clock
  }

  add(claim: Claim): void {
    const key = machineKey(claim.licenseId, claim.machineId)
    if (this.#open.has(key) || this.#counts.of(claim.organization) >= MAX_OF_ORGANIZATION) return
    this.#open.add(key)
    this.#counts.add(claim.organization)
    this.#wait({ key, claim, attempts: 0 })
  }

  close(): void {
    this.#isClosed = true
    this.#cancelWindow?.()
    this.#waiting = []
  }

  #wait(renewal: Renewal): void {
    this.#waiting.push(renewal)
    this.#cancelWindow ??= this.#clock.after(WINDOW_MS, () => this.#flush())
  }

  #flush(): void {
    this.#cancelWindow = null
    // The renewals are sorted by license, so that concurrent batches have few licenses in common. A license that one batch has
    // locked is busy for the other batches.
    const waiting = this.#waiting.toSorted((a, b) => (a.key < b.key ? -1 : 1))
    this.#waiting = []
    for (const renewal of waiting) this.#enqueue(renewal.claim, (isRenewed) => this.#end(renewal, isRenewed))
  }

  #end({ key, claim, attempts }: Renewal, isRenewed: boolean): void {
    if (!isRenewed && !this.#isClosed && attempts + 1 < MAX_ATTEMPTS)
      return this.#wait({ key, claim, attempts: attempts + 1 })
    this.#open.delete(key)
    this.#counts.add(claim.organization, -1)
  }
}

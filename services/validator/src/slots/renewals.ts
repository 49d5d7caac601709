/**
 * Renews leases after the checks that requested this (docs/api.md#l4). Renewals are collected, so that many machines cost few
 * statements, and then executed as claims. Equal renewals are combined. The number of renewals per organization is limited,
 * so that they leave capacity for claims of machines that wait for a response. The next check requests a dropped renewal
 * again.
 */

import { machineKey } from '@keyward/database/ids'

import type { Clock } from '../shared/clock.ts'
import type { Claim } from './claim-queue.ts'

const WINDOW_MS = 500
const MAX_OF_ORGANIZATION = 2_000

export class Renewals {
  readonly #enqueue: (claim: Claim, done: () => void) => void
  readonly #clock: Clock
  /** The renewals that wait or execute, by license and machine. */
  readonly #open = new Set<string>()
  #waiting: { key: string; claim: Claim }[] = []
  /** The number of open renewals, by organization. */
  readonly #counts = new Map<number, number>()
  /** Ends the window. Null exactly when no renewal waits. */
  #cancelWindow: (() => void) | null = null

  constructor(enqueue: (claim: Claim, done: () => void) => void, clock: Clock) {
    this.#enqueue = enqueue
    this.#clock = clock
  }

  add(claim: Claim): void {
    const key = machineKey(claim.licenseId, claim.machineId)
    const count = this.#counts.get(claim.organization) ?? 0
    if (this.#open.has(key) || count >= MAX_OF_ORGANIZATION) return
    this.#open.add(key)
    this.#counts.set(claim.organization, count + 1)
    this.#waiting.push({ key, claim })
    this.#cancelWindow ??= this.#clock.after(WINDOW_MS, () => this.#flush())
  }

  close(): void {
    this.#cancelWindow?.()
    this.#waiting = []
  }

  #flush(): void {
    this.#cancelWindow = null
    const waiting = this.#waiting
    this.#waiting = []
    for (const { key, claim } of waiting) this.#enqueue(claim, () => this.#end(key, claim.organization))
  }

  #end(key: string, organization: number): void {
    this.#open.delete(key)
    const count = (this.#counts.get(organization) ?? 0) - 1
    if (count > 0) this.#counts.set(organization, count)
    else this.#counts.delete(organization)
  }
}

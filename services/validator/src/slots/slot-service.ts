/**
 * Claims and releases machine slots for the workers (docs/api.md#machine-slots). When a response with `VALID` is sent, the slot
 * is durable in Postgres. It is also in this validator's index, so the machine's next check is decided from memory.
 */

import type { ClaimAnswer } from '@keyward/database'
import { CODE } from '@keyward/engine'
import { Tally } from '@keyward/runtime/tally'

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'
import type { Leases } from '../shared/leases.ts'
import type { ClaimDecision, ReleaseResult } from '../shared/messages.ts'
import { type Claim, type ClaimExecutor, ClaimQueue, type ClaimQueueOptions } from './claim-queue.ts'
import { type Release, type ReleaseExecutor, ReleaseQueue } from './release-queue.ts'
import { Renewals } from './renewals.ts'

export interface SlotStore extends ClaimExecutor {
  release: ReleaseExecutor
}

/** Applies machines to the index. `xid` is the transaction that wrote or read the state. */
export interface SlotIndex {
  applyOwn(machine: MachineState, xid: bigint): void
  applySeen(machine: MachineState, xid: bigint): void
}

export interface MachineState {
  entity: 'machine'
  licenseId: Uint8Array
  machineId: Uint8Array
  held: boolean
  /** The number of slots of the license that are taken. */
  used: number
}

/** `granted`: a lease began with a new slot. `renewed`: a lease was extended. `failed`: an attempt to renew a lease failed. */
export const LEASE_EVENTS = ['granted', 'renewed', 'failed'] as const
type LeaseEvent = (typeof LEASE_EVENTS)[number]

interface SlotOptions extends Omit<ClaimQueueOptions, 'executor'> {
  onError: (error: unknown) => void
  leases: Pick<Leases, 'set'>
  onLease?: (event: LeaseEvent) => void
}

const UNDECIDED: ClaimDecision = { isDecided: false }

/** The minimum time between two batches of rechecks. */
const RECHECK_WINDOW_MS = 200
/** The maximum number of rechecks of one organization in a window. */
const MAX_RECHECKS = 32

export class SlotService {
  readonly #index: SlotIndex
  readonly #queue: ClaimQueue
  readonly #releases: ReleaseQueue
  readonly #clock: Clock
  readonly #leases: Pick<Leases, 'set'>
  readonly #onLease: (event: LeaseEvent) => void
  readonly #renewals: Renewals
  /** The rechecks that wait for the end of the window. */
  readonly #rechecks: { claim: Claim; done: (decision: ClaimDecision) => void }[] = []
  /** The number of waiting rechecks, by organization. */
  readonly #recheckCounts = new Tally<number>()
  /** The time at which the last batch of rechecks was enqueued. */
  #lastRecheckMs = -Infinity
  /** Cancels the timer that ends the window. The function is null while no recheck waits. */
  #cancelWindow: (() => void) | null = null

  constructor(store: SlotStore, index: SlotIndex, options: SlotOptions) {
    this.#index = index
    this.#clock = options.clock ?? SYSTEM_CLOCK
    this.#leases = options.leases
    this.#onLease = options.onLease ?? (() => undefined)
    const renew = (claim: Claim, done: (isDecided: boolean) => void): void =>
      this.#enqueue(claim, ({ isDecided }) => {
        if (!isDecided) this.#onLease('failed')
        done(isDecided)
      })
    this.#renewals = new Renewals(renew, this.#clock)
    // Without its late result, a machine whose claim took too long would be rejected while the index shows a full license without it.
    const onLate = (claim: Claim, result: ClaimAnswer): void => applyClaim(this.#index, claim, result)
    this.#queue = new ClaimQueue({ ...options, executor: store, onLate })
    this.#releases = new ReleaseQueue(async (releases) => {
      try {
        return await store.release(releases)
      } catch (error) {
        options.onError(error)
        return []
      }
    }, this.#clock)
  }

  /** The number of claims that wait for Postgres. */
  get waiting(): number {
    return this.#queue.size
  }

  /** The number of releases that wait for Postgres. */
  get waitingReleases(): number {
    return this.#releases.size
  }

  /**
   * Claims a slot. Rechecks are collected and enqueued together at most once every 200 ms, so that all full licenses together
   * cost a few statements per second. When an organization has MAX_RECHECKS
   * rechecks, its next recheck ends undecided at once.
   */
  claim(claim: Claim, done: (decision: ClaimDecision) => void): void {
    if (!claim.isRecheck) return this.#enqueue(claim, done)
    if (this.#recheckCounts.of(claim.organization) >= MAX_RECHECKS) return done(UNDECIDED)
    this.#recheckCounts.add(claim.organization)
    this.#rechecks.push({ claim, done })
    const waitMs = Math.max(0, this.#lastRecheckMs + RECHECK_WINDOW_MS - this.#clock.nowMs())
    this.#cancelWindow ??= this.#clock.after(waitMs, () => {
      this.#cancelWindow = null
      this.#lastRecheckMs = this.#clock.nowMs()
      this.#recheckCounts.clear()
      for (const recheck of this.#rechecks.splice(0)) this.#enqueue(recheck.claim, recheck.done)
    })
  }

  /** Renews the lease of a machine. The check does not wait for the renewal. */
  renew(claim: Claim): void {
    this.#renewals.add(claim)
  }

  /** Releases the slot of a machine, and removes the machine from the index. */
  release(release: Release, done: (result: ReleaseResult) => void): void {
    this.#releases.add(release, (result) => {
      if (result === null) return done({ outcome: null })
      const { outcome, used, xid } = result
      if (used !== null && xid !== null) {
        const { licenseId } = release
        const machineId = result.machineId ?? release.machineId
        this.#index.applyOwn({ entity: 'machine', licenseId, machineId, held: false, used }, BigInt(xid))
      }
      done({ outcome })
    })
  }

  close(): void {
    this.#cancelWindow?.()
    for (const { done } of this.#rechecks.splice(0)) done(UNDECIDED)
    this.#renewals.close()
    this.#queue.close()
    this.#releases.close()
  }

  #enqueue(claim: Claim, done: (decision: ClaimDecision) => void): void {
    this.#queue.claim(claim, (result, sentMs) => {
      if (result === null) return done(UNDECIDED)
      applyClaim(this.#index, claim, result)
      const { leaseSeconds } = result
      if (leaseSeconds === null) return done(toDecision(result, Infinity))
      if (claim.lease !== null) this.#leases.set(claim.lease, leaseSeconds, sentMs)
      this.#onLease(result.outcome === 'granted' ? 'granted' : 'renewed')
      done(toDecision(result, sentMs + 1_000 * leaseSeconds))
    })
  }
}

/** Applies the result of a claim to the index. */
export function applyClaim(index: SlotIndex, { licenseId, machineId }: Claim, result: ClaimAnswer): void {
  const { outcome, used, xid } = result
  const isHeld = outcome === 'granted' || outcome === 'known' || outcome === 'recorded'
  if (used === null || (!isHeld && outcome !== 'limit')) return
  const machine: MachineState = { entity: 'machine', licenseId, machineId, held: isHeld, used }
  if (isHeld) index.applyOwn(machine, BigInt(xid))
  else index.applySeen(machine, BigInt(xid))
}

function toDecision({ outcome, used, max, expiresAtMs }: ClaimAnswer, leaseEndsMs: number): ClaimDecision {
  const decided = (code: number): ClaimDecision => {
    return { isDecided: true, code, used: used ?? 0, max: max ?? -1, expiresAtMs, leaseEndsMs }
  }
  switch (outcome) {
    case 'granted':
    case 'known':
    case 'recorded':
    case 'started':
    case 'capped': // the license has no machine limit; only the recording of its machines is limited
      return decided(CODE.VALID)
    case 'limit':
      return decided(CODE.TOO_MANY_MACHINES)
    case 'no_license':
      return decided(CODE.NOT_FOUND)
    case 'suspended':
      return decided(CODE.SUSPENDED)
    case 'revoked':
      return decided(CODE.REVOKED)
    case 'expired':
      return decided(CODE.EXPIRED)
    case 'busy':
      return UNDECIDED
    default:
      return outcome satisfies never
  }
}

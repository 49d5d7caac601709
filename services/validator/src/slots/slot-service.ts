/**
 * Takes and gives back machine slots for the workers (API document, states rules 1 to 3). A slot is durable in Postgres
 * before a check is answered `VALID` for it, and in this validator's index before that answer leaves, so that the next check
 * of the same machine is known here.
 */

import type { ClaimAnswer, ReleaseAnswer } from '@keyward/database'
import { CODE } from '@keyward/engine'

import type { ClaimOutcome, ReleaseOutcome } from '../shared/messages.ts'
import { type Claim, type ClaimExecutor, ClaimQueue, type ClaimQueueOptions } from './claim-queue.ts'

export interface SlotStore extends ClaimExecutor {
  release(licenseId: Uint8Array, machineId: Uint8Array): Promise<ReleaseAnswer>
}

/** Where the outcome goes in memory. */
export interface SlotIndex {
  applyOwn(change: MachineState, xid: bigint): void
  applySeen(change: MachineState, xid: bigint): void
}

export interface MachineState {
  entity: 'machine'
  licenseId: Uint8Array
  machineId: Uint8Array
  held: boolean
  used: number
}

const UNANSWERED: ClaimOutcome = { answered: false }
/** Together with the interval between two rechecks of one license, how long a free slot may stay unnoticed. */
const RECHECK_WINDOW_MS = 200

export class SlotDesk {
  readonly #store: SlotStore
  readonly #index: SlotIndex
  readonly #queue: ClaimQueue
  readonly #onError: (error: unknown) => void
  readonly #rechecks: { claim: Claim; done: (outcome: ClaimOutcome) => void }[] = []
  #recheckedMs = -Infinity
  #timer: NodeJS.Timeout | null = null

  constructor(
    store: SlotStore,
    index: SlotIndex,
    options: Omit<ClaimQueueOptions, 'executor'> & { onError: (error: unknown) => void },
  ) {
    this.#store = store
    this.#index = index
    this.#onError = options.onError
    this.#queue = new ClaimQueue({ ...options, executor: store })
  }

  /** How many claims wait for Postgres. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Soon after another recheck, one waits for more of them, so that those of all full licenses are a few statements a second. */
  claim(claim: Claim, done: (outcome: ClaimOutcome) => void): void {
    if (!claim.isRecheck) return this.#enqueue(claim, done)
    this.#rechecks.push({ claim, done })
    const waitMs = Math.max(0, this.#recheckedMs + RECHECK_WINDOW_MS - performance.now())
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.#recheckedMs = performance.now()
      for (const recheck of this.#rechecks.splice(0)) this.#enqueue(recheck.claim, recheck.done)
    }, waitMs)
  }

  #enqueue(claim: Claim, done: (outcome: ClaimOutcome) => void): void {
    this.#queue.claim(claim, (answer) => {
      if (answer === null) return done(UNANSWERED)
      noteClaim(this.#index, claim, answer)
      done(toOutcome(answer))
    })
  }

  /** Never rejects. */
  async release(licenseId: Uint8Array, machineId: Uint8Array): Promise<ReleaseOutcome> {
    try {
      const { released, used, xid } = await this.#store.release(licenseId, machineId)
      if (released) this.#index.applyOwn({ entity: 'machine', licenseId, machineId, held: false, used }, BigInt(xid))
      return { released }
    } catch (error) {
      this.#onError(error)
      return { released: null }
    }
  }

  close(): void {
    if (this.#timer) clearTimeout(this.#timer)
    for (const { done } of this.#rechecks.splice(0)) done(UNANSWERED)
    this.#queue.close()
  }
}

/** Brings what Postgres said of a claim into memory. */
export function noteClaim(index: SlotIndex, { licenseId, machineId }: Claim, answer: ClaimAnswer): void {
  const { outcome, used, xid } = answer
  const holds = outcome === 'granted' || outcome === 'known' || outcome === 'recorded'
  if (used === null || (!holds && outcome !== 'limit')) return
  const state: MachineState = { entity: 'machine', licenseId, machineId, held: holds, used }
  if (holds) index.applyOwn(state, BigInt(xid))
  else index.applySeen(state, BigInt(xid))
}

function toOutcome({ outcome, used, max }: ClaimAnswer): ClaimOutcome {
  const answer = (code: number): ClaimOutcome => ({ answered: true, code, used: used ?? 0, max: max ?? -1 })
  switch (outcome) {
    case 'granted':
    case 'known':
    case 'recorded':
    case 'capped': // no limit; only recording is capped
      return answer(CODE.VALID)
    case 'limit':
      return answer(CODE.TOO_MANY_MACHINES)
    case 'no_license':
      return answer(CODE.NOT_FOUND)
    case 'suspended':
      return answer(CODE.SUSPENDED)
    case 'revoked':
      return answer(CODE.REVOKED)
    case 'busy':
      return UNANSWERED
    default:
      return outcome satisfies never
  }
}

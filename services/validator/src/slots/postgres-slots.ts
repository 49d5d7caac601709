/** The slot statements over a small pool of connections, with time-outs short enough to answer a check within 2 s. */

import {
  type ClaimAnswer,
  claimSlots,
  createPool,
  type ReleaseAnswer,
  releaseSlot,
  isServerUnavailable,
  sqlState,
} from '@keyward/database'

import type { Claim } from './claim-queue.ts'
import type { SlotStore } from './slot-service.ts'

export const SLOT_CONNECTIONS = 4

export class PostgresSlots implements SlotStore {
  readonly #pool: ReturnType<typeof createPool>

  constructor(url: string, onError: (error: unknown) => void) {
    this.#pool = createPool(url, {
      name: 'keyward validator slots',
      max: SLOT_CONNECTIONS,
      statementTimeoutMs: 1_000,
      queryTimeoutMs: 1_200,
      connectTimeoutMs: 1_000,
      onError,
    })
  }

  execute(claims: readonly Claim[], waits: boolean): Promise<ClaimAnswer[]> {
    return claimSlots(this.#pool, claims, { patient: waits })
  }

  /** An error without an SQLSTATE is one of the connection. */
  isHopeless(error: unknown): boolean {
    return sqlState(error) === null || isServerUnavailable(error)
  }

  release(licenseId: Uint8Array, machineId: Uint8Array): Promise<ReleaseAnswer> {
    return releaseSlot(this.#pool, licenseId, machineId)
  }

  async close(): Promise<void> {
    await this.#pool.end()
  }
}

/** Executes the slot statements over a small pool of connections, with timeouts within the 2 s deadline of a request. */

import {
  type ClaimAnswer,
  claimSlots,
  createPool,
  isServerUnavailable,
  type ReleaseAnswer,
  releaseSlot,
  sqlState,
} from '@keyward/database'

import type { Claim } from './claim-queue.ts'
import type { SlotStore } from './slot-service.ts'

const CONNECTIONS = 4

export class PostgresSlots implements SlotStore {
  readonly #pool: ReturnType<typeof createPool>

  constructor(url: string, onError: (error: unknown) => void) {
    this.#pool = createPool(url, {
      name: 'keyward validator slots',
      max: CONNECTIONS,
      statementTimeoutMs: 1_000,
      queryTimeoutMs: 1_200,
      connectTimeoutMs: 1_000,
      onError,
    })
  }

  execute(claims: readonly Claim[], waits: boolean): Promise<ClaimAnswer[]> {
    return claimSlots(this.#pool, claims, { patient: waits })
  }

  /** An error without an SQLSTATE is an error of the connection. */
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

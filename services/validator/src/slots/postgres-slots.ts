/**
 * Executes the slot statements. Their timeouts are shorter than the 2 s deadline of a request. Claims, releases, and the
 * recording of machines after the response use separate pools. Therefore a flood of releases or new machines does not delay
 * claims.
 */

import {
  type ClaimAnswer,
  claimSlots,
  createPool,
  isServerUnavailable,
  Notifier,
  readReplication,
  type Release,
  type ReleaseAnswer,
  releaseSlots,
  type Replication,
  sqlState,
} from '@keyward/database'

import type { Claim } from './claim-queue.ts'
import type { SlotStore } from './slot-service.ts'

const CLAIM_CONNECTIONS = 4
/** The number of batches of releases that execute at the same time. */
const RELEASE_CONNECTIONS = 2

export class PostgresSlots implements SlotStore {
  readonly #claims: ReturnType<typeof createPool>
  readonly #releases: ReturnType<typeof createPool>
  readonly #behind: ReturnType<typeof createPool>
  readonly #notifier: Notifier

  constructor(url: string, onError: (error: unknown) => void) {
    // The connections stay open, because on a busy server a new connection and the first plan of a statement take up to a
    // second.
    const timeouts = {
      statementTimeoutMs: 1_000,
      queryTimeoutMs: 1_200,
      connectTimeoutMs: 1_000,
      idleTimeoutMs: 0,
      onError,
    }
    this.#claims = createPool(url, { ...timeouts, name: 'keyward validator slots', max: CLAIM_CONNECTIONS })
    this.#releases = createPool(url, { ...timeouts, name: 'keyward validator releases', max: RELEASE_CONNECTIONS })
    this.#behind = createPool(url, { ...timeouts, name: 'keyward validator machines', max: 1 })
    this.#notifier = new Notifier(url, 'keyward validator notifier', onError)
  }

  execute(claims: readonly Claim[], waits: boolean): Promise<ClaimAnswer[]> {
    return claimSlots(this.#claims, claims, { patient: waits, notify: this.#notifier.notify })
  }

  /** Records machines of licenses without a machine limit. Results are in the order of the claims. */
  record(claims: readonly Claim[], waits: boolean): Promise<ClaimAnswer[]> {
    return claimSlots(this.#behind, claims, { patient: waits, notify: this.#notifier.notify })
  }

  /** Returns whether the connection or the server failed. An error without an SQLSTATE is an error of the connection. */
  isHopeless(error: unknown): boolean {
    return sqlState(error) === null || isServerUnavailable(error)
  }

  /** Releases slots. Results are in the order of the releases. */
  release(releases: readonly Release[]): Promise<ReleaseAnswer[]> {
    return releaseSlots(this.#releases, releases, this.#notifier)
  }

  /** Returns how the commits of claims are replicated. */
  replication(): Promise<Replication> {
    return readReplication(this.#behind)
  }

  async close(): Promise<void> {
    await Promise.all([this.#claims.end(), this.#releases.end(), this.#behind.end()])
    await this.#notifier.close()
  }
}

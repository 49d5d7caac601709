/**
 * Observes whether a failover of Postgres may lose granted slots (docs/api.md#s1). A failover may lose slots while the server has
 * standbys but no synchronous one, and after every standby that this validator has observed has disconnected.
 */

import type { Replication } from '@keyward/database'

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'

const INTERVAL_MS = 5_000

export const SLOTS_AT_RISK =
  'A failover of Postgres may lose granted slots, because no standby is synchronous. Licenses may then exceed their limit.'

export class FailoverSafety {
  readonly #read: () => Promise<Replication>
  readonly #clock: Clock
  #cancel: () => void = () => undefined
  /** Whether a standby has been observed. */
  #hasHadStandby = false
  #isClosed = false
  /** Whether a failover loses no granted slot. The value does not change while Postgres is unreachable. */
  isSafe = true

  constructor(read: () => Promise<Replication>, clock: Clock = SYSTEM_CLOCK) {
    this.#read = read
    this.#clock = clock
  }

  /** Reads the state of the replication now, and then every five seconds. */
  start(): void {
    void this.#observe()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
  }

  async #observe(): Promise<void> {
    try {
      const replication = await this.#read()
      this.#hasHadStandby ||= replication !== 'none'
      this.isSafe = replication === 'synchronous' || !this.#hasHadStandby
    } catch {
      // The error is ignored, because claims report the same errors.
    }
    if (!this.#isClosed) this.#cancel = this.#clock.after(INTERVAL_MS, () => this.start())
  }
}

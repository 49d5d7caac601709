/**
 * Reports a database that has not been migrated yet. The reason is logged once, and `/readyz` returns it. Until the change feed
 * works again, errors about missing tables or functions are not logged.
 */

import { isSchemaMissing, NotMigrated } from '@keyward/database'

export class MigrationStatus {
  readonly #onMissing: (sentence: string) => void
  #reason: string | null = null

  constructor(onMissing: (sentence: string) => void) {
    this.#onMissing = onMissing
  }

  /** The reason why the validator is not ready, or null when no migration is missing. */
  get reason(): string | null {
    return this.#reason
  }

  /** Returns whether a missing migration explains the error. */
  explains(error: unknown): boolean {
    if (error instanceof NotMigrated) {
      if (this.#reason !== error.message) this.#onMissing(error.message)
      this.#reason = error.message
      return true
    }
    return this.#reason !== null && isSchemaMissing(error)
  }

  /** Records that the change feed works, so no migration is missing. */
  clear(): void {
    this.#reason = null
  }
}

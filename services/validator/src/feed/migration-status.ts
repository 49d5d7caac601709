/**
 * Reports a database that has not been migrated yet. It logs one sentence once and keeps it as the reason for not being
 * ready. Until the change feed works again, errors about missing tables or functions count as consequences and are not
 * logged.
 */

import { isSchemaMissing, NotMigrated } from '@keyward/database'

export class MigrationStatus {
  readonly #onMissing: (sentence: string) => void
  #reason: string | null = null

  constructor(onMissing: (sentence: string) => void) {
    this.#onMissing = onMissing
  }

  /** The sentence to show. Null while nothing is missing. */
  get reason(): string | null {
    return this.#reason
  }

  /** Returns whether a missing migration explains the error, so that it needs no log entry of its own. */
  explains(error: unknown): boolean {
    if (error instanceof NotMigrated) {
      if (this.#reason !== error.message) this.#onMissing(error.message)
      this.#reason = error.message
      return true
    }
    return this.#reason !== null && isSchemaMissing(error)
  }

  /** Records that the change feed works, so nothing is missing. */
  clear(): void {
    this.#reason = null
  }
}

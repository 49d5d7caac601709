/**
 * A database that has not been migrated yet is no fault of this program's: it is said once, in one sentence, and readiness
 * goes on saying it. What fails meanwhile for want of a table or function is the same thing, and not said again.
 */

import { isSchemaMissing, NotMigrated } from '@keyward/database'

export class Unmigrated {
  readonly #say: (sentence: string) => void
  #reason: string | null = null

  constructor(say: (sentence: string) => void) {
    this.#say = say
  }

  /** The sentence, while it holds. */
  get reason(): string | null {
    return this.#reason
  }

  /** Whether this is all there is to the error, so that nothing else need be said of it. */
  explains(error: unknown): boolean {
    if (error instanceof NotMigrated) {
      if (this.#reason !== error.message) this.#say(error.message)
      this.#reason = error.message
      return true
    }
    return this.#reason !== null && isSchemaMissing(error)
  }

  /** The change log is followed, so nothing is missing. */
  followed(): void {
    this.#reason = null
  }
}

/**
 * The readers' side of a seqlock between the one writer and any number of readers (`write/write-lock.ts` is the writer's). The version is odd
 * while the writer changes the index. A reader acquires no lock. It reads the version, then the data, then the version again, and repeats
 * when the version was odd or has changed. If the version stays odd, the reader completes the section itself (`journal.ts`).
 *
 * Processors with weak memory ordering could move plain reads past the second read of the version, and plain writes before the odd store.
 * Two fences prevent that: the reader's store to its own cache line before the second read, and the writer's load after the odd store.
 */

import type { Journal } from './journal.ts'
import { VERSION } from './shared-memory.ts'

/** The number of attempts after which a reader gives up and the verdict is busy. */
export const MAX_ATTEMPTS = 1000
/**
 * The number of attempts without a pause. After them, a reader completes the section. If the section is written in place, the reader sleeps
 * until it ends, at most SLEEP_MS per attempt.
 */
const SPINS = 50
const SLEEP_MS = 1

export class ReadLock {
  readonly #control: Int32Array
  readonly #journal: Journal
  /** A cache line that no other thread accesses. */
  readonly #ownLine = new Int32Array(16)
  readonly #enabled: boolean

  /**
   * With `enabled: false`, every read counts as consistent. Only the test that shows that the lock is necessary passes
   * false.
   */
  constructor(control: Int32Array, journal: Journal, enabled: boolean) {
    this.#control = control
    this.#journal = journal
    this.#enabled = enabled
  }

  /** Returns the version at the start of a read. If it is odd, a write section is open, and the caller must try again without reading. */
  begin(attempt: number): number {
    const version = Atomics.load(this.#control, VERSION)
    return (version & 1) === 0 ? version : this.#open(version, attempt)
  }

  #open(version: number, attempt: number): number {
    if (!this.#enabled) return version & ~1
    if (attempt < SPINS || this.#journal.help(version)) return version
    Atomics.wait(this.#control, VERSION, version, SLEEP_MS)
    return version
  }

  /**
   * Returns whether the version is still the one that `begin` returned. If not, the caller must discard the data that
   * it read.
   */
  unchanged(version: number): boolean {
    Atomics.store(this.#ownLine, 0, 0)
    return Atomics.load(this.#control, VERSION) === version || !this.#enabled
  }
}

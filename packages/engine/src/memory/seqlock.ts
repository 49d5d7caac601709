/**
 * A seqlock between the one writer and any number of readers. The writer makes the version odd while it writes. A
 * reader acquires no lock. It reads the version, then the data, then the version again, and repeats when the version
 * was odd or has changed. Processors with weak memory ordering could move plain reads past the second read of the
 * version, and plain writes before the odd store. Two fences prevent that: the reader's store to its own cache line
 * before the second read, and the writer's load after the odd store.
 */

import { VERSION } from './shared-memory.ts'

/** The number of attempts after which a reader gives up and the verdict is busy. */
export const MAX_ATTEMPTS = 1000
/**
 * The number of attempts without a pause. After them, a reader sleeps until the write section ends, at most SLEEP_MS
 * per attempt.
 */
const SPINS = 50
const SLEEP_MS = 1

export class WriteLock {
  readonly #control: Int32Array
  readonly #onSection: (() => void) | null

  /** `onSection` is called after every section. */
  constructor(control: Int32Array, onSection: (() => void) | null = null) {
    this.#control = control
    this.#onSection = onSection
  }

  /** Runs `write` as one write section: readers see all of it or nothing. The section also ends when `write` throws. */
  section(write: () => void): void {
    const control = this.#control
    const version = Atomics.load(control, VERSION)
    Atomics.store(control, VERSION, version + 1)
    Atomics.load(control, VERSION)
    try {
      write()
    } finally {
      Atomics.store(control, VERSION, (version + 2) | 0)
      Atomics.notify(control, VERSION)
    }
    this.#onSection?.()
  }
}

export class ReadLock {
  readonly #control: Int32Array
  /** A cache line that no other thread accesses. */
  readonly #ownLine = new Int32Array(16)
  readonly #enabled: boolean

  /**
   * With `enabled: false`, every read counts as consistent. Only the test that shows that the lock is necessary passes
   * false.
   */
  constructor(control: Int32Array, enabled: boolean) {
    this.#control = control
    this.#enabled = enabled
  }

  /** Returns the version at the start of a read. If it is odd, a write section is open, and the caller must try again without reading. */
  begin(attempt: number): number {
    const version = Atomics.load(this.#control, VERSION)
    if ((version & 1) === 0) return version
    if (!this.#enabled) return version & ~1
    if (attempt >= SPINS) Atomics.wait(this.#control, VERSION, version, SLEEP_MS)
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

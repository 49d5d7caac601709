/**
 * The lock between the one writer and the readers, a seqlock: readers take nothing, they look whether the version was
 * even and the same before and after. The writer makes it odd while it writes. On processors that reorder memory
 * accesses a plain read could slip past the second look; the reader's own store before it, and the writer's load after
 * the odd store, are the fences that forbid it.
 */
import { VERSION } from './shared-memory.ts'

/** After so many attempts a reader gives up: the verdict is busy. */
export const MAX_ATTEMPTS = 1000
/** So often a reader looks again at once when it meets the writer; after that it sleeps until the section ends. */
const SPINS = 50
const SLEEP_MS = 1

export class WriteLock {
  private readonly control: Int32Array

  constructor(control: Int32Array) {
    this.control = control
  }

  /** Runs `write` as one section: readers see all of it or nothing. The section ends also when `write` throws. */
  section(write: () => void): void {
    const { control } = this
    const version = Atomics.load(control, VERSION)
    Atomics.store(control, VERSION, version + 1)
    Atomics.load(control, VERSION)
    try {
      write()
    } finally {
      Atomics.store(control, VERSION, (version + 2) | 0)
      Atomics.notify(control, VERSION)
    }
  }
}

export class ReadLock {
  private readonly control: Int32Array
  /** A cache line that no other thread touches. */
  private readonly ownLine = new Int32Array(16)
  private readonly enabled: boolean

  /** `enabled: false` makes every read pass. Only the test that shows what the lock is for uses it. */
  constructor(control: Int32Array, enabled: boolean) {
    this.control = control
    this.enabled = enabled
  }

  /** The version to read under; odd: a section is open, try again. Sleeps from the 50th attempt on. */
  begin(attempt: number): number {
    const version = Atomics.load(this.control, VERSION)
    if ((version & 1) === 0) return version
    if (!this.enabled) return version & ~1
    if (attempt >= SPINS) Atomics.wait(this.control, VERSION, version, SLEEP_MS)
    return version
  }

  /** True when nothing was written since `begin` gave this version, so that what was read counts. */
  unchanged(version: number): boolean {
    Atomics.store(this.ownLine, 0, 0)
    return Atomics.load(this.control, VERSION) === version || !this.enabled
  }
}

/**
 * Restores the index from its file when the validator starts. If Postgres is reachable, the follower continues from the
 * position of the file. Otherwise the restored index is put into service, as if contact with Postgres had been lost when the
 * file was current.
 */

import type { IndexWriter } from '@keyward/engine'

import type { PublicKeyStore } from '../public-keys/store.ts'
import type { FilePosition, IndexFile, RestoredIndex } from './index-file.ts'
import type { JournaledChanges } from './journal.ts'

interface RestorationParts {
  readonly index: IndexWriter
  readonly publicKeys: PublicKeyStore
  readonly updater: { replay(changes: JournaledChanges): void; restored(snapshot: string): void; serveRestored(): void }
  readonly follower: { serveRestored(): void }
  readonly freshness: { restored(ageMs: number): void }
  /** Returns the time of the wall clock, in milliseconds since 1970. */
  readonly wallMs: () => number
}

export class Restoration {
  readonly #file: Pick<IndexFile, 'restore'>
  readonly #parts: RestorationParts
  /** The restored index, until Postgres has been reached or the index is in service. It is null otherwise. */
  #restored: RestoredIndex | null = null

  constructor(file: Pick<IndexFile, 'restore'>, parts: RestorationParts) {
    this.#file = file
    this.#parts = parts
  }

  /**
   * Restores the index, and returns the position and the age in milliseconds of the restored index. Throws an error with the
   * reason if the file cannot be used. The index is then empty, and the follower loads all rows.
   */
  restore(): FilePosition & { ageMs: number; isComplete: boolean } {
    const { index, publicKeys, updater, wallMs } = this.#parts
    const restored = this.#file.restore(index, publicKeys)
    this.#restored = restored
    for (const changes of restored.reads) updater.replay(changes)
    updater.restored(restored.snapshot)
    const { identity, snapshot, currentAtMs, isComplete } = restored
    return { identity, snapshot, isComplete, ageMs: wallMs() - currentAtMs }
  }

  /**
   * Puts the restored index into service when Postgres is not reachable at the start. Returns its age in milliseconds, or null when there is
   * no index that may be put into service, for example because the index lacks acknowledged changes (docs/api.md#p6).
   */
  serve(): number | null {
    const { updater, follower, freshness, wallMs } = this.#parts
    const restored = this.#restored
    this.#restored = null
    if (restored === null || !restored.isOfSource || !restored.isComplete) return null
    const ageMs = wallMs() - restored.currentAtMs
    // The age of the file is unknown when the clock has been set back.
    if (ageMs < 0) return null
    updater.serveRestored()
    follower.serveRestored()
    freshness.restored(ageMs)
    return ageMs
  }

  /** Records that Postgres has been reached. */
  end(): void {
    this.#restored = null
  }
}

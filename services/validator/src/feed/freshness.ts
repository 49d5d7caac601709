/**
 * How long ago Postgres was last heard, by a clock that never jumps, and what follows from it for the workers: a validator
 * that has heard nothing for the limit may not answer any more, because what it knows may be long revoked.
 */

import type { Control } from '../shared/control.ts'

const TICK_MS = 100

/** The change log is read at least once a second; past this it is worth nobody's time to ask Postgres for a recheck. */
const SILENT_MS = 1_500

export class Freshness {
  readonly #control: Control
  readonly #limits: { staleAfterMs: number; staleLimitMs: number }
  readonly #timer: NodeJS.Timeout
  #heardMs = -Infinity
  #isLoaded = false

  constructor(control: Control, limits: { staleAfterMs: number; staleLimitMs: number }) {
    this.#control = control
    this.#limits = limits
    this.#timer = setInterval(() => this.#update(), TICK_MS)
  }

  /** The index is complete and as new as Postgres, now. */
  heard(): void {
    this.#heardMs = performance.now()
    this.#isLoaded = true
    this.#update()
  }

  /**
   * A full load brings rows: Postgres is heard, though the index is not yet as new as it is. Who has already been silent for
   * too long stays so until the load has ended, because until then the rows of before may be long revoked.
   */
  loading(): void {
    if (this.#isLoaded && !this.isStale) this.#heardMs = performance.now()
  }

  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** Infinity before the first time. */
  get silentMs(): number {
    return performance.now() - this.#heardMs
  }

  get isStale(): boolean {
    return this.silentMs > this.#limits.staleAfterMs
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #update(): void {
    const { silentMs } = this
    this.#control.databaseHeard = silentMs < SILENT_MS
    this.#control.state = !this.#isLoaded ? 'loading' : silentMs > this.#limits.staleLimitMs ? 'stale' : 'serving'
  }
}

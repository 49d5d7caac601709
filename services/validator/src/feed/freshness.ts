/**
 * Measures the time since the last contact with Postgres, on a monotonic clock, and derives from it whether the workers may
 * decide checks. Past the limit they may not, because what the index says may have been revoked long ago (docs/api.md#p4).
 */

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'
import type { Control } from '../shared/control.ts'

const TICK_MS = 100

/** The change feed is read at least once a second. Without contact for this long, rechecks in Postgres are not attempted. */
const UNREACHABLE_AFTER_MS = 1_500

export class Freshness {
  readonly #control: Control
  readonly #limits: { staleAfterMs: number; staleLimitMs: number }
  readonly #clock: Clock
  /** Cancels the next tick. */
  #cancelTick: () => void
  /** When Postgres last confirmed that the index is current. -Infinity before the first time. */
  #lastContactMs = -Infinity
  /** The first load has ended. Never false again. */
  #isLoaded = false

  constructor(control: Control, limits: { staleAfterMs: number; staleLimitMs: number }, clock: Clock = SYSTEM_CLOCK) {
    this.#control = control
    this.#limits = limits
    this.#clock = clock
    this.#cancelTick = this.#scheduleTick()
  }

  /** Records that the index is complete and current now. */
  caughtUp(): void {
    this.#lastContactMs = this.#clock.nowMs()
    this.#isLoaded = true
    this.#update()
  }

  /**
   * Records that a reload receives rows. This counts as contact, although the index is not current yet. A validator that is
   * already stale stays stale until the reload ends, because until then the old rows may have been revoked long ago.
   */
  loadProgress(): void {
    if (this.#isLoaded && !this.isStale) this.#lastContactMs = this.#clock.nowMs()
  }

  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** Infinity before the first load has ended. */
  get sinceLastContactMs(): number {
    return this.#clock.nowMs() - this.#lastContactMs
  }

  get isStale(): boolean {
    return this.sinceLastContactMs > this.#limits.staleAfterMs
  }

  close(): void {
    this.#cancelTick()
  }

  #scheduleTick(): () => void {
    return this.#clock.after(TICK_MS, () => {
      this.#cancelTick = this.#scheduleTick()
      this.#update()
    })
  }

  #update(): void {
    const { sinceLastContactMs } = this
    const isOverLimit = sinceLastContactMs > this.#limits.staleLimitMs
    this.#control.isDatabaseReachable = sinceLastContactMs < UNREACHABLE_AFTER_MS
    this.#control.state = !this.#isLoaded ? 'loading' : isOverLimit ? 'stale' : 'serving'
  }
}

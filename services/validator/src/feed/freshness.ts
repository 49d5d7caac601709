/**
 * Measures on a monotonic clock how long ago the index was last known to be current, and derives from it whether the workers
 * may decide checks. Past the limit they may not, because what the index says may have been revoked long ago (docs/api.md#p4).
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
  /** Everything that was committed before this time is in the index. -Infinity before the first load has ended. */
  #lastCurrentMs = -Infinity
  /** When Postgres last responded. A load receives rows for a while before the index is current. */
  #lastContactMs = -Infinity
  /** The first load has ended, and the index is not being rebuilt. */
  #isLoaded = false
  /** The index has no position in the log. */
  #isInGap = false

  constructor(control: Control, limits: { staleAfterMs: number; staleLimitMs: number }, clock: Clock = SYSTEM_CLOCK) {
    this.#control = control
    this.#limits = limits
    this.#clock = clock
    this.#cancelTick = this.#scheduleTick()
  }

  /** Records that the index is complete, and contains what was committed before `asOfMs`, a time of the clock. */
  caughtUp(asOfMs: number): void {
    this.#lastCurrentMs = asOfMs
    this.#lastContactMs = this.#clock.nowMs()
    this.#isLoaded = true
    this.#isInGap = false
    this.#update()
  }

  /** Records that the index was restored from a file, was current so long ago, and is in service without Postgres. */
  restored(ageMs: number): void {
    this.#lastCurrentMs = this.#clock.nowMs() - ageMs
    this.#isLoaded = true
    this.#isInGap = true
    this.#update()
  }

  /** Records that the log no longer contains the position of the index. Changes of before are missing until `caughtUp`. */
  gap(): void {
    this.#isInGap = true
  }

  /**
   * Records that a reload receives rows. Postgres can be reached, but the index becomes older until the reload ends: changes
   * that were committed since are not enforced, so a long reload makes the validator stale.
   */
  loadProgress(): void {
    if (this.#isLoaded) this.#lastContactMs = this.#clock.nowMs()
  }

  /** Records that the index is being rebuilt: no check is decided until `caughtUp` is called again. */
  rebuild(): void {
    this.#isLoaded = false
    this.#update()
  }

  get isLoaded(): boolean {
    return this.#isLoaded
  }

  get isInGap(): boolean {
    return this.#isInGap
  }

  /** Infinity before the first load has ended. */
  get sinceCurrentMs(): number {
    return this.#clock.nowMs() - this.#lastCurrentMs
  }

  get isStale(): boolean {
    return this.sinceCurrentMs > this.#limits.staleAfterMs
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
    const isOverLimit = this.sinceCurrentMs > this.#limits.staleLimitMs
    this.#control.isDatabaseReachable = this.#clock.nowMs() - this.#lastContactMs < UNREACHABLE_AFTER_MS
    this.#control.state = !this.#isLoaded ? 'loading' : isOverLimit ? 'stale' : 'serving'
  }
}

/**
 * Measures on a monotonic clock how long ago the index was last current. After KEYWARD_STALE_LIMIT the workers stop deciding checks,
 * because licenses in the index may have been revoked long ago (docs/api.md#p4).
 */

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'
import type { Control } from '../shared/control.ts'

const TICK_MS = 100

/** The time without contact after which Postgres counts as unreachable. The change feed is read at least once a second. */
const UNREACHABLE_AFTER_MS = 1_500

export class Freshness {
  readonly #control: Control
  readonly #limits: { staleAfterMs: number; staleLimitMs: number }
  readonly #clock: Clock
  /** Cancels the next tick. */
  #cancelTick: () => void
  /** The index contains every change that was committed before this time. It is -Infinity before the index is first put into service. */
  #lastCurrentMs = -Infinity
  /** The time of the last contact with Postgres. During a reload it is later than `#lastCurrentMs`. */
  #lastContactMs = -Infinity
  /** Whether the index is in service: loaded or restored, and not being rebuilt. */
  #isLoaded = false
  /** Whether the position of the index in the change log is lost or not confirmed yet. */
  #isInGap = false

  constructor(control: Control, limits: { staleAfterMs: number; staleLimitMs: number }, clock: Clock = SYSTEM_CLOCK) {
    this.#control = control
    this.#limits = limits
    this.#clock = clock
    this.#cancelTick = this.#scheduleTick()
  }

  /** Records that the index contains every change that was committed before `asOfMs`, a time of the clock. */
  caughtUp(asOfMs: number): void {
    this.#lastCurrentMs = asOfMs
    this.#lastContactMs = this.#clock.nowMs()
    this.#isLoaded = true
    this.#isInGap = false
    this.#control.isUnconfirmed = false
    this.#update()
  }

  /** Records that a restored index is in service without Postgres. It was current `ageMs` milliseconds ago. */
  restored(ageMs: number): void {
    this.#lastCurrentMs = this.#clock.nowMs() - ageMs
    this.#isLoaded = true
    this.#isInGap = true
    this.#control.isUnconfirmed = true
    this.#update()
  }

  /** Records that the index has lost its position in the change log. It may lack changes until `caughtUp` is called. */
  gap(): void {
    this.#isInGap = true
  }

  /**
   * Records that a reload receives rows, so Postgres is reachable. Until the reload ends, newer changes are not enforced.
   * Therefore a long reload makes the validator stale.
   */
  loadProgress(): void {
    if (this.#isLoaded) this.#lastContactMs = this.#clock.nowMs()
  }

  /** Records that the index is being rebuilt. No check is decided until `caughtUp` is called again. */
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

  /** The age of the index in milliseconds. It is Infinity before the index is first put into service. */
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

/**
 * Provides virtual time and the scheduler of a simulation. Events run one at a time, in the order of their times. Events with
 * the same time run in random order. After each event, every resolved promise continues. Real time has no influence, so the
 * same seed yields the same run.
 */

import { setImmediate as settled } from 'node:timers/promises'

import type { Random } from '@keyward/testkit'

import type { Clock } from '../../src/shared/clock.ts'

interface Event {
  atMs: number
  /** The order among events of the same time. */
  rank: number
  call: () => void
}

export class VirtualTime implements Clock {
  readonly #random: Random
  /** The events in descending order of time, so that the next event is last. */
  readonly #events: Event[] = []
  #nowMs = 0

  constructor(random: Random) {
    this.#random = random
  }

  nowMs(): number {
    return this.#nowMs
  }

  after(delayMs: number, call: () => void): () => void {
    const event = { atMs: this.#nowMs + Math.max(0, delayMs), rank: this.#random.next(), call }
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >> 1
      const other = this.#events[middle]!
      const isLater = other.atMs > event.atMs || (other.atMs === event.atMs && other.rank > event.rank)
      if (isLater) low = middle + 1
      else high = middle
    }
    this.#events.splice(low, 0, event)
    return () => {
      const at = this.#events.indexOf(event)
      if (at >= 0) this.#events.splice(at, 1)
    }
  }

  /** Resolves after the delay. */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(delayMs, resolve)
    })
  }

  /** Runs the events up to `untilMs`. Calls `afterEach` after each event, when its promises have continued. */
  async run(untilMs: number, afterEach: () => void): Promise<void> {
    await settled()
    for (let event = this.#events.at(-1); event !== undefined && event.atMs <= untilMs; event = this.#events.at(-1)) {
      this.#events.pop()
      this.#nowMs = event.atMs
      event.call()
      await settled()
      afterEach()
    }
    this.#nowMs = untilMs
  }
}

/** The clock of a process. When the process is killed, its events are discarded. */
export class ProcessClock implements Clock {
  readonly #time: VirtualTime
  #isKilled = false

  constructor(time: VirtualTime) {
    this.#time = time
  }

  nowMs(): number {
    return this.#time.nowMs()
  }

  after(delayMs: number, call: () => void): () => void {
    return this.#time.after(delayMs, () => {
      if (!this.#isKilled) call()
    })
  }

  kill(): void {
    this.#isKilled = true
  }
}

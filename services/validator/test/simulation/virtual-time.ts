/**
 * Virtual time and the scheduler of a simulation. Events run one at a time, in the order of their times; between two of
 * them every promise that can continue does. Events of the same time run in random order. Nothing depends on real time,
 * so the same seed yields the same run.
 */

import { setImmediate as settled } from 'node:timers/promises'

import type { Random } from '@keyward/testkit'

import type { Clock } from '../../src/shared/clock.ts'

interface Event {
  atMs: number
  /** Orders the events of one time. */
  rank: number
  call: () => void
}

export class VirtualTime implements Clock {
  readonly #random: Random
  /** Sorted, the next event last. */
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

  /** Runs the events up to `untilMs`, and calls `afterEach` when the promises that one has resolved have continued. */
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

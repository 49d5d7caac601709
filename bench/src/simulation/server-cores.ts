/** Models the cores of a Postgres server as a queue. Each core serves one statement at a time, in the order of arrival. */

import type { EventQueue } from './event-queue.ts'

export class Cores {
  readonly #events: EventQueue
  readonly #waiting: { serviceMs: number; done: () => void }[] = []
  #free: number
  #busyMs = 0

  constructor(events: EventQueue, count: number) {
    this.#events = events
    this.#free = count
  }

  /** The core time used so far, over all cores. */
  get busyMs(): number {
    return this.#busyMs
  }

  serve(serviceMs: number, done: () => void): void {
    if (this.#free === 0) {
      this.#waiting.push({ serviceMs, done })
      return
    }
    this.#free--
    this.#busyMs += serviceMs
    this.#events.after(serviceMs, () => {
      this.#free++
      const next = this.#waiting.shift()
      if (next) this.serve(next.serviceMs, next.done)
      done()
    })
  }
}

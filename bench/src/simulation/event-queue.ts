/**
 * The queue of events and the clock of a simulation. Events run in the order of their time, and events of the same time in the order in
 * which they were added. The queue is a binary heap, so millions of events run within seconds.
 */

interface Event {
  atMs: number
  order: number
  run: () => void
}

export class EventQueue {
  readonly #heap: Event[] = []
  #order = 0
  #nowMs = 0

  get nowMs(): number {
    return this.#nowMs
  }

  after(delayMs: number, run: () => void): void {
    const heap = this.#heap
    let at = heap.push({ atMs: this.#nowMs + delayMs, order: this.#order++, run }) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#isBefore(at, parent)) break
      this.#swap(at, parent)
      at = parent
    }
  }

  /** Runs all events, including events that other events add. */
  run(): void {
    for (let event = this.#take(); event; event = this.#take()) {
      this.#nowMs = event.atMs
      event.run()
    }
  }

  #take(): Event | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    heap[0] = last
    for (let at = 0; ;) {
      let least = at
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < heap.length && this.#isBefore(child, least)) least = child
      if (least === at) return first
      this.#swap(at, least)
      at = least
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [left, right] = [this.#heap[a], this.#heap[b]]
    if (!left || !right) return false
    return left.atMs < right.atMs || (left.atMs === right.atMs && left.order < right.order)
  }

  #swap(a: number, b: number): void {
    const [left, right] = [this.#heap[a], this.#heap[b]]
    if (!left || !right) return
    this.#heap[a] = right
    this.#heap[b] = left
  }
}

/** Simulates the network between a validator and Postgres: messages take time, may be delayed or lost, and connections break. */

import type { Random } from '@keyward/testkit'

import type { VirtualTime } from './virtual-time.ts'

export const STATEMENT_TIMEOUT_MS = 1_500

export class Network {
  readonly time: VirtualTime
  readonly random: Random
  /** The time until which connections are refused. */
  downUntilMs = 0
  /** The time until which no message arrives. */
  stalledUntilMs = 0
  /** The time until which notifications are lost. */
  mutedUntilMs = 0
  /** The time at which a fault last delayed messages or broke connections. */
  troubledMs = -Infinity
  /** Receives a line for each event of the run. */
  tell: (line: string) => void = () => undefined
  readonly #lines = new Set<Line>()

  constructor(time: VirtualTime, random: Random) {
    this.time = time
    this.random = random
  }

  open(onLost: () => void = () => undefined): Line {
    const line = new Line(this, onLost)
    this.#lines.add(line)
    return line
  }

  drop(line: Line): void {
    this.#lines.delete(line)
  }

  /** Breaks each connection with the given probability. */
  cut(probability = 1): void {
    this.troubledMs = this.time.nowMs()
    for (const line of this.#lines) if (this.random.chance(probability)) line.break()
  }

  refuse(untilMs: number): void {
    this.cut()
    this.downUntilMs = Math.max(this.downUntilMs, untilMs)
    this.troubledMs = Math.max(this.troubledMs, untilMs)
  }

  stall(untilMs: number): void {
    this.stalledUntilMs = Math.max(this.stalledUntilMs, untilMs)
    this.troubledMs = Math.max(this.troubledMs, untilMs)
  }
}

/** Simulates one connection to Postgres. */
export class Line {
  readonly #network: Network
  readonly #onLost: () => void
  readonly #pending = new Set<(error: Error) => void>()
  #isBroken = false

  constructor(network: Network, onLost: () => void) {
    this.#network = network
    this.#onLost = onLost
  }

  break(): void {
    if (this.#isBroken) return
    this.close()
    this.#onLost()
  }

  /** Closes the connection. Rejects the messages that are being sent. */
  close(): void {
    this.#isBroken = true
    this.#network.drop(this)
    for (const reject of this.#pending) reject(new Error('The connection is closed.'))
    this.#pending.clear()
  }

  /**
   * Simulates one message. Resolves when the message has arrived. Rejects when the connection breaks first, or after the
   * timeout.
   */
  async travel(longestMs = 20): Promise<void> {
    const { time, random, downUntilMs, stalledUntilMs } = this.#network
    if (this.#isBroken) throw new Error('The connection is closed.')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#pending.add(reject)
    const heldUpMs = Math.max(0, stalledUntilMs - time.nowMs())
    const delayMs = random.next() ** 2 * longestMs
    if (heldUpMs > STATEMENT_TIMEOUT_MS || downUntilMs > time.nowMs())
      time.after(heldUpMs > 0 ? STATEMENT_TIMEOUT_MS : delayMs, () => reject(new Error('Postgres is not reachable.')))
    else time.after(heldUpMs + delayMs, resolve)
    try {
      await promise
    } finally {
      this.#pending.delete(reject)
    }
  }

  /** Sends a statement, which the server executes atomically, and resolves to its result. */
  async query<T>(execute: () => T): Promise<T> {
    await this.travel()
    const result = execute()
    await this.travel()
    return result
  }
}

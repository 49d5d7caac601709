/** Adds access rules one after the other, and records which of them were accepted, and when. */

import { setTimeout as sleep } from 'node:timers/promises'

import type { Callers, Vendor } from './callers.ts'

const INTERVAL_MS = 100

export class RuleWriter {
  readonly #app: Callers
  readonly #vendor: Vendor
  readonly #prefix: string
  readonly #acceptedMs: number[] = []
  /** The machines that an accepted rule blocks. */
  readonly machines: string[] = []

  constructor(app: Callers, vendor: Vendor, prefix: string) {
    this.#app = app
    this.#vendor = vendor
    this.#prefix = prefix
  }

  /** Adds rules until the promise `until` settles. */
  async writeUntil(until: Promise<unknown>): Promise<void> {
    const done = new AbortController()
    const finished = until.finally(() => done.abort())
    const write = async (): Promise<void> => {
      for (let i = 0; !done.signal.aborted; i++) {
        const machine = `${this.#prefix}-${i}`
        if (await this.#add(machine)) {
          this.machines.push(machine)
          this.#acceptedMs.push(performance.now())
        }
        await sleep(INTERVAL_MS)
      }
    }
    await Promise.all([finished, write()])
  }

  /** Returns whether a rule was accepted after a time of `performance.now()`. */
  hasWrittenSince(timeMs: number): boolean {
    return (this.#acceptedMs.at(-1) ?? 0) > timeMs
  }

  /** Returns the longest time in seconds between two consecutive accepted rules. */
  longestGapSeconds(): number {
    const gaps = this.#acceptedMs.map((time, i) => time - (this.#acceptedMs[i - 1] ?? time))
    return Math.round(Math.max(0, ...gaps) / 100) / 10
  }

  async #add(machine: string): Promise<boolean> {
    const rule = { kind: 'BLACKLIST', type: 'HWID', value: machine, scope: 'ORGANIZATION' }
    return this.#app.send('POST', '/api/v1/access-rules', this.#vendor.managementToken, rule).then(
      ({ status }) => status === 201,
      () => false,
    )
  }
}

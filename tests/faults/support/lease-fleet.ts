/**
 * Runs three validators with wrong wall clocks, each behind a separate proxy to Postgres, and injects faults: pauses, kills, jumps of the
 * clock, lost connections, and crashes and freezes of Postgres.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Proxy, type Random, startProxy } from '@keyward/testkit'

import { type Service, startValidator, untilReady } from './children.ts'
import type { Span } from './lease-ledger.ts'
import { type TestPostgres, through } from './postgres.ts'

const SABOTAGE = [`--import=${new URL('sabotage.ts', import.meta.url).href}`]
const MAX_SKEW_MS = 600_000

/**
 * The timing of faults in milliseconds. `between` is the average pause before a fault. The maximum duration is `brief` for
 * about half of the faults, and `long` for the others.
 */
export interface Pace {
  between: number
  brief: number
  long: number
}

export class Member {
  service!: Service
  readonly suspended: Span[] = []
  readonly #databaseUrl: string
  readonly #clockFile: string
  readonly #proxy: Proxy
  readonly #random: Random

  constructor(databaseUrl: string, clockFile: string, proxy: Proxy, random: Random) {
    this.#databaseUrl = databaseUrl
    this.#clockFile = clockFile
    this.#proxy = proxy
    this.#random = random
  }

  async start(): Promise<void> {
    await this.jump()
    this.service = await startValidator(this.#databaseUrl, { KEYWARD_SABOTAGE: this.#clockFile }, SABOTAGE)
  }

  /** Sets the wall clock of the validator to a wrong time. */
  async jump(): Promise<void> {
    await writeFile(this.#clockFile, `clock ${this.#random.int(2 * MAX_SKEW_MS) - MAX_SKEW_MS}`)
  }

  async pause(ms: number): Promise<void> {
    await this.service.freeze()
    const fromMs = Date.now()
    await sleep(ms)
    this.suspended.push({ fromMs, untilMs: Date.now() })
    this.service.signal('SIGCONT')
  }

  async kill(): Promise<void> {
    this.service.signal('SIGKILL')
    await this.service.exit
    await this.start()
  }

  async cut(ms: number): Promise<void> {
    if (this.#random.chance(0.5)) this.#proxy.swallow()
    else this.#proxy.refuse()
    await sleep(ms)
    this.#proxy.heal()
  }

  async end(): Promise<void> {
    await this.service.stop()
    await this.#proxy.close()
  }
}

export class LeaseFleet {
  readonly members: Member[] = []
  /** The periods of faults, and of the recovery after each fault. */
  readonly disturbed: Span[] = []
  /** The number of injected faults by name. */
  readonly counts: Record<string, number> = {}
  readonly #postgres: TestPostgres
  readonly #random: Random
  #folder = ''

  constructor(postgres: TestPostgres, random: Random) {
    this.#postgres = postgres
    this.#random = random
  }

  async start(): Promise<void> {
    this.#folder = await mkdtemp(join(tmpdir(), 'keyward-leases-'))
    for (const name of ['a', 'b', 'c']) {
      const proxy = await startProxy(this.#postgres.port)
      const url = through(this.#postgres.validatorUrl, proxy.port)
      this.members.push(new Member(url, join(this.#folder, name), proxy, this.#random))
    }
    await Promise.all(this.members.map((member) => member.start()))
    await untilReady(...this.members.map(({ service }) => service))
  }

  /**
   * Injects faults into each validator and into Postgres until the signal aborts and the last fault has ended. At any time,
   * each of them has at most one fault.
   */
  async disturb(pace: Pace, signal: AbortSignal): Promise<void> {
    const loops = this.members.map((member) =>
      this.#repeat(pace, signal, {
        paused: (ms) => member.pause(ms),
        killed: () => member.kill(),
        'clock set': () => member.jump(),
        'cut off': (ms) => member.cut(ms),
      }),
    )
    const postgresLoop = this.#repeat(pace, signal, {
      'Postgres frozen': async (ms) => {
        await this.#postgres.freeze()
        await sleep(ms)
        await this.#postgres.thaw()
      },
      'Postgres crashed': async (ms) => {
        await this.#postgres.stop('immediate')
        await sleep(ms)
        await this.#postgres.start()
      },
    })
    await Promise.all([...loops, postgresLoop])
  }

  /** Repeatedly injects all faults in random order. */
  async #repeat(
    { between, brief, long }: Pace,
    signal: AbortSignal,
    disturbances: Record<string, (ms: number) => Promise<void>>,
  ): Promise<void> {
    const random = this.#random
    while (!signal.aborted)
      for (const [name, disturb] of random.shuffle(Object.entries(disturbances))) {
        await sleep(random.int(2 * between), undefined, { signal }).catch(() => undefined)
        if (signal.aborted) return
        const fromMs = Date.now()
        await disturb(random.int(random.chance(0.5) ? brief : long))
        // Work that became due during the fault may take some seconds.
        this.disturbed.push({ fromMs, untilMs: Date.now() + 5_000 })
        this.counts[name] = (this.counts[name] ?? 0) + 1
      }
  }

  async end(): Promise<void> {
    await Promise.all(this.members.map((member) => member.end()))
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/**
 * Claims, checks and releases slots concurrently through validators that are killed. Stores the last response to each machine
 * for a comparison with the table. A machine without a response may or may not have a slot, so the comparison excludes the
 * machine.
 */

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Random, random } from '@keyward/testkit'

import type { Service } from '../../faults/support/children.ts'
import { type Reply, send } from '../../faults/support/client.ts'

export interface Told {
  /** Machines whose last response was VALID and that have not been released since. */
  readonly holders: Set<string>
  /** Machines whose last response was TOO_MANY_MACHINES or a release. */
  readonly without: Set<string>
  /** Machines with a request that received no response. Such a request may take effect after later requests. */
  readonly unsure: Set<string>
  claims: number
  granted: number
  refused: number
  releases: number
  /** The number of repeated checks of slot holders that were VALID. */
  known: number
  /** The number of broken connections and 503 responses. */
  unanswered: number
  /** Responses that must never occur. */
  readonly wrong: string[]
}

export interface StormOptions {
  /** Returns the running validators. */
  readonly validators: () => readonly Service[]
  readonly secret: string
  /** License keys. A machine id contains the index of its license: `license/machine`. */
  readonly keys: readonly string[]
  readonly claims: number
  readonly atOnce: number
  readonly seed: number
}

export async function storm(options: StormOptions): Promise<Told> {
  const told: Told = {
    holders: new Set(),
    without: new Set(),
    unsure: new Set(),
    claims: 0,
    granted: 0,
    refused: 0,
    releases: 0,
    known: 0,
    unanswered: 0,
    wrong: [],
  }
  const agent = new Agent({ keepAlive: true, maxSockets: options.atOnce })
  const workers = Array.from({ length: options.atOnce }, (_, i) =>
    new Claimant(options, told, agent, random(options.seed + i)).run(`w${i}`),
  )
  await Promise.all(workers)
  agent.destroy()
  return told
}

/** The duration above which a claim may have timed out. It equals the statement timeout of claims in a validator. */
const UNHEARD_MS = 1_000

class Claimant {
  readonly #options: StormOptions
  readonly #told: Told
  readonly #agent: Agent
  readonly #dice: Random
  /** The slot holders that only this caller releases. */
  readonly #mine: string[] = []

  constructor(options: StormOptions, told: Told, agent: Agent, dice: Random) {
    this.#options = options
    this.#told = told
    this.#agent = agent
    this.#dice = dice
  }

  async run(name: string): Promise<void> {
    const told = this.#told
    for (let n = 0; told.claims < this.#options.claims; n++) {
      told.claims++
      await this.#claim(`${this.#dice.int(this.#options.keys.length)}/${name}-${n}`)
      if (this.#mine.length > 0 && this.#dice.chance(0.15)) await this.#release()
      if (this.#mine.length > 0 && this.#dice.chance(0.05)) await this.#comeAgain()
    }
  }

  async #claim(machine: string): Promise<void> {
    const told = this.#told
    const askedMs = performance.now()
    const { code } = await this.#ask('/api/v1/activate', machine)
    if (code === 'VALID') {
      told.granted++
      told.holders.add(machine)
      this.#mine.push(machine)
    } else if (code === 'TOO_MANY_MACHINES') {
      told.refused++
      // Postgres was slow, so the validator decided from memory and the claim may have succeeded later.
      if (performance.now() - askedMs > UNHEARD_MS) told.unsure.add(machine)
      else told.without.add(machine)
    } else this.#unanswered(machine, code)
  }

  async #release(): Promise<void> {
    const told = this.#told
    const machine = this.#mine.splice(this.#dice.int(this.#mine.length), 1)[0] ?? ''
    told.holders.delete(machine)
    const { text, code } = await this.#ask('/api/v1/deactivate', machine)
    if (text === '{"deactivated":true}') {
      told.releases++
      told.without.add(machine)
    } else if (text === '{"deactivated":false}')
      told.wrong.push(`${machine} held a slot, but the release returned false`)
    else this.#unanswered(machine, code)
  }

  async #comeAgain(): Promise<void> {
    const told = this.#told
    const machine = this.#dice.pick(this.#mine)
    const { code } = await this.#ask('/api/v1/validate', machine)
    if (code === 'VALID') told.known++
    else if (code === 'UNAVAILABLE' || !/^[A-Z_]+$/.test(code)) {
      told.unanswered++
      told.unsure.add(machine)
    } else told.wrong.push(`${machine} holds a slot, but its check returned ${code}`)
  }

  #unanswered(machine: string, code: string): void {
    this.#told.unanswered++
    this.#told.unsure.add(machine)
    if (/^[A-Z_]+$/.test(code) && code !== 'UNAVAILABLE')
      this.#told.wrong.push(`a check of ${machine} returned ${code}`)
  }

  /** Sends a request. Like a balancer, tries another validator if the connection is refused. */
  async #ask(path: string, machine: string): Promise<Reply> {
    const { keys, secret, validators } = this.#options
    const body = { licenseKey: keys[Number(machine.split('/')[0])], fingerprint: machine }
    for (;;) {
      const { port } = this.#dice.pick(validators())
      const reply = await send(port, path, { secret, agent: this.#agent, body })
      if (!reply.code.includes('ECONNREFUSED')) return reply
      await sleep(5)
    }
  }
}

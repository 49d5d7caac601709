/**
 * Runs one round: creates an organization, and sends random changes and checks while faults are injected. After the faults,
 * the memory of every validator must equal Postgres. The seed determines all random choices, but not the timing of threads
 * and networks. To reproduce a failure, several runs may be necessary.
 */

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Random, random } from '@keyward/testkit'
import { z } from 'zod'

import { OPERATOR_TOKEN, type Service } from '../support/children.ts'
import { check, deactivate, type Reply, send } from '../support/client.ts'
import type { Fleet } from './fleet.ts'
import { judgeAll, type Observation, type Version } from './history.ts'
import { contentOf, judge, type ModelCheck, type ModelLicense, type ModelState, readState } from './model.ts'
import { ADDRESSES, COUNTRIES, MACHINES, makeOperation, type Operation, type Tenant } from './operations.ts'

export interface RunReport {
  wrong: string[]
  operations: number
  checks: number
  telling: number
  faults: string[]
  caughtUpMs: number
}

export interface RunOptions {
  lastsMs: number
  /** The maximum age in milliseconds of the version that a response reflects without a fault. */
  slackMs: number
}

const Organization = z.object({ id: z.string(), managementToken: z.string(), apiKey: z.string() })
const Identified = z.object({ id: z.string() })
const License = z.object({ id: z.string(), key: z.string() })
const CHECKERS = 4

class Run {
  readonly #fleet: Fleet
  readonly #management: Service
  readonly #random: Random
  readonly #tenant: Tenant
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 32 })
  readonly versions: Version[]
  readonly observations: Observation[] = []
  readonly wrong: string[] = []
  #isOver = false

  constructor(fleet: Fleet, management: Service, from: Random, tenant: Tenant, state: ModelState) {
    this.#fleet = fleet
    this.#management = management
    this.#random = from
    this.#tenant = tenant
    this.versions = [{ name: 'start', state, sentMs: -Infinity, doneMs: performance.now() }]
  }

  get #state(): ModelState {
    const last = this.versions.at(-1)
    if (!last) throw new Error('A run must have at least one version')
    return last.state
  }

  /** Concurrently sends changes and checks, and injects faults, for about `lastsMs`. Returns the names of the faults. */
  async live(lastsMs: number): Promise<string[]> {
    const seeds = Array.from({ length: CHECKERS + 1 }, () => random(this.#random.int(2 ** 31)))
    const over = sleep(lastsMs).then(() => (this.#isOver = true))
    const checkers = seeds.slice(1).map((from) => this.#check(from))
    const faults: string[] = []
    const suffering = (async () => {
      const from = seeds[0] ?? this.#random
      while (!this.#isOver) {
        await sleep(100 + from.int(700))
        if (!this.#isOver) faults.push(await this.#fleet.suffer(from))
      }
    })()
    while (!this.#isOver) await this.#change()
    await Promise.all([over, suffering, ...checkers])
    return faults
  }

  async #change(): Promise<void> {
    const operation = makeOperation(this.#tenant, this.#state, this.#random)
    const sentMs = performance.now()
    const { method, path, token: secret, body } = operation
    const reply = await send(this.#management.port, `/api/v1/${path}`, {
      method,
      secret,
      body: method === 'DELETE' ? undefined : body,
      limitMs: 15_000,
    })
    const state = await this.#stateAfter(operation, reply)
    this.versions.push({ name: operation.name, state, sentMs, doneMs: performance.now() })
  }

  async #stateAfter(operation: Operation, reply: Reply): Promise<ModelState> {
    if (reply.status >= 200 && reply.status < 300) {
      const answer: unknown = reply.text === '' ? null : JSON.parse(reply.text)
      return operation.apply(this.#state, answer)
    }
    if (reply.status === 403 || reply.status === 409) return this.#state
    if (reply.status >= 400 && reply.status < 500) this.wrong.push(`${operation.name}: ${reply.status} ${reply.text}`)
    return await this.#stateInPostgres(operation)
  }

  /** Determines an unknown outcome after an outage of Postgres by reading the state. */
  async #stateInPostgres(operation: Operation): Promise<ModelState> {
    for (;;) {
      try {
        const found = await readState(this.#fleet.pool, this.#tenant.id)
        const before = contentOf(this.#state).join()
        if (operation.name === 'merge' && contentOf(found).join() !== before) operation.apply(this.#state, null)
        return found
      } catch {
        await sleep(50)
      }
    }
  }

  async #check(from: Random): Promise<void> {
    while (!this.#isOver) {
      const index = from.int(this.#fleet.members.length)
      const member = this.#fleet.members[index]
      const version = from.pick(this.versions.slice(-8))
      const license = from.pick([...version.state.licenses.values()])
      if (!member) continue
      const { life, service } = member
      const fingerprint = from.pick(MACHINES)
      const asked = { license: license.key, fingerprint, ip: from.pick(ADDRESSES), country: from.pick(COUNTRIES) }
      if (license.id !== this.#tenant.untouched.id && from.chance(0.05)) {
        await deactivate(service.port, this.#tenant.apiKey, license.key, fingerprint)
        continue
      }
      const reply = await check(service.port, this.#tenant.apiKey, asked, this.#agent)
      if (reply.status === 200 || reply.status === 400) {
        const receivedMs = reply.sentMs + reply.tookMs
        this.observations.push({
          validator: index,
          life,
          check: asked,
          code: reply.code,
          sentMs: reply.sentMs,
          receivedMs,
        })
      } else if (reply.status !== 0 && reply.status !== 503)
        this.wrong.push(`A check got ${reply.status} ${reply.text}`)
      await sleep(2)
    }
  }

  /** Adds to `wrong` each lost slot of the untouched license, and each license with more slots than its highest limit during the run. */
  async compareSlots(): Promise<void> {
    const { rows } = await this.#fleet.pool.query<{ license: string; machine: string }>(
      `select license_id as license, convert_from(machine_id, 'UTF8') as machine from machines m
       join licenses l on l.id = m.license_id where l.organization_id = $1`,
      [this.#tenant.id],
    )
    const held = new Set(rows.map(({ license, machine }) => `${license} ${machine}`))
    const { untouched } = this.#tenant
    for (const { check: asked, code } of this.observations) {
      const isBySlot =
        asked.license === untouched.key && this.versions.every(({ state }) => judge(state, asked) === 'SLOT')
      if (isBySlot && code === 'VALID' && !held.has(`${untouched.id} ${asked.fingerprint}`))
        this.wrong.push(`${asked.fingerprint} was VALID but has no slot`)
    }
    for (const id of this.#state.licenses.keys()) {
      const limits = this.versions.map(({ state }) => state.licenses.get(id)?.max).filter((max) => max !== undefined)
      const most = limits.includes(null) ? Infinity : Math.max(...limits.map(Number))
      const used = rows.filter(({ license }) => license === id).length
      if (used > most) this.wrong.push(`License ${id} has ${used} slots, but its highest limit was ${most}`)
    }
  }

  /** Compares the response of every validator to every check with the model while Postgres cannot be reached. */
  async compareMemories(): Promise<void> {
    const { rows } = await this.#fleet.pool.query<{ license: string; machine: string }>(
      `select license_id as license, convert_from(machine_id, 'UTF8') as machine from machines`,
    )
    const held = new Set(rows.map(({ license, machine }) => `${license} ${machine}`))
    const used = (id: string): number => rows.filter(({ license }) => license === id).length
    const expected = ({ id, max }: ModelLicense, asked: ModelCheck): string => {
      const judgement = judge(this.#state, asked)
      if (judgement !== 'SLOT') return judgement
      if (held.has(`${id} ${asked.fingerprint}`)) return 'VALID'
      return used(id) >= (max ?? Infinity) ? 'TOO_MANY_MACHINES' : 'UNAVAILABLE'
    }
    for (const { proxy } of this.#fleet.members) proxy.refuse()
    for (const license of this.#state.licenses.values())
      for (const fingerprint of MACHINES)
        for (const [i, ip] of ADDRESSES.entries()) {
          const asked = { license: license.key, fingerprint, ip, country: COUNTRIES[i % 2] ?? '' }
          const replies = await Promise.all(this.#fleet.members.map(({ service }) => this.#ask(service.port, asked)))
          for (const [v, { code }] of replies.entries())
            if (code !== expected(license, asked))
              this.wrong.push(
                `At the end validator ${v} returns ${code} for ${JSON.stringify(asked)}, not ${expected(license, asked)}`,
              )
        }
    for (const { proxy } of this.#fleet.members) proxy.heal()
  }

  /** Sends a check. Retries once over a new connection, because the server may have closed an idle connection. */
  async #ask(port: number, asked: ModelCheck): Promise<Reply> {
    const reply = await check(port, this.#tenant.apiKey, asked, this.#agent)
    return reply.status === 0 ? await check(port, this.#tenant.apiKey, asked) : reply
  }

  async compareModel(): Promise<void> {
    const found = contentOf(await readState(this.#fleet.pool, this.#tenant.id))
    const known = contentOf(this.#state)
    const different = [...found.filter((one) => !known.includes(one)), ...known.filter((one) => !found.includes(one))]
    if (different.length > 0) this.wrong.push(`Postgres and the model differ in ${different.join('; ')}`)
  }

  close(): void {
    this.#agent.destroy()
  }
}

async function createTenant(management: Service): Promise<Tenant> {
  const post = async <T>(path: string, secret: string, body: object, schema: z.ZodType<T>): Promise<T> => {
    const reply = await send(management.port, `/api/v1/${path}`, { body, secret })
    if (reply.status !== 201) throw new Error(`${path}: ${reply.status} ${reply.code} ${management.output()}`)
    return schema.parse(JSON.parse(reply.text))
  }
  const organization = await post('organizations', OPERATOR_TOKEN, { name: 'Run', plan: 'STANDARD' }, Organization)
  const token = organization.managementToken
  const products = [
    await post('products', token, { name: 'A' }, Identified),
    await post('products', token, { name: 'B' }, Identified),
  ]
  const customers = []
  for (let i = 0; i < 5; i++)
    customers.push((await post('customers', token, { email: `c${i}@example.com` }, Identified)).id)
  const [productId = '', customerId = ''] = [products[0]?.id, customers[0]]
  const policy = { type: 'PERPETUAL', maxMachines: 4 }
  const { id, key } = await post('licenses', token, { productId, customerId, policy }, License)
  const untouched = { id, key, productId, customerId, status: 'active', max: 4 }
  return { ...organization, products: products.map((product) => product.id), customers, untouched }
}

export async function runOnce(
  fleet: Fleet,
  management: Service,
  seed: number,
  options: RunOptions,
): Promise<RunReport> {
  const tenant = await createTenant(management)
  const run = new Run(fleet, management, random(seed), tenant, await readState(fleet.pool, tenant.id))
  const faultsBefore = fleet.faults.length
  await fleet.untilCaughtUp()
  const faults = await run.live(options.lastsMs)
  // Waits for claims that are still in progress after the timeout of their checks.
  await sleep(1_500)
  const caughtUpMs = await fleet.untilCaughtUp()
  const { wrong, judged, telling } = judgeAll(
    run.versions,
    run.observations,
    fleet.faults.slice(faultsBefore),
    options.slackMs,
  )
  await run.compareModel()
  await run.compareSlots()
  await run.compareMemories()
  run.close()
  const operations = run.versions.length - 1
  return { wrong: [...run.wrong, ...wrong], operations, checks: judged, telling, faults, caughtUpMs }
}

/**
 * Sends checks to two validators and changes to one management service, and records every response. `stop` waits until each rule is
 * enforced by both validators. `compare` then compares the responses with the rows of Postgres.
 */

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import type { createPool } from '@keyward/database'
import { z } from 'zod'

import { OPERATOR_TOKEN, type Service } from '../../faults/support/children.ts'
import { check, type Reply, send } from '../../faults/support/client.ts'

const KNOWN_INTERVAL_MS = 25
const NEW_INTERVAL_MS = 150
const RULE_INTERVAL_MS = 200
const RETRY_MS = 150
/** The time after which a request that has not succeeded is abandoned and reported. */
const GIVE_UP_MS = 120_000
const ENFORCE_POLL_MS = 10
const ENFORCE_LIMIT_MS = 60_000
/** The machine limit of each license, for whose slots COMPETITORS new machines compete. */
const MAX_MACHINES = 3
const COMPETITORS = 6
const LICENSES = 120

const Organization = z.object({ managementToken: z.string(), apiKey: z.string() })
const Identified = z.object({ id: z.string() })
const License = z.object({ id: z.string(), key: z.string() })
type License = z.infer<typeof License>

/** A rule that management has accepted. */
interface Rule {
  readonly machine: string
  readonly acceptedMs: number
  /** The time from the acceptance until both validators rejected the machine. */
  enforcedMs: number
}

interface Slot {
  readonly license: License
  readonly machine: string
}

export interface Comparison {
  /** The number of licenses with more machines than their limit. */
  overLimit: number
  /** The number of machines that were `VALID` but hold no slot in Postgres. */
  lostSlots: number
  /** The number of accepted rules that Postgres does not contain. */
  lostRules: number
  /** Descriptions of the verdicts that differ from the rows of Postgres. */
  different: string[]
}

export class Traffic {
  readonly #validators: readonly Service[]
  readonly #management: Service
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 100 })
  readonly #jobs: Promise<void>[] = []
  readonly #known: Slot[] = []
  readonly #licenses: License[] = []
  readonly #slots: Slot[] = []
  readonly #rules: Rule[] = []
  #token = ''
  #apiKey = ''
  #unlimited: License = { id: '', key: '' }
  #isOver = false
  /** The times at which a rule was accepted, and at which a new machine got a verdict. */
  readonly writtenMs: number[] = []
  readonly grantedMs: number[] = []
  knownChecks = 0
  /** The responses to known machines other than `VALID`. */
  readonly knownFailures: string[] = []
  /** The last responses to abandoned requests. */
  readonly givenUp: string[] = []

  constructor(validators: readonly Service[], management: Service) {
    this.#validators = validators
    this.#management = management
  }

  get slots(): number {
    return this.#slots.length
  }

  get rules(): readonly Rule[] {
    return this.#rules
  }

  /** Creates the organization, its licenses, and machines that hold slots. */
  async prepare(): Promise<void> {
    const organization = await this.#create(
      'organizations',
      { name: 'F', plan: 'STANDARD' },
      Organization,
      OPERATOR_TOKEN,
    )
    this.#token = organization.managementToken
    this.#apiKey = organization.apiKey
    const { id: productId } = await this.#create('products', { name: 'F' }, Identified)
    const { id: customerId } = await this.#create('customers', { email: 'f@example.com' }, Identified)
    const license = (maxMachines: number | null) =>
      this.#create('licenses', { productId, customerId, policy: { type: 'PERPETUAL', maxMachines } }, License)
    this.#unlimited = await license(null)
    for (let i = 0; i < LICENSES; i++) this.#licenses.push(await license(MAX_MACHINES))
    const shared = await license(10)
    for (let i = 0; i < 10; i++) this.#known.push({ license: shared, machine: `known-${i}` })
    for (const slot of this.#known)
      for (const v of this.#validators.keys()) while ((await this.#check(v, slot)).code !== 'VALID') await sleep(20)
  }

  start(): void {
    this.#jobs.push(
      this.#repeat(KNOWN_INTERVAL_MS, (i) => this.#checkKnown(i)),
      this.#repeat(NEW_INTERVAL_MS, (i) => this.#checkNew(i)),
      this.#addRules(),
    )
  }

  /** Ends the traffic. Resolves when every request has its last response. */
  async stop(): Promise<void> {
    this.#isOver = true
    // A job may add further jobs until it ends.
    for (const job of this.#jobs) await job
  }

  /** Compares all responses with the rows of Postgres, and the verdicts of both validators with these rows. */
  async compare(pool: ReturnType<typeof createPool>): Promise<Comparison> {
    const { rows } = await pool.query<{ license: string; machine: string; max: number }>(
      `select license_id as license, convert_from(machine_id, 'UTF8') as machine, max_machines as max
       from machines m join licenses l on l.id = m.license_id where l.max_machines is not null`,
    )
    const held = new Set(rows.map(({ license, machine }) => `${license} ${machine}`))
    const byLicense = Map.groupBy(rows, ({ license }) => license)
    const { rows: values } = await pool.query<{ value: string }>(
      `select convert_from(value, 'UTF8') as value from access_rules where type = 'HWID'`,
    )
    const enforced = new Set(values.map(({ value }) => value))
    const different: string[] = []
    const expectCode = async (slot: Slot, code: string): Promise<void> => {
      for (const v of this.#validators.keys()) {
        const found = await this.#check(v, slot)
        if (found.code !== code) different.push(`validator ${v}: ${slot.machine} is ${found.code}, not ${code}`)
      }
    }
    for (const license of this.#licenses) {
      const own = byLicense.get(license.id) ?? []
      for (const { machine } of own) await expectCode({ license, machine }, 'VALID')
      if (own.length >= MAX_MACHINES) await expectCode({ license, machine: 'stranger' }, 'TOO_MANY_MACHINES')
    }
    for (const { machine } of this.#rules)
      await expectCode({ license: this.#unlimited, machine }, enforced.has(machine) ? 'BLACKLISTED' : 'VALID')
    this.#agent.destroy()
    return {
      overLimit: [...byLicense.values()].filter((own) => own.length > (own[0]?.max ?? 0)).length,
      lostSlots: this.#slots.filter(({ license, machine }) => !held.has(`${license.id} ${machine}`)).length,
      lostRules: this.#rules.filter(({ machine }) => !enforced.has(machine)).length,
      different,
    }
  }

  async #create<T>(path: string, body: object, schema: z.ZodType<T>, secret = this.#token): Promise<T> {
    const reply = await send(this.#management.port, `/api/v1/${path}`, { body, secret, agent: this.#agent })
    if (reply.status !== 201) throw new Error(`${path}: ${reply.status} ${reply.text}`)
    return schema.parse(JSON.parse(reply.text))
  }

  #check(validator: number, { license, machine }: Slot): Promise<Reply> {
    const port = this.#validators[validator]?.port ?? 0
    return check(port, this.#apiKey, { license: license.key, fingerprint: machine }, this.#agent)
  }

  /** Starts a request every `everyMs`, without waiting for the previous response. */
  async #repeat(everyMs: number, run: (i: number) => Promise<void>): Promise<void> {
    for (let i = 0; !this.#isOver; i++) {
      this.#jobs.push(run(i))
      await sleep(everyMs)
    }
  }

  async #checkKnown(i: number): Promise<void> {
    const slot = this.#known[i % this.#known.length]
    if (!slot) return
    const reply = await this.#check(i % 2, slot)
    this.knownChecks++
    if (reply.code !== 'VALID') this.knownFailures.push(`${reply.status} ${reply.code}`)
  }

  /** Repeats the check of a new machine until a verdict arrives. */
  async #checkNew(i: number): Promise<void> {
    const license = this.#licenses[Math.floor(i / COMPETITORS) % LICENSES]
    if (!license) return
    const slot = { license, machine: `new-${i}` }
    const endMs = performance.now() + GIVE_UP_MS
    for (let attempt = i; ; attempt++) {
      const { status, code } = await this.#check(attempt % 2, slot)
      if (status === 200) this.#slots.push(slot)
      if (status === 200 || status === 400) {
        this.grantedMs.push(performance.now())
        return
      }
      if (performance.now() > endMs) return void this.givenUp.push(`${slot.machine}: ${status} ${code}`)
      await sleep(RETRY_MS)
    }
  }

  async #addRules(): Promise<void> {
    for (let i = 0; !this.#isOver; i++) {
      const machine = `blocked-${i}`
      const body = { kind: 'BLACKLIST', type: 'HWID', value: machine, scope: 'ORGANIZATION' }
      const headers = { 'idempotency-key': machine }
      const request = { body, headers, secret: this.#token, agent: this.#agent, limitMs: 30_000 }
      const endMs = performance.now() + GIVE_UP_MS
      let reply = await send(this.#management.port, '/api/v1/access-rules', request)
      for (; reply.status !== 201 && performance.now() < endMs; await sleep(RETRY_MS))
        reply = await send(this.#management.port, '/api/v1/access-rules', request)
      if (reply.status !== 201) return void this.givenUp.push(`${machine}: ${reply.status} ${reply.text}`)
      const rule = { machine, acceptedMs: performance.now(), enforcedMs: Infinity }
      this.writtenMs.push(rule.acceptedMs)
      this.#rules.push(rule)
      this.#jobs.push(this.#untilEnforced(rule))
      await sleep(RULE_INTERVAL_MS)
    }
  }

  async #untilEnforced(rule: Rule): Promise<void> {
    for (const v of this.#validators.keys())
      while ((await this.#check(v, { license: this.#unlimited, machine: rule.machine })).code !== 'BLACKLISTED') {
        // A failover may lose the rule.
        if (performance.now() - rule.acceptedMs > ENFORCE_LIMIT_MS) return
        await sleep(ENFORCE_POLL_MS)
      }
    rule.enforcedMs = performance.now() - rule.acceptedMs
  }
}

/**
 * Creates the demo data: an organization with customers, licenses, access rules, members and a month of checks. Resources such as licenses
 * are created through the management API. Machines, checks and alerts are written by the functions of the database that validators call.
 * Objects that exist already are not created again, so a run after an interruption completes the data.
 */

import { createHash } from 'node:crypto'

import { claimSlots, createPool, splitBatch, uuidToBytes, writeBehind } from '@keyward/database'
import { z } from 'zod'

import { type Demo, type ManagementAccess } from '../shared/demo.ts'
import { Api, withId } from './api.ts'
import { backDate, backDateRow, type DatabaseClient, type Shift } from './back-date.ts'
import { MEMBERS, ORGANIZATION, PRODUCTS } from './catalog.ts'
import { between, chance } from './chance.ts'
import { ARRIVALS_DAYS, DAY_MS, type Plan, planDemoData } from './plan.ts'
import { CRACKED } from './rules.ts'
import { changes, type Step } from './steps.ts'
import { type Check, DAYS, planChecks, toUsage } from './usage.ts'

const named = z.object({ id: z.string(), name: z.string() })
const externals = z.object({ id: z.string(), externalId: z.string().nullable() })
const keyed = z.object({ id: z.string(), key: z.string() })
const mailed = z.object({ id: z.string(), email: z.string() })
const rule = z.object({ id: z.string(), type: z.string(), value: z.string() })
const secret = z.object({ id: z.string(), secret: z.string() })
const imported = z.object({ licenses: z.array(keyed) })

/** Creates the demo data in the organization of `demo`. `databaseUrl` contains the login of the tables' owner. */
export async function createDemoData(access: ManagementAccess, demo: Demo, databaseUrl: string): Promise<void> {
  const pool = createPool(databaseUrl, { name: 'keyward demo data', max: 1 })
  const client = await pool.connect()
  try {
    await new Creation(access, demo, client).run()
  } finally {
    client.release()
    await pool.end()
  }
}

class Creation {
  readonly #access: ManagementAccess
  readonly #demo: Demo
  readonly #client: DatabaseClient
  readonly #plan: Plan = planDemoData(Date.now())
  readonly #api: Api
  readonly #shifts: Shift[] = []
  /** For each member's e-mail address, the API with the member's token, and the path of that token. */
  readonly #members = new Map<string, { api: Api; path: string }>()
  /** The ids of the created objects, in the order of the plan. */
  readonly #ids = { products: [] as string[], customers: [] as string[], licenses: [] as string[] }
  #checks: Check[] = planChecks(this.#plan)
  /** The ids of objects of an earlier run, by e-mail address, name, external id or key. */
  #existing = new Map<string, string>()
  /** The number of the last batch of usage. */
  #flushed = 0

  constructor(access: ManagementAccess, demo: Demo, client: DatabaseClient) {
    this.#access = access
    this.#demo = demo
    this.#client = client
    this.#api = new Api(access.url, demo.managementToken)
  }

  async run(): Promise<void> {
    await this.#findExisting()
    const operator = this.#api.as(this.#access.operatorToken)
    await operator.send('PATCH', `/organizations/${this.#demo.organizationId}`, withId, { name: ORGANIZATION })
    const steps: Step[] = [
      { ageDays: ARRIVALS_DAYS[0] + 1, run: () => this.#createMembers() },
      { ageDays: ARRIVALS_DAYS[0] + 0.5, run: () => this.#createProducts() },
      ...ARRIVALS_DAYS.map((ageDays, arrival) => ({ ageDays, run: () => this.#arrive(arrival) })),
      ...changes(this.#plan, this.#ids, (email) => this.#members.get(email)!.api),
    ]
    for (const { ageDays, run } of steps.toSorted((a, b) => b.ageDays - a.ageDays)) {
      const atMs = this.#plan.nowMs - ageDays * DAY_MS
      await this.#writeChecksUntil(atMs)
      const { rows } = await this.#client.query<{ now: Date }>('select clock_timestamp() as now')
      this.#shifts.push({ startedAt: rows[0]!.now, atMs })
      await run()
    }
    await this.#writeChecksUntil(this.#plan.nowMs)
    await this.#countMatches()
    for (const { path } of this.#members.values()) await this.#api.delete(path)
    const { organizationId, productId, customerId, licenseId } = this.#demo
    await backDate(this.#client, organizationId, this.#shifts, DAYS)
    const oldestMs = this.#shifts[0]!.atMs
    await backDateRow(this.#client, 'products', productId, oldestMs)
    await backDateRow(this.#client, 'customers', customerId, oldestMs)
    await backDateRow(this.#client, 'licenses', licenseId, oldestMs)
  }

  async #findExisting(): Promise<void> {
    const api = this.#api
    const found = [
      ...(await api.all('/members', mailed)).map(({ id, email }) => [email, id] as const),
      ...(await api.all('/products', named)).map(({ id, name }) => [name, id] as const),
      ...(await api.all('/customers', externals)).map(({ id, externalId }) => [externalId ?? id, id] as const),
      ...(await api.all('/licenses', keyed)).map(({ id, key }) => [key, id] as const),
    ]
    this.#existing = new Map(found)
  }

  /** Returns the id of an object. Creates the object if there is none with this name. */
  async #ensure(name: string, path: string, body: object, api = this.#api): Promise<string> {
    return this.#existing.get(name) ?? (await api.send('POST', path, withId, body)).id
  }

  /** Creates the members, and an access token for each, so that the audit log names the members. `run` revokes the tokens at its end. */
  async #createMembers(): Promise<void> {
    for (const member of MEMBERS) {
      const id = await this.#ensure(member.email, '/members', member)
      const body = { name: member.email, permissions: member.permissions }
      const token = await this.#api.send('POST', `/members/${id}/access-tokens`, secret, body)
      const path = `/members/${id}/access-tokens/${token.id}`
      this.#members.set(member.email, { api: this.#api.as(token.secret), path })
    }
  }

  async #createProducts(): Promise<void> {
    const [first, ...others] = PRODUCTS
    await this.#api.send('PATCH', `/products/${this.#demo.productId}`, withId, first)
    this.#ids.products.push(this.#demo.productId)
    for (const product of others) this.#ids.products.push(await this.#ensure(product.name, '/products', product))
  }

  /** Creates the customers and the licenses of an arrival, and the machines of the licenses. */
  async #arrive(arrival: number): Promise<void> {
    const { api } = this.#members.get(MEMBERS[arrival % 3]!.email)!
    for (const [i, { arrival: own, ...customer }] of this.#plan.customers.entries()) {
      if (own !== arrival) continue
      if (i === 0) await api.send('PATCH', `/customers/${this.#demo.customerId}`, withId, customer)
      this.#ids.customers.push(
        i === 0 ? this.#demo.customerId : await this.#ensure(customer.externalId, '/customers', customer, api),
      )
    }
    await this.#createLicenses(arrival, api)
  }

  async #createLicenses(arrival: number, api: Api): Promise<void> {
    const planned = this.#plan.licenses.filter((license, i) => license.arrival === arrival && i > 0)
    const missing = planned.filter(({ key }) => !this.#existing.has(key))
    if (missing.length > 0) {
      const licenses = missing.map(({ key, product, customer, policy, entitlements }) => ({
        key,
        policy,
        productId: this.#ids.products[product]!,
        customerId: this.#ids.customers[customer]!,
        entitlements,
      }))
      const created = await api.send('POST', '/licenses/import', imported, { licenses })
      for (const { key, id } of created.licenses) this.#existing.set(key, id)
    }
    if (arrival === 0) this.#ids.licenses.push(this.#demo.licenseId)
    this.#ids.licenses.push(...planned.map(({ key }) => this.#existing.get(key)!))
    const claims = planned.flatMap(({ key, machines }) =>
      machines.map(({ id, hostname }) => ({
        licenseId: uuidToBytes(this.#existing.get(key)!),
        machineId: Buffer.from(id),
        hostname,
      })),
    )
    await claimSlots(this.#client, claims, { patient: true })
  }

  /** Writes the usage of checks before `untilMs`. A batch has the same number in every run, so the database applies it only once. */
  async #writeChecksUntil(untilMs: number): Promise<void> {
    const due = this.#checks.filter(({ atMs }) => atMs < untilMs)
    if (due.length === 0) return
    this.#checks = this.#checks.slice(due.length)
    const ids = { organizationId: this.#demo.organizationId, ...this.#ids }
    for (const batch of splitBatch(toUsage(due, this.#plan, ids)))
      await writeBehind(this.#client, this.#writerId(), ++this.#flushed, batch)
  }

  /** Writes the match counts of the rules. The count of a rule that decided planned checks equals the number of these checks. */
  async #countMatches(): Promise<void> {
    const checks = planChecks(this.#plan).filter(({ code }) => code === 'BLACKLISTED')
    const sum = (list: readonly Check[]) => list.reduce((total, { count }) => total + count, 0)
    const byMachine = sum(checks.filter(({ machineId }) => machineId === CRACKED))
    const byCustomer = sum(checks) - byMachine
    const counted = (await this.#api.all('/access-rules', rule)).map(({ id, type, value }) => {
      const likely = chance(`matches ${value}`) < 0.3 ? 0 : between(1, 90, `count ${value}`)
      const count = type === 'CUSTOMER' ? byCustomer : value === CRACKED ? byMachine : likely
      const lastAtMs = this.#plan.nowMs - between(1, 4 * 1_440, `last ${value}`) * 60_000
      return { id: uuidToBytes(id), count, lastAtMs }
    })
    const rules = counted.filter(({ count }) => count > 0)
    const empty = toUsage([], this.#plan, { organizationId: this.#demo.organizationId, ...this.#ids })
    await writeBehind(this.#client, this.#writerId(), ++this.#flushed, { ...empty, rules })
  }

  /** Returns a validator id that depends only on the organization, so it is the same in every run. */
  #writerId(): string {
    const hash = createHash('sha256').update(`demo data of ${this.#demo.organizationId}`).digest('hex')
    return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`
  }
}

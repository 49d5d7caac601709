/**
 * Breaks the connection to Postgres at each call of a change's transaction in turn, before and after Postgres executes the call. Afterwards the
 * rules, the audit log, the events and the verdict are those of before the change, or those of after it. They are those of after it if
 * the response was successful.
 */

import { accessRule, license as licenseSchema } from '@keyward/contract'
import { verdictV2 } from '@keyward/contract/validation'
import {
  type CallProxy,
  createTestDatabase,
  startCallProxy,
  startValidatorProcess,
  type TestDatabase,
  type ValidatorProcess,
} from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { type ApiResponse, type Caller, type Harness, startHarness } from './support/harness.ts'
import { createVendor, expectBody, patient, patiently, type Vendor } from './support/vendor.ts'

const MAX_CALLS = 100
const CALLS = { application: 'keyward-management', inTransactions: true }

let database: TestDatabase
let proxy: CallProxy
let harness: Harness
let validator: ValidatorProcess

beforeAll(async () => {
  database = await createTestDatabase()
  proxy = await startCallProxy(database.managementUrl)
  harness = await startHarness({ DATABASE_URL: proxy.url })
  validator = await startValidatorProcess(database, { TRUSTED_PROXIES: 'all' })
})
afterAll(async () => {
  await validator.stop()
  await harness.close()
  await proxy.close()
  await database.drop()
})

interface World {
  /** Its calls are repeated while the service is busy. */
  vendor: Vendor
  /** Sends one request. */
  call: Caller
  licenseKey: string
  customers: { first: string; second: string }
  rules: string[]
}

const rule = (value: string) => ({ kind: 'BLACKLIST', type: 'IP', value, scope: 'ORGANIZATION' })

/** Creates a license of the first customer, a set with one rule, two monitored rules, and a rule of the first customer. */
async function createWorld(): Promise<World> {
  const vendor = await createVendor(patient(harness))
  const first = await vendor.customer({ email: 'first@example.com' })
  const second = await vendor.customer({ email: 'second@example.com' })
  const license = await vendor.license({ customerId: first })
  await vendor.rule({ value: '198.51.100.1', set: 'feed' })
  const monitored = [
    await vendor.rule({ value: '192.0.2.9', mode: 'MONITOR' }),
    await vendor.rule({ value: '192.0.2.0/24', mode: 'MONITOR' }),
  ]
  await vendor.rule({ type: 'CUSTOMER', value: second })
  const call = harness.as(vendor.managementToken)
  return { vendor, call, licenseKey: license.key, customers: { first, second }, rules: monitored.map(({ id }) => id) }
}

/** Each change rejects the checks of the license. */
const CHANGES: Readonly<Record<string, (world: World) => Promise<ApiResponse>>> = {
  'the creation of a rule': ({ call }) =>
    call('POST', 'access-rules', { body: { ...rule('192.0.2.8/30'), note: 'new' } }),
  'an import of rules': ({ call }) =>
    call('POST', 'access-rules/import', { body: { rules: ['192.0.2.8/31', '192.0.2.0/25'].map(rule) } }),
  'the replacement of a set': ({ call }) =>
    call('PUT', 'access-rules/sets/feed', { body: { rules: ['192.0.2.8/29', '192.0.2.9'].map(rule) } }),
  'a change of modes': ({ call, rules }) =>
    call('POST', 'access-rules/set-mode', { body: { mode: 'ENFORCE', ids: rules } }),
  'a merge of customers': ({ call, customers }) =>
    call('POST', `customers/${customers.first}/merge`, { body: { into: customers.second } }),
}

/** Returns everything that a change writes, without ids and times. */
async function stateOf({ vendor, customers }: World): Promise<object> {
  const read = async <Item extends z.ZodType>(path: string, item: Item) =>
    expectBody(await vendor.call('GET', `${path}?limit=100`), 200, z.object({ data: z.array(item) })).data
  const nameOf = (id: string) => (id === customers.first ? 'first' : id === customers.second ? 'second' : id)
  const rules = await read('access-rules', accessRule)
  const licenses = await read('licenses', licenseSchema)
  const sorted = (list: readonly string[]) => list.toSorted()
  return {
    rules: sorted(rules.map(({ mode, value, set, note }) => [mode, nameOf(value), set, note].join())),
    licenses: licenses.map(({ customerId }) => nameOf(customerId)),
    customers: sorted((await read('customers', z.object({ email: z.string() }))).map(({ email }) => email)),
    audit: sorted((await read('audit-log', z.object({ action: z.string() }))).map(({ action }) => action)),
    events: sorted((await read('events', z.object({ type: z.string() }))).map(({ type }) => type)),
  }
}

/** Waits until Postgres has ended every transaction of the service. It may still commit when the connection is broken. */
async function ended(): Promise<void> {
  const open = `select pid from pg_stat_activity
    where datname = current_database() and application_name = '${CALLS.application}' and backend_xid is not null`
  await expect.poll(async () => (await database.pool.query(open)).rows).toEqual([])
}

/** Returns the verdict of a check by a validator that has applied all changes. */
async function verdictOf({ vendor, licenseKey }: World): Promise<string> {
  const headers = { prefer: 'wait=10' }
  await vendor.call('POST', 'api-keys', { body: { name: 'a change that follows' }, headers })
  const check = () =>
    fetch(`http://127.0.0.1:${validator.port}/api/v2/license/validate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${vendor.apiKey}`, 'x-forwarded-for': '192.0.2.9' },
      body: JSON.stringify({ license: licenseKey, fingerprint: 'm' }),
    })
  const response = await patiently(check)
  return verdictV2.parse(await response.json()).code
}

test.each(Object.entries(CHANGES))('%s happens as a whole or not at all', { timeout: 300_000 }, async (_name, send) => {
  const reference = await createWorld()
  const before = await stateOf(reference)
  expect((await send(reference)).status).toBeLessThan(300)
  const after = await stateOf(reference)
  expect(await verdictOf(reference)).toBe('BLACKLISTED')
  expect(after).not.toEqual(before)
  const outcomes = new Set<string>()
  for (const when of ['before', 'after'] as const)
    for (let n = 1; n <= MAX_CALLS; n++) {
      const world = await createWorld()
      proxy.arm(n, when, CALLS)
      const { status } = await send(world)
      const hasBroken = proxy.disarm()
      await ended()
      const state = await stateOf(world)
      const isDone = status < 300 || JSON.stringify(state) === JSON.stringify(after)
      expect([when, n, state]).toEqual([when, n, isDone ? after : before])
      expect([when, n, await verdictOf(world)]).toEqual([when, n, isDone ? 'BLACKLISTED' : 'VALID'])
      outcomes.add(`${status < 300 ? 'success' : status} ${isDone ? 'done' : 'not done'}`)
      if (!hasBroken) break
    }
  // A commit whose response is lost is done without a successful response.
  expect(outcomes).toEqual(new Set(['503 not done', '503 done', 'success done']))
})

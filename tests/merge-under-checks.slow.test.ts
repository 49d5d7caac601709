/**
 * Tests merges of customers while their licenses are checked. A blacklist of the merged customer applies without
 * interruption, because it moves to the remaining customer together with the licenses (docs/api.md#m10).
 */

import { Agent } from 'node:http'

import { createTestDatabase, insertLicense, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import {
  endChildren,
  OPERATOR_TOKEN,
  type Service,
  startManagement,
  startValidator,
  untilReady,
} from './faults/support/children.ts'
import { type Reply, send } from './faults/support/client.ts'

const LICENSES = 30
const ROUNDS = 12
const created = z.object({ id: z.string() })
const listed = z.object({ data: z.array(z.object({ id: z.string(), value: z.string() })) })
const secrets = z.object({ id: z.string(), managementToken: z.string(), apiKey: z.string() })

let database: TestDatabase
let management: Service
let validators: Service[]
let vendor: z.infer<typeof secrets>
const agent = new Agent({ keepAlive: true, maxSockets: 8 })

beforeAll(async () => {
  database = await createTestDatabase()
  management = await startManagement(database.url, { LOG_LEVEL: 'error' })
  const validator = () => startValidator(database.validatorUrl, { LOG_LEVEL: 'error' })
  validators = await Promise.all([validator(), validator()])
  await untilReady(management, ...validators)
  const body = { name: 'Acme', plan: 'STANDARD' }
  const answer = await send(management.port, '/api/v1/organizations', { body, secret: OPERATOR_TOKEN })
  vendor = secrets.parse(JSON.parse(answer.text))
})

afterAll(async () => {
  agent.destroy()
  await Promise.all([management, ...validators].map((service) => service.stop()))
  await endChildren()
  await database.drop()
})

/** Sends a request of the vendor. Resolves when every validator has applied the change. */
function call(method: string, path: string, body?: object): Promise<Reply> {
  const headers = { prefer: 'wait=10' }
  return send(management.port, `/api/v1/${path}`, { method, body, secret: vendor.managementToken, headers })
}

async function create(path: string, body: object): Promise<string> {
  const answer = await call('POST', path, body)
  expect(answer).toMatchObject({ status: 201 })
  return created.parse(JSON.parse(answer.text)).id
}

const createCustomer = () => create('customers', { email: 'ada@example.com' })
const blacklist = (customerId: string) =>
  create('access-rules', { kind: 'BLACKLIST', type: 'CUSTOMER', value: customerId, scope: 'ORGANIZATION' })

async function check(validator: Service, licenseKey: string): Promise<string> {
  const body = { licenseKey, fingerprint: 'm' }
  return (await send(validator.port, '/api/v1/validate', { body, secret: vendor.apiKey, agent })).code
}

/** Sends checks until `stop` is called, which resolves to the number of responses per code. */
function keepChecking(keys: readonly string[]): { stop: () => Promise<Map<string, number>> } {
  const codes = new Map<string, number>()
  const stopping = new AbortController()
  const loops = validators.map(async (validator) => {
    for (let i = 0; !stopping.signal.aborted; i++) {
      const code = await check(validator, keys[i % keys.length] ?? '')
      codes.set(code, (codes.get(code) ?? 0) + 1)
    }
  })
  return {
    async stop() {
      stopping.abort()
      await Promise.all(loops)
      return codes
    },
  }
}

test('every check during merges is BLACKLISTED, with or without a rule of the remaining customer', async () => {
  const productId = await create('products', { name: 'Studio' })
  let customerId = await createCustomer()
  const organizationId = vendor.id
  const keys: string[] = []
  for (let i = 0; i < LICENSES; i++) {
    const given = { organizationId, productId, customerId, maxMachines: null }
    keys.push((await insertLicense(database.pool, given)).key)
  }
  await blacklist(customerId)

  const checking = keepChecking(keys)
  for (let round = 0; round < ROUNDS; round++) {
    const into = await createCustomer()
    // In every other round both customers have the rule, and the merge keeps one.
    if (round % 2 === 0) await blacklist(into)
    expect(await call('POST', `customers/${customerId}/merge`, { into })).toMatchObject({ status: 200 })
    customerId = into
  }
  const codes = await checking.stop()
  expect([...codes.keys()]).toEqual(['BLACKLISTED'])
  expect(codes.get('BLACKLISTED')).toBeGreaterThan(ROUNDS)

  const { data } = listed.parse(JSON.parse((await call('GET', 'access-rules')).text))
  expect(data.map(({ value }) => value)).toEqual([customerId])
  // Without the rule, the licenses are VALID, so the loop would have received VALID if the blacklist had been missing at any time.
  expect(await call('DELETE', `access-rules/${data[0]?.id ?? ''}`)).toMatchObject({ status: 204 })
  for (const validator of validators) expect(await check(validator, keys[0] ?? '')).toBe('VALID')
})

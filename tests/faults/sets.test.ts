/** Tests the change log and the verdicts while a large set of access rules is replaced (docs/api.md#r9). */

import { Agent } from 'node:http'

import { random } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import {
  endChildren,
  OPERATOR_TOKEN,
  type Service,
  startManagement,
  startValidator,
  until,
  untilReady,
} from './support/children.ts'
import { check, type Reply, send } from './support/client.ts'
import { figure } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

const RULES = 20_000
const DIFFERENT = 100
const createdOrganization = z.object({ id: z.string(), managementToken: z.string(), apiKey: z.string() })
const ruleSet = z.object({ version: z.string(), rules: z.number() })

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let management: Service
let validators: Service[]
let organizationId: string
let token: string
let secret: string
let license: string
const agent = new Agent({ keepAlive: true, maxSockets: 16 })

beforeAll(async () => {
  postgres = await createPostgres()
  pool = openPool(postgres.url)
  validators = await Promise.all([1, 2, 3].map(() => startValidator(postgres.validatorUrl)))
  management = await startManagement(postgres.url)
  await untilReady(...validators, management)
  const call = async <T>(path: string, body: object, bearer: string, schema: z.ZodType<T>): Promise<T> =>
    schema.parse(JSON.parse((await send(management.port, `/api/v1${path}`, { body, secret: bearer })).text))
  const plan = { name: 'Sets', plan: 'STANDARD' }
  const created = await call('/organizations', plan, OPERATOR_TOKEN, createdOrganization)
  ;({ id: organizationId, managementToken: token, apiKey: secret } = created)
  const identified = z.object({ id: z.string() })
  const { id: productId } = await call('/products', { name: 'App' }, token, identified)
  const { id: customerId } = await call('/customers', { email: 'ada@example.com' }, token, identified)
  const body = { productId, customerId, policy: { type: 'PERPETUAL' } }
  license = (await call('/licenses', body, token, z.object({ key: z.string() }))).key
}, 240_000)
afterAll(async () => {
  agent.destroy()
  await endChildren()
  await pool.end()
  await postgres.remove()
})

const addressOf = (n: number): string => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`
const listFrom = (first: number): object[] =>
  Array.from({ length: RULES }, (_, i) => {
    return { kind: 'BLACKLIST', type: 'IP', value: addressOf(first + i), scope: 'ORGANIZATION' }
  })
const put = (body: object): Promise<Reply> =>
  send(management.port, '/api/v1/access-rules/sets/feed', {
    method: 'PUT',
    body,
    secret: token,
    headers: { prefer: 'wait=10' },
    limitMs: 60_000,
  })
const codeAt = async (validator: Service, n: number): Promise<string> =>
  (await check(validator.port, secret, { license, ip: addressOf(n) }, agent)).code
const logged = async (): Promise<number> =>
  (
    await pool.query<{ n: number }>('select count(*)::integer as n from change_log where organization_id = $1', [
      organizationId,
    ])
  ).rows[0]?.n ?? 0

/**
 * Repeatedly checks addresses that rules of both lists match, at all validators at once. Returns a function that stops the
 * checks, and resolves to their number and to the verdicts other than BLACKLISTED.
 */
function watchCommonRules(): () => Promise<{ checks: number; others: string[] }> {
  const source = random(20)
  const seen = { checks: 0, others: new Array<string>() }
  const state = { isOver: false }
  const loops = validators.map(async (validator) => {
    while (!state.isOver) {
      const n = DIFFERENT + source.int(RULES - DIFFERENT)
      const code = await codeAt(validator, n)
      seen.checks++
      if (code !== 'BLACKLISTED') seen.others.push(`${addressOf(n)} ${code}`)
    }
  })
  return async () => {
    state.isOver = true
    await Promise.all(loops)
    return seen
  }
}

test('replacing 20,000 rules logs only the differences, and no check misses a rule that is in both lists', async () => {
  const startedMs = performance.now()
  const first = await put({ rules: listFrom(0) })
  const filledMs = performance.now() - startedMs
  expect([first.status, first.headers['x-applied-by']]).toEqual([200, '3/3'])
  const before = await logged()
  const stop = watchCommonRules()
  const replacingMs = performance.now()
  const second = await put({ rules: listFrom(DIFFERENT) })
  const replacedMs = performance.now() - replacingMs
  expect(JSON.parse(second.text)).toMatchObject({
    created: DIFFERENT,
    removed: DIFFERENT,
    updated: 0,
    unchanged: RULES - DIFFERENT,
  })
  expect(await logged()).toBe(before + 2 * DIFFERENT)
  for (const validator of validators) {
    expect([await codeAt(validator, 0), await codeAt(validator, RULES)]).toEqual(['VALID', 'BLACKLISTED'])
  }
  const { checks, others } = await stop()
  expect(others).toEqual([])
  expect(checks).toBeGreaterThan(20)
  figure(`A set of ${RULES} rules`, {
    'created ms': Math.round(filledMs),
    'replaced ms': Math.round(replacedMs),
    'change log rows': 2 * DIFFERENT,
    'checks meanwhile': checks,
  })
})

test('one of two concurrent replacements of 20,000 rules with the same version returns 412 and changes nothing', async () => {
  const path = '/api/v1/access-rules/sets/feed'
  const read = async () => {
    const { text } = await send(management.port, path, { method: 'GET', secret: token })
    return ruleSet.parse(JSON.parse(text))
  }
  const { version } = await read()
  const firsts = [2 * DIFFERENT, 3 * DIFFERENT]
  const replies = await Promise.all(firsts.map((first) => put({ rules: listFrom(first), ifMatch: version })))
  expect(replies.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 412])
  expect(replies.find(({ status }) => status === 412)?.code).toBe('VERSION_MISMATCH')
  const first = firsts[replies.findIndex(({ status }) => status === 200)] ?? 0
  expect((await read()).rules).toBe(RULES)
  const [validator] = validators
  await until(async () => (await codeAt(validator!, first + RULES - 1)) === 'BLACKLISTED')
  expect([await codeAt(validator!, first), await codeAt(validator!, first - 1)]).toEqual(['BLACKLISTED', 'VALID'])
  expect(await codeAt(validator!, first + RULES)).toBe('VALID')
})

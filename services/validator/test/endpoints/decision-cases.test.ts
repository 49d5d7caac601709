/**
 * Runs the decision cases of the engine over HTTP, on v1 and v2, with their data in a database. The tests compare whole bodies.
 * Management's dry run must return the same code for each case.
 */

import { readdirSync, readFileSync } from 'node:fs'

import { formatNetwork, parseNetwork } from '@keyward/address'
import { CODE_MESSAGES } from '@keyward/contract'
import { CODES } from '@keyward/engine'
import {
  createTestDatabase,
  insertApiKey,
  insertCustomer,
  insertLicense,
  insertMachine,
  insertOrganization,
  insertProduct,
  insertRule,
  type TestDatabase,
} from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import type { RunningValidator } from '../../src/validator.ts'
import { matching, type Reply, send, someNumber, startLoaded, until } from '../harness.ts'

const named = z.object({ name: z.string(), organization: z.string().optional() })
const scenarioSchema = z.object({
  scenario: z.string(),
  clock: z.boolean().optional(),
  world: z.object({
    organizations: z.array(z.string()).default(['vendor']),
    products: z.array(named),
    customers: z.array(named),
    licenses: z.array(
      named.extend({
        key: z.string(),
        product: z.string(),
        customer: z.string(),
        status: z.enum(['active', 'suspended', 'revoked']).default('active'),
        expiresInMs: z.number().optional(),
        isUnstarted: z.boolean().default(false),
        graceDays: z.number().default(0),
        maxMachines: z.number().optional(),
        machines: z.array(z.string()).default([]),
      }),
    ),
    rules: z
      .array(
        named.extend({
          kind: z.enum(['BLACKLIST', 'EXCLUSION', 'RESTRICTION']),
          mode: z.enum(['ENFORCE', 'MONITOR']).default('ENFORCE'),
          type: z.enum(['IP', 'HWID', 'COUNTRY', 'CUSTOMER']),
          value: z.string(),
          scope: z.enum(['LICENSE', 'PRODUCT', 'ORGANIZATION']),
          of: z.string().optional(),
          expiresInMs: z.number().optional(),
          allowSuspendedOrExpired: z.boolean().default(false),
        }),
      )
      .default([]),
  }),
  cases: z.array(
    z.object({
      case: z.string(),
      check: z.object({
        key: z.string(),
        machineId: z.string().optional(),
        ip: z.string().optional(),
        country: z.string().optional(),
        organization: z.string().optional(),
        product: z.string().optional(),
      }),
      code: z.enum(CODES),
      restricted: z.array(z.enum(['IP', 'HWID', 'COUNTRY'])).optional(),
      graceEndsInMs: z.number().optional(),
      slot: z.enum(['claim', 'record', 'start']).optional(),
      used: z.number().optional(),
      max: z.number().optional(),
    }),
  ),
})
type Scenario = z.infer<typeof scenarioSchema>
type Case = Scenario['cases'][number]

const FOLDER = new URL('../../../../packages/engine/test/cases/', import.meta.url)
const scenarios = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.json'))
  .flatMap((file) => z.array(scenarioSchema).parse(JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8'))))
  .filter((scenario) => scenario.clock !== true)

let database: TestDatabase
let validator: RunningValidator
/** The API key of each organization and product, by scenario and name. */
const secrets = new Map<string, string>()
/** The id of each organization and product, by scenario and name. */
const ownerIds = new Map<string, string>()

async function insertWorld({ scenario, world }: Scenario): Promise<void> {
  const { pool } = database
  const ids = new Map<string, string>()
  const first = world.organizations[0] ?? ''
  const idOf = (kind: string, name = ''): string => ids.get(`${kind} ${name}`) ?? ''
  const at = (inMs: number | undefined): Date | null => (inMs === undefined ? null : new Date(Date.now() + inMs))
  for (const name of world.organizations) {
    const organizationId = await insertOrganization(pool)
    ids.set(`organization ${name}`, organizationId)
    ownerIds.set(`${scenario} organization ${name}`, organizationId)
    secrets.set(`${scenario} organization ${name}`, (await insertApiKey(pool, { organizationId })).secret)
  }
  const owner = (row: { organization?: string | undefined }): { organizationId: string } => ({
    organizationId: idOf('organization', row.organization ?? first),
  })
  for (const row of world.products) {
    const productId = await insertProduct(pool, owner(row))
    ids.set(`product ${row.name}`, productId)
    ownerIds.set(`${scenario} product ${row.name}`, productId)
    const bound = await insertApiKey(pool, { ...owner(row), productId })
    secrets.set(`${scenario} product ${row.name}`, bound.secret)
  }
  for (const row of world.customers) ids.set(`customer ${row.name}`, await insertCustomer(pool, owner(row)))
  for (const row of world.licenses) {
    const license = await insertLicense(pool, {
      ...owner(row),
      productId: idOf('product', row.product),
      customerId: idOf('customer', row.customer),
      key: row.key,
      status: row.status,
      maxMachines: row.maxMachines ?? null,
      expiresAt: at(row.expiresInMs),
      durationDays: row.isUnstarted ? 30 : null,
      graceDays: row.graceDays,
    })
    ids.set(`license ${row.name}`, license.id)
    for (const machineId of row.machines) await insertMachine(pool, { licenseId: license.id, machineId })
  }
  for (const row of world.rules) {
    const network = row.type === 'IP' ? parseNetwork(row.value) : null
    const value = row.type === 'CUSTOMER' ? idOf('customer', row.value) : network ? formatNetwork(network) : row.value
    await insertRule(pool, {
      ...owner(row),
      kind: row.kind,
      mode: row.mode,
      type: row.type,
      value,
      ...(row.scope === 'PRODUCT' ? { productId: idOf('product', row.of) } : {}),
      ...(row.scope === 'LICENSE' ? { licenseId: idOf('license', row.of) } : {}),
      expiresAt: at(row.expiresInMs),
      allowSuspendedOrExpired: row.allowSuspendedOrExpired,
    })
  }
}

beforeAll(async () => {
  database = await createTestDatabase()
  for (const scenario of scenarios) await insertWorld(scenario)
  // The address of a check without the configured header is unknown, as the cases without an address require.
  validator = await startLoaded(database.validatorUrl, {
    resolver: { trustedProxies: 'all', clientIpHeader: 'cf-connecting-ip', countryHeader: 'x-country' },
  })
})
afterAll(async () => {
  await validator.close()
  await database.drop()
})

function request(scenario: Scenario, { check }: Case, path: string, body: object): Promise<Reply> {
  const organization = check.organization ?? scenario.world.organizations[0] ?? ''
  const owner = check.product === undefined ? `organization ${organization}` : `product ${check.product}`
  return send(validator.port, path, {
    body,
    secret: secrets.get(`${scenario.scenario} ${owner}`) ?? '',
    headers: {
      ...(check.ip === undefined ? {} : { 'cf-connecting-ip': check.ip }),
      ...(check.country === undefined ? {} : { 'x-country': check.country }),
    },
  })
}

/** Requests a dry run of the case. Returns its verdict. */
async function decide(scenario: Scenario, { check }: Case): Promise<unknown> {
  const { rows } = await database.pool.query<{ secret: string; snapshot: string }>(
    'select secret, pg_current_snapshot()::text as snapshot from internal_keys',
  )
  const organization = check.organization ?? scenario.world.organizations[0] ?? ''
  const { secret = '', snapshot } = rows[0] ?? {}
  const body = {
    organizationId: ownerIds.get(`${scenario.scenario} organization ${organization}`),
    ...(check.product !== undefined && { productId: ownerIds.get(`${scenario.scenario} product ${check.product}`) }),
    licenseKey: check.key,
    machineId: check.machineId === undefined || check.machineId === '' ? null : check.machineId,
    ip: check.ip ?? null,
    country: check.country?.toUpperCase() ?? null,
    snapshot,
  }
  return (await send(validator.adminPort, '/decide', { body, secret })).body
}

/** Releases the slot that a case took, so that the next case finds the data of the scenario unchanged. */
async function releaseSlot(scenario: Scenario, given: Case): Promise<void> {
  const body = { licenseKey: given.check.key, fingerprint: given.check.machineId }
  if (given.slot !== 'claim' || given.code !== 'VALID') return
  await until(async () => (await request(scenario, given, '/api/v1/deactivate', body)).text.includes('true'))
}

test('finds more than 50 decision cases of the engine', () => {
  expect(scenarios.flatMap(({ cases }) => cases).length).toBeGreaterThan(50)
})

const someTime = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

/** Returns the expected response body of a case. */
function expectedBody(
  scenario: Scenario,
  { check, code, slot, used, max, graceEndsInMs }: Case,
  api: 'v1' | 'v2',
): object {
  const organizationOf = (row: { organization?: string | undefined }): string | undefined =>
    row.organization ?? scenario.world.organizations[0]
  const license = scenario.world.licenses.find(
    (row) => row.key === check.key && organizationOf(row) === organizationOf(check),
  )
  const startsTerm = license?.isUnstarted === true && slot !== undefined
  const expiresAt = license?.expiresInMs === undefined && !startsTerm ? null : someTime
  const grace = graceEndsInMs === undefined ? {} : { graceEndsAt: someTime }
  const message = CODE_MESSAGES[code]
  if (code === 'VALID')
    return api === 'v1'
      ? { valid: true, code, expiresAt, ...grace }
      : { valid: true, status: 200, message, code, expiresAt, ...grace }
  if (api === 'v2') return { valid: false, status: 400, message, code }
  const machines = { used: used ?? someNumber, max: max ?? someNumber }
  return { valid: false, code, detail: message, ...(code === 'TOO_MANY_MACHINES' ? { machines } : {}) }
}

test.each(scenarios.map((scenario) => ({ name: scenario.scenario, scenario })))('$name', async ({ scenario }) => {
  for (const given of scenario.cases) {
    const { key, machineId } = given.check
    const restricted = given.restricted === undefined ? null : { types: given.restricted }
    const dryRun = { code: given.code, needsSlot: given.slot === 'claim', restricted }
    expect(await decide(scenario, given), given.case).toMatchObject(dryRun)
    const v2 = await request(scenario, given, '/api/v2/license/validate', { license: key, hwid: machineId })
    const status = given.code === 'VALID' ? 200 : 400
    expect([v2.status, v2.body], given.case).toEqual([status, expectedBody(scenario, given, 'v2')])
    await releaseSlot(scenario, given)
    for (const path of ['/api/v1/validate', '/api/v1/activate']) {
      const v1 = await request(scenario, given, path, { licenseKey: key, fingerprint: machineId })
      expect([v1.status, v1.body], given.case).toEqual([200, expectedBody(scenario, given, 'v1')])
      await releaseSlot(scenario, given)
    }
  }
})

/**
 * Tests that no request fails while the schema of a database with rows is upgraded from the previous version. The short form sends
 * statements of the services. The long form runs the services themselves from the checkout that KEYWARD_VERSION_BEFORE names, migrates,
 * and then replaces them one by one.
 */

import { rm } from 'node:fs/promises'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

import { sqlState } from '@keyward/database'
import { migrate } from '@keyward/database/migrate'
import { copyPreviousSchema, insertApiKey, insertOrganization } from '@keyward/testkit'
import { afterEach, expect, test } from 'vitest'

import { endChildren, type Service, startManagement, startValidator, until, untilReady } from './support/children.ts'
import { check, send } from './support/client.ts'
import { fillEarlierSchema, type Rows } from './support/earlier-schema.ts'
import { byLength, figure, quantiles } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

const CLAIM_LIMIT_MS = 1_500
const BEFORE = process.env['KEYWARD_VERSION_BEFORE']
const LICENSES = Number(process.env['KEYWARD_LICENSES'] ?? byLength(5_000, 200_000))

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let rows: Rows
let secret: string
let token: string

async function prepare(schema: URL): Promise<void> {
  postgres = await createPostgres({ shared_buffers: '256MB' }, undefined, (url) => migrate(url, schema))
  pool = openPool(postgres.url, 10)
  const organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
  const permissions = ['licenses.read', 'licenses.write', 'customers.read', 'customers.write', 'audit.read']
  token = (await insertApiKey(pool, { organizationId, kind: 'MANAGEMENT_TOKEN', permissions })).secret
  rows = await fillEarlierSchema(pool, organizationId, LICENSES)
}
afterEach(async () => {
  await endChildren()
  await pool.end()
  await postgres.remove()
})

interface Load {
  failed: string[]
  tookMs: Record<string, number[]>
  stop: () => Promise<void>
}

/** Repeats every request in a separate loop. Each function rejects when its request fails. */
function repeat(requests: Record<string, (turn: number) => Promise<unknown>>): Load {
  const failed: string[] = []
  const tookMs: Record<string, number[]> = {}
  const state = { isOver: false }
  const loops = Object.entries(requests).map(async ([name, request]) => {
    const times = (tookMs[name] = new Array<number>())
    for (let turn = 0; !state.isOver; turn++) {
      const startedMs = performance.now()
      await request(turn).catch((error: unknown) => failed.push(`${name}: ${String(error)}`))
      times.push(performance.now() - startedMs)
      await sleep(5)
    }
  })
  const stop = async (): Promise<void> => {
    state.isOver = true
    await Promise.all(loops)
  }
  return { failed, tookMs, stop }
}

function report(what: string, { tookMs }: Load): void {
  for (const [name, times] of Object.entries(tookMs)) {
    const { p50, p99, most } = quantiles(times)
    figure(`${what}, ${name}`, { requests: times.length, 'p50 ms': p50, 'p99 ms': p99, 'longest ms': most })
  }
}

/** Returns statements of the services: claims, releases, and changes by a vendor. */
function earlierStatements(): Record<string, (turn: number) => Promise<unknown>> {
  const { organizationId, productId, customerId } = rows
  const claim = async (turn: number): Promise<void> => {
    const endMs = performance.now() + CLAIM_LIMIT_MS
    for (;;) {
      try {
        const found = await pool.query<{ outcome: string }>(
          `select c.outcome from (select id from licenses where organization_id = $1 and key = $2) l,
             claim_slots(array[l.id], array[convert_to($3, 'UTF8')], array[null], true, '{}') c`,
          [organizationId, `KEY-${(turn % LICENSES) + 1}`, `new ${turn}`],
        )
        expect(['granted', 'known', 'limit']).toContain(found.rows[0]?.outcome)
        return
      } catch (error) {
        // Validators also retry a claim that fails because of a lock, for the same time.
        if (sqlState(error) !== '55P03' || performance.now() > endMs) throw error
      }
    }
  }
  const release = (turn: number) =>
    pool.query(
      `select r.outcome from (select id from licenses where organization_id = $1 and key = $2) l,
         release_slots(array[l.id], array[convert_to('machine of KEY-' || $3, 'UTF8')]) r`,
      [organizationId, `KEY-${LICENSES - turn}`, LICENSES - turn],
    )
  const license = (turn: number) =>
    pool.query(
      `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
       values (new_id(), $1, $2, $3, $4, 'PERPETUAL', 5)`,
      [organizationId, productId, customerId, `NEW-${turn}`],
    )
  const change = (turn: number) =>
    pool.query(`update licenses set max_machines = 6 where organization_id = $1 and key = $2`, [
      organizationId,
      `KEY-${turn + 1}`,
    ])
  const rule = (turn: number) =>
    pool.query(
      `insert into access_rules (id, organization_id, kind, type, value, scope, created_by)
       values (new_id(), $1, 'BLACKLIST', 'HWID', convert_to($2, 'UTF8'), 'ORGANIZATION', '{"type":"OPERATOR"}')`,
      [organizationId, `rule ${turn}`],
    )
  const list = () =>
    pool.query(
      `select l.id, s.used from licenses l join license_slots s on s.license_id = l.id
       where organization_id = $1 order by l.id desc limit 50`,
      [organizationId],
    )
  return { claim, release, license, change, rule, list }
}

interface Fleet {
  validators: Service[]
  management: Service
}

async function startFleet(root?: string): Promise<Fleet> {
  const [first, second, management] = await Promise.all([
    startValidator(postgres.validatorUrl, {}, [], [], root),
    startValidator(postgres.validatorUrl, {}, [], [], root),
    startManagement(postgres.url, {}, root),
  ])
  await untilReady(first, second, management)
  return { validators: [first, second], management }
}

/** Returns checks and requests of a vendor, which are sent to the services that run at that moment. */
function vendorAndApps(fleet: Fleet, agent: Agent): Record<string, (turn: number) => Promise<unknown>> {
  const ask = async (turn: number, license: string, fingerprint: string): Promise<void> => {
    const validator = fleet.validators[turn % fleet.validators.length]!
    const reply = await check(validator.port, secret, { license, fingerprint }, agent)
    if (reply.code !== 'VALID') throw new Error(`${reply.status} ${reply.code} after ${Math.round(reply.tookMs)} ms`)
  }
  const call = async (method: string, path: string, body?: object): Promise<string> => {
    const given = { method, body, secret: token, agent }
    const reply = await send(fleet.management.port, `/api/v1${path}`, given)
    if (reply.status < 200 || reply.status > 299) throw new Error(`${method} ${path} ${reply.status} ${reply.text}`)
    return reply.text
  }
  const { productId, customerId } = rows
  const policy = { type: 'PERPETUAL', maxMachines: 5 }
  const rule = { kind: 'BLACKLIST', type: 'HWID', scope: 'ORGANIZATION' }
  const key = (turn: number): string => `KEY-${(turn % LICENSES) + 1}`
  return {
    'known machine': (turn) => ask(turn, key(turn), `machine of ${key(turn)}`),
    'new machine': (turn) => ask(turn, key(turn), 'new'),
    'create license': () => call('POST', '/licenses', { productId, customerId, policy }),
    'add rule': (turn) => call('POST', '/access-rules', { ...rule, value: `rule ${turn}` }),
    'add customer': (turn) => call('POST', '/customers', { email: `new${turn}@example.com` }),
    'list licenses': () => call('GET', '/licenses?limit=20'),
    'audit log': () => call('GET', '/audit-log?limit=20'),
  }
}

/** Asserts that validators decide checks with the rows that the earlier version stored, and that management finds and returns them. */
async function expectUpgraded({ validators, management }: Fleet): Promise<void> {
  for (const { port } of validators) {
    const ask = async (fingerprint: string) => (await check(port, secret, { license: 'KEY-7', fingerprint })).code
    await until(async () => (await ask('machine of KEY-7')) === 'VALID')
    expect(await ask('stolen 7')).toBe('BLACKLISTED')
  }
  const found = await send(management.port, `/api/v1/machines?machineId=machine%20of%20KEY-7`, {
    method: 'GET',
    secret: token,
  })
  expect([found.status, found.text]).toEqual([200, expect.stringContaining('"hostname":"host of KEY-7"')])
  const { rows: missing } = await pool.query('select from machines where organization_id is null limit 1')
  expect(missing).toEqual([])
}

test('completes statements during the migration of the previous schema, and starts services of this version afterwards', async (context) => {
  const previous = copyPreviousSchema()
  if (previous === undefined) {
    context.skip('git has no previous version')
    return
  }
  await prepare(previous)
  await rm(previous, { recursive: true })
  const load = repeat(earlierStatements())
  await sleep(byLength(200, 5_000))
  const startedMs = performance.now()
  await migrate(postgres.url)
  const tookMs = Math.round(performance.now() - startedMs)
  await sleep(byLength(200, 5_000))
  await load.stop()
  expect(load.failed.slice(0, 5)).toEqual([])
  figure(`Migrating ${LICENSES} licenses, machines, customers and rules`, { ms: tookMs })
  report('statements during the migration', load)
  await expectUpgraded(await startFleet())
})

test.skipIf(BEFORE === undefined)(
  'no request fails during the migration and while services of the earlier version are replaced (needs KEYWARD_VERSION_BEFORE)',
  async () => {
    await prepare(pathToFileURL(join(BEFORE ?? '', 'packages/database/')))
    const fleet = await startFleet(BEFORE)
    const agent = new Agent({ keepAlive: true })
    const load = repeat(vendorAndApps(fleet, agent))
    await sleep(3_000)
    const startedMs = performance.now()
    await migrate(postgres.url)
    const tookMs = Math.round(performance.now() - startedMs)
    await sleep(3_000)
    for (let i = 0; i < fleet.validators.length; i++) {
      const next = await startValidator(postgres.validatorUrl)
      await untilReady(next)
      const former = fleet.validators[i]!
      fleet.validators[i] = next
      await former.stop()
    }
    const former = fleet.management
    fleet.management = await startManagement(postgres.url)
    await untilReady(fleet.management)
    await former.stop()
    await sleep(3_000)
    await load.stop()
    agent.destroy()
    figure(`Upgrading the services on ${LICENSES} licenses`, { 'migration ms': tookMs, failed: load.failed.length })
    report('requests during the upgrade', load)
    expect(load.failed.slice(0, 5)).toEqual([])
    await expectUpgraded(fleet)
  },
)

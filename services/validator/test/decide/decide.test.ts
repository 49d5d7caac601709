/** Tests that the dry run for management authenticates its caller, reflects earlier commits and records nothing. */

import { insertMachine, insertRule, startProxy } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { adminUrl } from '../../src/config.ts'
import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, type World } from '../harness.ts'

let world: World
let validator: RunningValidator

beforeAll(async () => {
  world = await createWorld()
  validator = await startLoaded(world.database.validatorUrl)
})
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

async function current(): Promise<{ secret: string; snapshot: string }> {
  const { rows } = await world.database.pool.query<{ secret: string; snapshot: string }>(
    'select secret, pg_current_snapshot()::text as snapshot from internal_keys',
  )
  return rows[0] ?? { secret: '', snapshot: '' }
}

async function decide(check: object, sent: { secret?: string; port?: number } = {}): Promise<Reply> {
  const { secret, snapshot } = await current()
  const absent = { machineId: null, ip: null, country: null }
  const body = { organizationId: world.organizationId, ...absent, snapshot, ...check }
  return send(sent.port ?? validator.adminPort, '/decide', { secret: sent.secret ?? secret, body })
}

test('reflects changes that were committed before the request, even without a notification', async () => {
  const { pool } = world.database
  for (let round = 0; round < 10; round++) {
    const { id, key } = await world.license({ maxMachines: 1 })
    expect((await decide({ licenseKey: key, machineId: 'm1' })).body).toMatchObject({ code: 'VALID', needsSlot: true })
    await insertMachine(pool, { licenseId: id, machineId: 'm1' })
    expect((await decide({ licenseKey: key, machineId: 'm1' })).body).toMatchObject({ code: 'VALID', needsSlot: false })
    expect((await decide({ licenseKey: key, machineId: 'm2' })).body).toMatchObject({ code: 'TOO_MANY_MACHINES' })
    const rule = await insertRule(pool, {
      organizationId: world.organizationId,
      licenseId: id,
      value: '203.0.113.0/24',
    })
    expect((await decide({ licenseKey: key, ip: '203.0.113.7' })).body).toEqual({
      code: 'BLACKLISTED',
      needsSlot: false,
      holdsLease: false,
      decidedBy: rule,
      matched: [rule],
      monitored: [],
      restricted: null,
    })
    await pool.query('delete from licenses where id = $1', [id])
    expect((await decide({ licenseKey: key })).body).toMatchObject({ code: 'NOT_FOUND', matched: [] })
  }
})

test('returns the verdicts of a batch in the order of its checks, and null for an invalid check', async () => {
  const { key } = await world.license({ maxMachines: 1 })
  const { secret, snapshot } = await current()
  const absent = { machineId: null, ip: null, country: null }
  const decideAll = (checks: object[]) => {
    const body = { organizationId: world.organizationId, snapshot, checks }
    return send(validator.adminPort, '/decide-batch', { secret, body })
  }
  const known = { ...absent, licenseKey: key, machineId: 'm1' }
  const unknown = { ...absent, licenseKey: 'no such key' }
  const invalid = { ...known, ip: '203.0.113.256' }
  const reply = await decideAll([unknown, invalid, known])
  expect(reply.body).toMatchObject({ verdicts: [{ code: 'NOT_FOUND' }, null, { code: 'VALID' }] })
  expect((await decideAll(Array.from({ length: 32 }, () => known))).status).toBe(200)
  for (const checks of [[], Array.from({ length: 33 }, () => known), [{ ...known, other: 1 }]])
    expect((await decideAll(checks)).status).toBe(422)
})

test('takes no slot and records nothing in a dry run', async () => {
  const { id, key } = await world.license({ maxMachines: 1 })
  for (let i = 0; i < 5; i++) await decide({ licenseKey: key, machineId: `m${i}` })
  const { rows } = await world.database.pool.query('select used from license_slots where license_id = $1', [id])
  expect(rows).toEqual([{ used: 0 }])
  const metrics = await send(validator.adminPort, '/metrics', { method: 'GET' })
  expect(metrics.text).toMatch(/^keyward_checks_total\{api="v1",code="VALID"\} 0$/m)
  expect(metrics.text).toMatch(/^keyward_records_waiting 0$/m)
})

test('accepts only the current key of the installation, even right after the key was replaced', async () => {
  const { pool } = world.database
  const { secret: first } = await current()
  const check = { licenseKey: 'k' }
  for (const secret of ['', 'short', 'x'.repeat(64), world.secret])
    expect((await decide(check, { secret })).status).toBe(401)
  expect((await send(validator.adminPort, '/decide', { body: {} })).status).toBe(401)
  expect((await decide(check)).status).toBe(200)
  await pool.query(`update internal_keys set secret = default where purpose = 'decide'`)
  expect((await current()).secret).not.toBe(first)
  await expect.poll(async () => (await decide(check)).status, { timeout: 5_000 }).toBe(200)
  expect((await decide(check, { secret: first })).status).toBe(401)
})

test('returns 422 with a constant text for an invalid body', async () => {
  const wrong = [
    { licenseKey: '' },
    { licenseKey: 'k', ip: '203.0.113.256' },
    { licenseKey: 'k', country: 'de' },
    { licenseKey: 'k', machineId: 'm'.repeat(513) },
    { licenseKey: 'k', snapshot: '1' },
    { licenseKey: 'k', other: 1 },
  ]
  for (const check of wrong) {
    const reply = await decide(check)
    expect([reply.status, reply.body]).toEqual([
      422,
      { error: 'The body is invalid, or management and this validator have different versions.' },
    ])
  }
  expect((await decide({ licenseKey: 'k'.repeat(129) })).body).toMatchObject({ code: 'NOT_FOUND' })
})

test('returns 503 when the index does not reach the snapshot in time', { timeout: 20_000 }, async () => {
  const { hostname, port } = new URL(world.database.validatorUrl)
  const proxy = await startProxy(Number(port), hostname)
  const url = new URL(world.database.validatorUrl)
  url.host = `127.0.0.1:${proxy.port}`
  const cutOff = await startLoaded(url.href)
  const check = { licenseKey: 'k' }
  expect((await decide(check, { port: cutOff.adminPort })).status).toBe(200)
  proxy.swallow()
  await world.license() // the snapshot contains a change that the index lacks
  const startedMs = performance.now()
  expect((await decide(check, { port: cutOff.adminPort })).status).toBe(503)
  expect(performance.now() - startedMs).toBeLessThan(5_000)
  proxy.heal()
  await expect.poll(async () => (await decide(check, { port: cutOff.adminPort })).status, { timeout: 9_000 }).toBe(200)
  await cutOff.close()
  await proxy.close()
})

test('derives the admin URL for management from the host on which the admin server listens', () => {
  const urlOf = (adminHost: string, given: string | null = null) => adminUrl({ adminHost, adminUrl: given }, 9080)
  expect(urlOf('127.0.0.1')).toBe('http://127.0.0.1:9080')
  expect(urlOf('::1')).toBe('http://[::1]:9080')
  expect(urlOf('0.0.0.0')).toMatch(/^http:\/\/[^/:0]+[^/:]*:9080$/)
  expect(urlOf('0.0.0.0', 'http://10.1.2.3:9080')).toBe('http://10.1.2.3:9080')
})

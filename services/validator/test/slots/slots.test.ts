import { Agent } from 'node:http'

import { insertMachine, insertRule } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
const agent = new Agent({ keepAlive: true, maxSockets: 50 })
let world: World
let validators: RunningValidator[]

beforeAll(async () => {
  world = await createWorld()
  validators = await Promise.all([
    startLoaded(world.database.validatorUrl),
    startLoaded(world.database.validatorUrl, { workers: 2 }),
  ])
})
afterAll(async () => {
  agent.destroy()
  await Promise.all(validators.map((validator) => validator.close()))
  await world.database.drop()
})

const portOf = (i: number): number => validators[i % validators.length]?.port ?? 0
const check = (i: number, license: string, fingerprint: string): Promise<Reply> =>
  send(portOf(i), V2, { body: { license, fingerprint }, secret: world.secret, agent })
const deactivate = (i: number, licenseKey: string, fingerprint: string): Promise<Reply> =>
  send(portOf(i), '/api/v1/deactivate', { body: { licenseKey, fingerprint }, secret: world.secret, agent })
const codeOf = (reply: Reply): string => /"code":"(\w+)"/.exec(reply.text)?.[1] ?? reply.text

/** Waits until both validators have loaded the license. */
async function loaded(license: string): Promise<void> {
  for (let i = 0; i < validators.length; i++)
    await until(async () =>
      (await send(portOf(i), V2, { body: { license }, secret: world.secret, agent })).text.includes('FINGERPRINT'),
    )
}

async function rowsOf(licenseId: string): Promise<{ machines: number; used: number }> {
  const { rows } = await world.database.pool.query<{ machines: number; used: number }>(
    `select (select count(*)::int from machines where license_id = $1) as machines,
       (select used from license_slots where license_id = $1) as used`,
    [licenseId],
  )
  return rows[0] ?? { machines: -1, used: -1 }
}

test('grants exactly 5 slots to 200 machines that race through two validators', async () => {
  for (let round = 0; round < 10; round++) {
    const license = await world.license({ maxMachines: 5 })
    await loaded(license.key)
    const replies = await Promise.all(Array.from({ length: 200 }, (_, i) => check(i, license.key, `machine ${i}`)))
    const codes = replies.map(codeOf)
    expect(codes.filter((code) => code === 'VALID')).toHaveLength(5)
    expect(codes.filter((code) => code === 'TOO_MANY_MACHINES')).toHaveLength(195)
    expect(await rowsOf(license.id)).toEqual({ machines: 5, used: 5 })
    const winner = codes.indexOf('VALID')
    expect(codeOf(await check(winner, license.key, `machine ${winner}`))).toBe('VALID')
  }
})

test('grants one slot to many concurrent checks of one machine', async () => {
  const license = await world.license({ maxMachines: 5 })
  await loaded(license.key)
  const replies = await Promise.all(Array.from({ length: 50 }, (_, i) => check(i, license.key, 'the one')))
  expect(new Set(replies.map(codeOf))).toEqual(new Set(['VALID']))
  expect(await rowsOf(license.id)).toEqual({ machines: 1, used: 1 })
})

test('counts the monitored rules that a new machine matches, even when other checks match rules meanwhile', async () => {
  const rule = { organizationId: world.organizationId, type: 'HWID' } as const
  const watched = await insertRule(world.database.pool, { ...rule, value: 'watched', mode: 'MONITOR' })
  const blocked = await insertRule(world.database.pool, { ...rule, value: 'blocked' })
  const licenses = await Promise.all(Array.from({ length: 20 }, () => world.license({ maxMachines: 5 })))
  for (const { key } of licenses) await loaded(key)
  await until(async () => codeOf(await check(0, licenses[0]?.key ?? '', 'blocked')) === 'BLACKLISTED')
  const count = async (ruleId: string): Promise<number> => {
    const found = 'select match_count::int as n from access_rule_counters where rule_id = $1'
    const { rows } = await world.database.pool.query<{ n: number }>(found, [ruleId])
    return rows[0]?.n ?? -1
  }
  const sent: Promise<Reply>[] = []
  for (const { key } of licenses) {
    sent.push(check(0, key, 'watched'))
    for (let i = 0; i < 10; i++) sent.push(check(0, key, 'blocked'))
  }
  const codes = (await Promise.all(sent)).map(codeOf)
  expect(codes.filter((code) => code === 'VALID')).toHaveLength(20)
  await until(async () => (await count(blocked)) >= 201)
  await until(async () => (await count(watched)) >= 20)
  expect(await count(watched)).toBe(20)
})

test('decides checks of known machines without Postgres', async () => {
  const license = await world.license({ maxMachines: 5 })
  await loaded(license.key)
  for (let i = 0; i < 2; i++) expect(codeOf(await check(i, license.key, 'known'))).toBe('VALID')
  const transactions = async (): Promise<number> => {
    await new Promise((resolve) => setTimeout(resolve, 1_100)) // Postgres publishes statistics once a second
    const { rows } = await world.database.pool.query<{ n: string }>(
      'select xact_commit + xact_rollback as n from pg_stat_database where datname = current_database()',
    )
    return Number(rows[0]?.n)
  }
  const before = await transactions()
  const startedMs = performance.now()
  for (let round = 0; round < 20; round++)
    await Promise.all(Array.from({ length: 100 }, (_, i) => check(i, license.key, 'known')))
  const seconds = (performance.now() - startedMs) / 1_000 + 3
  // Without any check, each of the two validators reads the log, writes its heartbeat and flushes about once a second. Postgres
  // may count the last writes of the previous test late. One transaction per check would be 2,000 transactions.
  expect((await transactions()) - before).toBeLessThan(40 * seconds + 40)
})

test('frees a released slot at once on the same validator, and soon on other validators', async () => {
  const license = await world.license({ maxMachines: 1 })
  await loaded(license.key)
  expect(codeOf(await check(0, license.key, 'a'))).toBe('VALID')
  expect(codeOf(await check(0, license.key, 'b'))).toBe('TOO_MANY_MACHINES')
  expect((await deactivate(0, license.key, 'a')).text).toBe('{"deactivated":true}')
  expect(codeOf(await check(0, license.key, 'b'))).toBe('VALID')
  expect((await deactivate(1, license.key, 'b')).text).toBe('{"deactivated":true}')
  await until(async () => codeOf(await check(0, license.key, 'c')) === 'VALID')
  await until(async () => codeOf(await check(1, license.key, 'b')) === 'TOO_MANY_MACHINES')
})

test('deactivates a machine of a license in any status, and returns false for unknown keys and machines', async () => {
  const license = await world.license({ maxMachines: 2, status: 'revoked' })
  await insertMachine(world.database.pool, { licenseId: license.id, machineId: 'm' })
  await until(async () => codeOf(await check(0, license.key, 'm')) === 'REVOKED')
  expect((await deactivate(0, license.key, 'other')).text).toBe('{"deactivated":false}')
  expect((await deactivate(0, 'no such key', 'm')).text).toBe('{"deactivated":false}')
  expect((await deactivate(0, 'k'.repeat(500), 'm')).text).toBe('{"deactivated":false}')
  expect((await deactivate(0, license.key, 'm')).text).toBe('{"deactivated":true}')
  expect((await deactivate(0, license.key, 'm')).text).toBe('{"deactivated":false}')
  const path = '/api/v1/deactivate'
  for (const body of [
    { licenseKey: license.key },
    { licenseKey: license.key, fingerprint: '' },
    { fingerprint: 'm' },
    7,
  ])
    expect((await send(portOf(0), path, { body, secret: world.secret })).status).toBe(422)
  expect((await send(portOf(0), path, { body: {} })).status).toBe(401)
})

test('deactivates a machine that is not recorded yet', async () => {
  const license = await world.license({ maxMachines: null })
  for (let i = 0; i < 2; i++) {
    const path = { body: { license: license.key }, secret: world.secret }
    await until(async () => (await send(portOf(i), V2, path)).status === 200)
    const machines = Array.from({ length: 6 }, (_, n) => `machine ${i} ${n}`)
    for (const name of machines) {
      expect(codeOf(await check(i, license.key, name))).toBe('VALID')
      expect((await deactivate(i, license.key, name)).text).toBe('{"deactivated":true}')
    }
    expect(await rowsOf(license.id)).toEqual({ machines: 0, used: 0 })
    const last = machines.at(-1) ?? ''
    const written = `select from activity where license_id = $1 and type = 'CHECK' and machine_id = $2`
    await until(async () => (await world.database.pool.query(written, [license.id, Buffer.from(last)])).rowCount === 1)
    expect((await rowsOf(license.id)).machines).toBe(0)
  }
})

test('applies raised and lowered machine limits', async () => {
  const { pool } = world.database
  const license = await world.license({ maxMachines: 1 })
  await loaded(license.key)
  const limit = (max: number | null): Promise<unknown> =>
    pool.query('update licenses set max_machines = $2 where id = $1', [license.id, max])
  expect(codeOf(await check(0, license.key, 'a'))).toBe('VALID')
  expect(codeOf(await check(0, license.key, 'b'))).toBe('TOO_MANY_MACHINES')
  await limit(2)
  for (let i = 0; i < 2; i++) await until(async () => codeOf(await check(i, license.key, 'b')) === 'VALID')
  await limit(1)
  const v1 = { body: { licenseKey: license.key, fingerprint: 'c' }, secret: world.secret }
  await until(async () => (await send(portOf(1), '/api/v1/validate', v1)).text.includes('{"used":2,"max":1}'))
  for (const machine of ['a', 'b']) expect(codeOf(await check(0, license.key, machine))).toBe('VALID')
  await limit(null)
  await until(async () => codeOf(await check(0, license.key, 'c')) === 'VALID')
})

test('records the machines of a license without a limit, up to 10,000', async () => {
  const { pool } = world.database
  const license = await world.license({ maxMachines: null })
  for (let i = 0; i < 2; i++) await until(async () => codeOf(await check(i, license.key, 'm 0')) === 'VALID')
  for (let i = 1; i < 20; i++) expect(codeOf(await check(i, license.key, `m ${i}`))).toBe('VALID')
  const named = { licenseKey: license.key, fingerprint: 'named', hostname: 'build-7' }
  await send(portOf(0), '/api/v1/validate', { body: named, secret: world.secret })
  await until(async () => (await rowsOf(license.id)).machines === 21)
  const { rows } = await pool.query<{ hostname: string }>(
    `select hostname from machines where license_id = $1 and machine_id = 'named'`,
    [license.id],
  )
  expect(rows).toEqual([{ hostname: 'build-7' }])

  await pool.query(
    `insert into machines (id, license_id, machine_id)
     select gen_random_uuid(), $1, convert_to('filler ' || i, 'UTF8') from generate_series(1, 9979) i`,
    [license.id],
  )
  for (let i = 0; i < 20; i++) expect(codeOf(await check(i, license.key, `late ${i}`))).toBe('VALID')
  const unrecorded = async (): Promise<number> => {
    const found = await pool.query<{ n: number }>(
      'select unrecorded::int as n from license_slots where license_id = $1',
      [license.id],
    )
    return found.rows[0]?.n ?? 0
  }
  await until(async () => (await unrecorded()) > 0)
  expect(await rowsOf(license.id)).toEqual({ machines: 10_000, used: 10_000 })
})

test('decides checks of other licenses while a license is locked', async () => {
  const held = await world.license({ maxMachines: 5 })
  const other = await world.license({ maxMachines: 5 })
  await loaded(held.key)
  await loaded(other.key)
  expect(codeOf(await check(0, held.key, 'known'))).toBe('VALID')
  const client = await world.database.pool.connect()
  try {
    await client.query('begin')
    await client.query('select from license_slots where license_id = $1 for update', [held.id])
    const waiting = check(0, held.key, 'new')
    expect(codeOf(await check(0, other.key, 'new'))).toBe('VALID')
    expect(codeOf(await check(0, held.key, 'known'))).toBe('VALID')
    const reply = await waiting // while the row is still locked
    expect([reply.status, codeOf(reply)]).toEqual([503, 'UNAVAILABLE'])
  } finally {
    await client.query('rollback')
    client.release()
  }
  expect(codeOf(await check(0, held.key, 'new'))).toBe('VALID')
})

test('rechecks a full license at a bounded rate, and finds a slot that was released with SQL', async () => {
  const { pool } = world.database
  const license = await world.license({ maxMachines: 1 })
  await loaded(license.key)
  expect(codeOf(await check(0, license.key, 'a'))).toBe('VALID')
  const metric = async (): Promise<number> => {
    const reply = await send(validators[0]?.adminPort ?? 0, '/metrics', { method: 'GET' })
    return Number(/^keyward_claim_batch_size_sum (\S+)$/m.exec(reply.text)?.[1])
  }
  const before = await metric()
  const startedMs = performance.now()
  for (let round = 0; round < 20; round++) {
    const replies = await Promise.all(Array.from({ length: 50 }, (_, i) => check(0, license.key, `pirate ${i}`)))
    expect(new Set(replies.map(codeOf))).toEqual(new Set(['TOO_MANY_MACHINES']))
  }
  const seconds = (performance.now() - startedMs) / 1_000
  expect((await metric()) - before).toBeLessThan(5 * seconds + 5)
  await pool.query('delete from machines where license_id = $1', [license.id])
  await until(async () => codeOf(await check(0, license.key, 'b')) === 'VALID')
})

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertRule } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
const agent = new Agent({ keepAlive: true, maxSockets: 20 })
let world: World
let validator: RunningValidator

beforeAll(async () => {
  world = await createWorld()
  validator = await startLoaded(world.database.validatorUrl, { workers: 2 })
})
afterAll(async () => {
  agent.destroy()
  await validator.close()
  await world.database.drop()
})

const check = (license: string, fingerprint?: string): Promise<Reply> =>
  send(validator.port, V2, { body: { license, fingerprint }, secret: world.secret, agent })

async function query<T extends Record<string, unknown>>(text: string, values: unknown[] = []): Promise<T[]> {
  return (await world.database.pool.query<T>(text, values)).rows
}

async function activityOf(licenseId: string): Promise<{ code: string; machine: string | null; count: number }[]> {
  return await query(
    `select code, convert_from(machine_id, 'UTF8') as machine, sum(count)::int as count from activity
     where license_id = $1 and type = 'CHECK' group by 1, 2 order by 1, 2`,
    [licenseId],
  )
}

async function countsOf(productId: string): Promise<{ code: string; count: number }[]> {
  return await query(
    'select code, sum(count)::int as count from check_counts where product_id = $1 group by 1 order by 1',
    [productId],
  )
}

test('counts every check once, by code and machine', async () => {
  const license = await world.license({ maxMachines: 2 })
  await until(async () => (await check(license.key)).text.includes('FINGERPRINT'))
  for (const machine of ['a', 'b']) await check(license.key, machine)
  await Promise.all(Array.from({ length: 98 }, () => check(license.key, 'a')))
  await Promise.all(Array.from({ length: 49 }, () => check(license.key, 'b')))
  await Promise.all(Array.from({ length: 30 }, () => check(license.key, 'c')))
  const expected = [
    { code: 'FINGERPRINT_REQUIRED', machine: null, count: 1 },
    { code: 'TOO_MANY_MACHINES', machine: 'c', count: 30 },
    { code: 'VALID', machine: 'a', count: 99 },
    { code: 'VALID', machine: 'b', count: 50 },
  ]
  await until(async () => (await activityOf(license.id)).reduce((sum, { count }) => sum + count, 0) >= 180)
  expect(await activityOf(license.id)).toEqual(expected)
  expect(await countsOf(license.productId)).toEqual([
    { code: 'FINGERPRINT_REQUIRED', count: 1 },
    { code: 'TOO_MANY_MACHINES', count: 30 },
    { code: 'VALID', count: 149 },
  ])
  const alerts = await query('select kind, count::int from alerts where license_id = $1', [license.id])
  expect(alerts).toEqual([{ kind: 'OVERUSE', count: 30 }])
})

test('counts checks with unknown keys for the organization', async () => {
  for (let i = 0; i < 7; i++) await check(`no such key ${i}`, 'm')
  const counted = (): Promise<{ n: number }[]> =>
    query(
      `select coalesce(sum(count), 0)::int as n from check_counts
       where organization_id = $1 and product_id is null and code = 'NOT_FOUND'`,
      [world.organizationId],
    )
  await until(async () => ((await counted())[0]?.n ?? 0) >= 7)
  expect((await counted())[0]?.n).toBeGreaterThanOrEqual(7)
})

test('records only the rule matches of an excluded check, and the full usage of a blacklisted check', async () => {
  // The license is suspended, so that no check is VALID before the rules are applied.
  const license = await world.license({ maxMachines: 5, status: 'suspended' })
  const { pool } = world.database
  const given = { organizationId: world.organizationId, type: 'HWID' as const }
  const lets = { ...given, kind: 'EXCLUSION' as const, allowSuspendedOrExpired: true }
  const exclusion = await insertRule(pool, { ...lets, licenseId: license.id, value: 'vip' })
  const beside = await insertRule(pool, { ...given, productId: license.productId, value: 'vip' })
  const blacklist = await insertRule(pool, { ...given, licenseId: license.id, value: 'bad' })
  // The blacklist was inserted last, so the other rules have been applied when the blacklist rejects a check.
  await until(async () => (await check(license.key, 'bad')).text.includes('BLACKLISTED'))
  await check(license.key, 'vip')
  const countOf = async (id: string): Promise<number> =>
    (
      await query<{ n: number }>(
        'select match_count::int as n from access_rule_counters where rule_id = $1 and (match_count = 0 or last_matched_at is not null)',
        [id],
      )
    )[0]?.n ?? 0
  await until(async () => (await countOf(blacklist)) > 0 && (await countOf(exclusion)) > 0)
  const before = { exclusion: await countOf(exclusion), beside: await countOf(beside), bad: await countOf(blacklist) }
  for (let i = 0; i < 11; i++) await check(license.key, 'vip')
  for (let i = 0; i < 5; i++) await check(license.key, 'bad')
  await until(
    async () => (await countOf(blacklist)) >= before.bad + 5 && (await countOf(exclusion)) >= before.exclusion + 11,
  )
  expect(await countOf(exclusion)).toBe(before.exclusion + 11)
  expect(await countOf(beside)).toBe(before.beside + 11)
  expect(await countOf(blacklist)).toBe(before.bad + 5)
  const activity = await activityOf(license.id)
  expect(activity.filter(({ machine }) => machine === 'vip')).toEqual([])
  expect(activity.map(({ code }) => code)).toContain('BLACKLISTED')
  const counts = await countsOf(license.productId)
  expect(counts.map(({ code }) => code)).not.toContain('VALID')
  expect(await query('select from machines where license_id = $1', [license.id])).toEqual([])
})

test('updates the last use of a machine', async () => {
  const license = await world.license({ maxMachines: 5 })
  await until(async () => (await check(license.key, 'm')).status === 200)
  await query(`update machines set last_seen_at = now() - interval '1 day' where license_id = $1`, [license.id])
  const other = await startLoaded(world.database.validatorUrl)
  await send(other.port, V2, { body: { license: license.key, fingerprint: 'm' }, secret: world.secret })
  await other.close()
  const [row] = await query<{ recent: boolean }>(
    `select last_seen_at > now() - interval '1 minute' as recent from machines where license_id = $1`,
    [license.id],
  )
  expect(row).toEqual({ recent: true })
})

test('writes the usage of the last second when the validator stops', async () => {
  const license = await world.license({ maxMachines: null })
  const other = await startLoaded(world.database.validatorUrl, { workers: 2 })
  const body = { license: license.key }
  for (let i = 0; i < 123; i++) await send(other.port, V2, { body, secret: world.secret, agent })
  await other.close()
  expect(await activityOf(license.id)).toEqual([{ code: 'VALID', machine: null, count: 123 }])
})

test('counts every check once while the connections to Postgres are terminated repeatedly', async () => {
  const license = await world.license({ maxMachines: null })
  await until(async () => (await check(license.key)).status === 200)
  let sent = 1
  for (let round = 0; round < 25; round++) {
    await Promise.all(Array.from({ length: 20 }, () => check(license.key)))
    sent += 20
    await query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'keyward validator records'`,
    )
    await new Promise((resolve) => setTimeout(resolve, 60))
  }
  const total = async (): Promise<number> =>
    (await countsOf(license.productId)).find((row) => row.code === 'VALID')?.count ?? 0
  await until(async () => (await total()) >= sent)
  expect(await total()).toBe(sent)
})

test('stores the hostname that a known machine sends later', async () => {
  const license = await world.license({ maxMachines: 2 })
  await until(async () => (await check(license.key, 'm')).status === 200)
  const body = { licenseKey: license.key, fingerprint: 'm', hostname: 'build-7' }
  await send(validator.port, '/api/v1/activate', { body, secret: world.secret, agent })
  const name = (): Promise<{ hostname: string | null }[]> =>
    query('select hostname from machines where license_id = $1', [license.id])
  await expect.poll(name).toEqual([{ hostname: 'build-7' }])
})

test('writes the last use of an API key whose Authorization header is spelled unusually', async () => {
  const { id, secret } = await insertApiKey(world.database.pool, { organizationId: world.organizationId })
  const headers = { authorization: `bearer   ${secret} ` }
  const license = await world.license({ maxMachines: null })
  const body = { license: license.key }
  await until(async () => (await send(validator.port, V2, { body, headers, agent })).status === 200)
  const lastUse =
    "select last_used_at > now() - interval '1 minute' as recent from credential_uses where credential_id = $1"
  await expect.poll(() => query(lastUse, [id])).toEqual([{ recent: true }])
})

test('writes the usage of a time in which its role lacked the permission', async () => {
  const license = await world.license({ maxMachines: null })
  const other = await startLoaded(world.database.validatorUrl, { usageFlushMs: 20 })
  const permit = (action: string): Promise<unknown> =>
    world.database.pool.query(`do $$ declare written regprocedure; begin
      for written in select oid from pg_proc where proname = 'write_usage' loop
        execute format('${action} keyward_validator', written);
      end loop; end $$`)
  await permit('revoke execute on function %s from')
  for (let i = 0; i < 10; i++)
    await send(other.port, V2, { body: { license: license.key }, secret: world.secret, agent })
  await sleep(500) // more than 20 attempts
  await permit('grant execute on function %s to')
  await other.close()
  expect(await activityOf(license.id)).toEqual([{ code: 'VALID', machine: null, count: 10 }])
})

test('counts every check of a flood, which it reads in several turns of the event loop', async () => {
  const license = await world.license({ maxMachines: 1 })
  await until(async () => (await check(license.key)).text.includes('FINGERPRINT'))
  const checks = Array.from({ length: 100 }, () => ({ license: license.key }))
  const batch = () => send(validator.port, `${V2}/batch`, { body: { checks }, secret: world.secret, agent })
  const replies = await Promise.all(Array.from({ length: 80 }, batch))
  expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 80 }, () => 200))
  const sum = (rows: { count: number }[]): number => rows.reduce((total, { count }) => total + count, 0)
  const known = async () => (await countsOf(license.productId)).filter(({ code }) => code !== 'NOT_FOUND')
  await until(async () => sum(await activityOf(license.id)) >= 8_001 && sum(await known()) >= 8_001)
  expect([await activityOf(license.id), await known()]).toEqual([
    [{ code: 'FINGERPRINT_REQUIRED', machine: null, count: 8_001 }],
    [{ code: 'FINGERPRINT_REQUIRED', count: 8_001 }],
  ])
})

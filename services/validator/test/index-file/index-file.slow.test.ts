import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createSigningKey, delegate, type Proxy, startProxy } from '@keyward/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import type { ValidatorConfig } from '../../src/config.ts'
import type { RunningValidator } from '../../src/validator.ts'
import { askSigned, verify } from '../answers/signed-requests.ts'
import { configFor, createWorld, type Reply, send, startValidator, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
let folder: string
let path: string
let world: World
let proxy: Proxy
let validator: RunningValidator | null = null
let license: Awaited<ReturnType<World['license']>>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keyward-index-file-'))
  path = join(folder, 'deep', 'index')
  world = await createWorld()
  proxy = await startProxy(Number(new URL(world.database.validatorUrl).port))
  license = await world.license({ maxMachines: 2 })
})
afterEach(async () => {
  proxy.heal()
  await stop()
})
afterAll(async () => {
  await proxy.close()
  await world.database.drop()
  await rm(folder, { recursive: true, force: true })
})

/** Returns the URL of the database through the proxy. */
function urlOf(databaseUrl: string): string {
  const url = new URL(databaseUrl)
  url.port = String(proxy.port)
  return url.href
}

async function start(
  given: Partial<ValidatorConfig> = {},
  url = world.database.validatorUrl,
): Promise<RunningValidator> {
  const indexFile = { path, intervalMs: 600_000 }
  validator = await startValidator(configFor(urlOf(url), { indexFile, ...given }), 'small')
  return validator
}

async function stop(): Promise<void> {
  await validator?.close()
  validator = null
}

const check = (fingerprint = 'm', key = license.key): Promise<Reply> =>
  send(validator!.port, V2, { body: { license: key, fingerprint }, secret: world.secret })
const says = async (code: string, fingerprint?: string, key?: string): Promise<boolean> =>
  (await check(fingerprint, key)).text.includes(`"${code}"`)
const isReady = async (): Promise<boolean> => {
  return (await send(validator!.adminPort, '/readyz', { method: 'GET' })).status === 200
}
async function metric(name: string): Promise<number> {
  const { text } = await send(validator!.adminPort, '/metrics', { method: 'GET' })
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
}
const setStatus = (status: string, id = license.id): Promise<unknown> =>
  world.database.pool.query('update licenses set status = $2 where id = $1', [id, status])

/** Writes a file in which the license is active and the machine `m` holds a slot. */
async function writeFileOnce(): Promise<void> {
  await setStatus('active')
  await (
    await start()
  ).loaded
  await until(() => says('VALID'))
  await stop()
}

test('restores the index at the start, and then reads only the later changes', async () => {
  await writeFileOnce()
  await setStatus('suspended')
  const added = await world.license({ maxMachines: null })
  await (
    await start()
  ).loaded
  expect([await metric('keyward_index_file_restored'), await says('SUSPENDED')]).toEqual([1, true])
  expect(await says('VALID', 'm', added.key)).toBe(true)
  await until(isReady)
  // Afterwards, a reload compares the restored index with Postgres.
  await until(async () => (await metric('keyward_feed_loads_total')) === 1)
  await setStatus('active')
  await until(() => says('VALID'))
})

test('decides checks of known machines from the file while Postgres is not reachable', async () => {
  await writeFileOnce()
  await setStatus('revoked')
  proxy.refuse()
  await start()
  await until(() => says('VALID'))
  const ofUnknownKey = (await check('m', 'unknown')).status
  expect([await isReady(), ofUnknownKey, (await check('new')).status]).toEqual([false, 503, 503])
  const keys = await send(validator!.port, '/api/v1/public-key', { method: 'GET', secret: world.secret })
  expect(keys.status).toBe(404)
  proxy.heal()
  await until(() => says('REVOKED'))
  await until(isReady)
})

test('signs responses after a restart while Postgres is not reachable', async () => {
  const key = await createSigningKey(world.database.pool, world.organizationId)
  const signed = async (): Promise<string> => {
    const reply = await askSigned(validator!, V2, key, {
      body: { license: license.key, fingerprint: 'm' },
      secret: world.secret,
    })
    return `${reply.status} ${await verify(key, V2, world.secret, reply)}`
  }
  await setStatus('active')
  await (
    await start()
  ).loaded
  await delegate(world.database.pool, key)
  await until(async () => (await signed()) === '200 SIGNED')
  await stop()
  proxy.refuse()
  await start()
  await until(() => says('VALID'))
  expect(await signed()).toBe('200 SIGNED')
  await world.database.pool.query('delete from signing_keys')
})

test('returns 503 from the start when the file is older than STALE_LIMIT', async () => {
  await writeFileOnce()
  proxy.refuse()
  await start({ staleAfterMs: 100, staleLimitMs: 200 })
  for (let i = 0; i < 20; i++) expect((await check()).status).toBe(503)
  proxy.heal()
  await until(() => says('VALID'))
})

test('loads all rows when the file belongs to another database, and never decides checks from this file', async () => {
  await writeFileOnce()
  const other = await createWorld()
  const theirs = await other.license({ maxMachines: null })
  const ask = (secret: string, key: string) =>
    send(validator!.port, V2, { body: { license: key, fingerprint: 'm' }, secret })
  try {
    proxy.refuse()
    await start({}, other.database.validatorUrl)
    for (let i = 0; i < 20; i++) expect((await check()).status).toBe(503)
    proxy.heal()
    await validator!.loaded
    expect((await ask(world.secret, license.key)).status).toBe(401)
    expect((await ask(other.secret, theirs.key)).text).toContain('"VALID"')
    await stop()
    // The index file now belongs to the other database.
    await (
      await start()
    ).loaded
    expect([await says('VALID'), (await ask(other.secret, theirs.key)).status]).toEqual([true, 401])
  } finally {
    await stop()
    await other.database.drop()
  }
})

test('loads all rows when the log no longer contains the position of the file, or the file is damaged', async () => {
  await writeFileOnce()
  await setStatus('suspended')
  await world.database.pool.query('select forget_change_log()')
  await (
    await start()
  ).loaded
  expect([await metric('keyward_feed_loads_total'), await says('SUSPENDED')]).toEqual([1, true])
  await stop()
  const bytes = await readFile(path)
  bytes[bytes.length >> 1]! ^= 1
  await writeFile(path, bytes)
  await (
    await start()
  ).loaded
  expect([await metric('keyward_index_file_restored'), await says('SUSPENDED')]).toEqual([0, true])
})

test('applies changes and claims while it writes the file at intervals', async () => {
  await setStatus('active')
  await (
    await start({ indexFile: { path, intervalMs: 50 } })
  ).loaded
  const before = await readFile(path).catch(() => null)
  for (const [status, code] of [
    ['suspended', 'SUSPENDED'],
    ['active', 'VALID'],
    ['suspended', 'SUSPENDED'],
    ['active', 'VALID'],
  ] as const) {
    await setStatus(status)
    await until(() => says(code))
  }
  const free = await world.license({ maxMachines: 5 })
  for (const machine of ['a', 'b', 'c', 'd']) await until(() => says('VALID', machine, free.key))
  await until(async () => (await metric('keyward_index_file_bytes')) > 0)
  expect((await readFile(path)).equals(before ?? Buffer.alloc(0))).toBe(false)
  expect(await metric('keyward_index_file_errors_total')).toBe(0)
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { insertRule } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createWorld, raw, send, until, type World } from './harness.ts'

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const V2 = '/api/v2/license/validate'
/** A country whose letters occur in no id, hash or code. They may occur in the prefix of a secret. */
const COUNTRY = 'QX'
const ADDRESSES = ['198.51.100.77', '2001:db8:dead:beef::77']
/** The forms in which an address or country could be stored, including hexadecimal bytes. */
const SPELLINGS = [
  '198.51.100',
  'c6336447',
  '\\x3139382e35312e313030',
  '2001:db8:dead',
  '20010db8deadbeef',
  '2001:0db8:dead',
  COUNTRY,
]
/** The country as bytes in the hex format of Postgres. */
const COUNTRY_BYTES = new RegExp(`x${Buffer.from(COUNTRY).toString('hex')}\\b`)

let world: World
beforeAll(async () => {
  world = await createWorld()
})
afterAll(async () => {
  await world.database.drop()
})

/** Returns every row of every table as text, without the random prefixes of secrets. */
async function everythingInTheDatabase(): Promise<string> {
  const { pool } = world.database
  const secrets = await pool.query<{ prefix: string }>('select prefix from credentials')
  const { rows } = await pool.query<{ name: string }>(
    `select quote_ident(relname) as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`,
  )
  const tables = await Promise.all(
    rows.map(({ name }) => pool.query<{ row: string }>(`select t::text as row from ${name} t`)),
  )
  const activity = await pool.query<{ row: string }>(
    'select a::text as row from pg_stat_activity a where pid <> pg_backend_pid()',
  )
  const all = [...tables, activity].flatMap((result) => result.rows.map(({ row }) => row)).join('\n')
  return secrets.rows.reduce((text, { prefix }) => text.replaceAll(prefix, ''), all)
}

test('stores no address and no country of a check in a table, statement, metric or log line', async () => {
  const { pool } = world.database
  const { organizationId, secret } = world
  const limited = await world.license({ maxMachines: 1 })
  const suspended = await world.license({ status: 'suspended' })
  const free = await world.license({ maxMachines: null })
  await insertRule(pool, { organizationId, licenseId: suspended.id, value: '198.51.0.0/16' })
  await insertRule(pool, { organizationId, licenseId: free.id, kind: 'EXCLUSION', value: '2001:db8::/32' })
  const child = spawn(process.execPath, [MAIN], {
    env: {
      PATH: process.env['PATH'],
      UWEBSOCKETS_RELEASE: process.env['UWEBSOCKETS_RELEASE'],
      DATABASE_URL: world.database.validatorUrl,
      VALIDATOR_PORT: '0',
      VALIDATOR_ADMIN_PORT: '0',
      VALIDATOR_WORKERS: '1',
      TRUSTED_PROXIES: 'all',
      COUNTRY_HEADER: 'x-country',
      LOG_LEVEL: 'trace',
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (output += String(data)))
  const { port, adminPort } = await new Promise<{ port: number; adminPort: number }>(
    (resolve) => void child.once('message', (message: { port: number; adminPort: number }) => resolve(message)),
  )
  await until(async () => (await send(adminPort, '/readyz', { method: 'GET' })).status === 200)

  const codes = new Set<string>()
  for (const ip of ADDRESSES)
    for (const { key } of [limited, suspended, free, { key: 'no such key' }])
      for (const fingerprint of ['first', 'second', undefined, 7]) {
        const headers = { 'x-forwarded-for': ip, 'x-country': COUNTRY, 'x-real-ip': ip }
        const reply = await send(port, V2, { body: { license: key, fingerprint }, headers, secret })
        codes.add(/"code":"(\w+)"/.exec(reply.text)?.[1] ?? '')
        await send(port, '/api/v1/deactivate', { body: { licenseKey: key, fingerprint: 'nobody' }, headers, secret })
        await send(port, V2, { body: { license: key }, headers, secret: `kwk_${ip}` })
      }
  const broken = `POST ${V2} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${ADDRESSES[0]}\r\nContent-Length: x\r\n\r\n`
  expect(await raw(port, broken)).toMatchObject({ closed: true })
  expect([...codes].toSorted()).toEqual([
    'BLACKLISTED',
    'FINGERPRINT_REQUIRED',
    'INVALID_REQUEST',
    'NOT_FOUND',
    'SUSPENDED',
    'TOO_MANY_MACHINES',
    'VALID',
  ])
  const { text: metrics } = await send(adminPort, '/metrics', { method: 'GET' })
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  await exit
  const stored = await everythingInTheDatabase()
  expect(stored).toContain('TOO_MANY_MACHINES')
  await pool.query('delete from access_rules')
  const withoutRules = await everythingInTheDatabase()
  for (const spelling of SPELLINGS) {
    expect(withoutRules, spelling).not.toContain(spelling)
    expect(metrics, spelling).not.toContain(spelling)
    expect(output, spelling).not.toContain(spelling)
  }
  expect(withoutRules).not.toMatch(COUNTRY_BYTES)
})

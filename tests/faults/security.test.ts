import { execFile } from 'node:child_process'
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { uuidv7 } from '@keyward/database'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import {
  endChildren,
  MASTER_KEY,
  OPERATOR_TOKEN,
  type Service,
  startManagement,
  startService,
  startValidator,
  until,
  untilReady,
} from './support/children.ts'
import { check, type Reply, send } from './support/client.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

/** Tests secrets and permissions of the whole system while all programs log at their most verbose level. */

const ROOT = join(import.meta.dirname, '../..')
const PASSWORDS = { owner: 'owner-s-password-7261', validator: 'validator-s-password-5512' }
const Organization = z.object({ id: z.string(), managementToken: z.string(), apiKey: z.string() })
const Secret = z.object({ id: z.string(), secret: z.string() })
const Identified = z.object({ id: z.string() })
const License = z.object({ id: z.string(), key: z.string() })

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let management: Service
let validator: Service
const secrets: string[] = [OPERATOR_TOKEN, MASTER_KEY, ...Object.values(PASSWORDS)]
let organization: z.output<typeof Organization>
let license: z.output<typeof License>

const call = (method: string, path: string, secret: string, body?: object): Promise<Reply> =>
  send(management.port, `/api/v1/${path}`, { method, secret, body })

async function made<T>(
  path: string,
  body: object,
  schema: z.ZodType<T>,
  secret = organization.managementToken,
): Promise<T> {
  const reply = await call('POST', path, secret, body)
  if (reply.status > 201) throw new Error(`${path}: ${reply.text}`)
  return schema.parse(JSON.parse(reply.text))
}

function login(url: string, user: string, password: string): string {
  const changed = new URL(url)
  changed.username = user
  changed.password = password
  return changed.href
}

beforeAll(async () => {
  postgres = await createPostgres({
    log_statement: 'all',
    log_min_error_statement: 'error',
    log_min_messages: 'info',
    log_connections: 'on',
    log_parameter_max_length: -1,
    log_parameter_max_length_on_error: -1,
  })
  pool = openPool(postgres.url)
  // Postgres logs a statement before it runs it, so the setting is a statement of its own.
  const client = await pool.connect()
  await client.query('set log_statement = none')
  await client.query(`create role owner_login superuser login password '${PASSWORDS.owner}'`)
  client.release(true)
  postgres.logged.length = 0
  // Runs the program that operators use, because this program must not log the password either. This process reads the log of Postgres
  // meanwhile, or Postgres would wait.
  await promisify(execFile)(process.execPath, [join(ROOT, 'infra/migrate/main.ts')], {
    env: {
      ...process.env,
      DATABASE_URL: postgres.url,
      VALIDATOR_LOGIN: 'validator_login',
      VALIDATOR_PASSWORD: PASSWORDS.validator,
    },
  })
  management = await startManagement(login(postgres.url, 'owner_login', PASSWORDS.owner), { LOG_LEVEL: 'trace' })
  validator = await startValidator(login(postgres.url, 'validator_login', PASSWORDS.validator), { LOG_LEVEL: 'trace' })
  await untilReady(management, validator)
  organization = await made('organizations', { name: 'Acme' }, Organization, OPERATOR_TOKEN)
  const productId = (await made('products', { name: 'A' }, Identified)).id
  const customerId = (await made('customers', { email: 'a@example.com' }, Identified)).id
  license = await made('licenses', { productId, customerId, policy: { type: 'PERPETUAL', maxMachines: 1 } }, License)
  secrets.push(organization.managementToken, organization.apiKey)
})
afterAll(async () => {
  await endChildren()
  await pool.end()
  await postgres.remove()
})

test('no log, metric, error or table contains a secret', async () => {
  const key = await made('api-keys', { name: 'k' }, Secret)
  const token = await made('tokens', { name: 't', permissions: ['licenses.read'] }, Secret)
  const member = await made('members', { email: 'm@example.com', permissions: ['licenses.read'] }, Identified)
  const access = await made(`members/${member.id}/access-tokens`, { name: 'p', permissions: ['licenses.read'] }, Secret)
  secrets.push(key.secret, token.secret, access.secret)
  const replies: Reply[] = []
  const validate = (secret: string, body: object | string): Promise<Reply> =>
    send(validator.port, '/api/v2/license/validate', { secret, body })
  await until(
    async () => (await check(validator.port, key.secret, { license: license.key, fingerprint: 'a' })).code === 'VALID',
  )
  for (const secret of [...secrets, `${key.secret}x`, 'nonsense'])
    replies.push(
      await validate(secret, { license: license.key, fingerprint: 'b' }),
      await validate(secret, '{"license":'),
      await call('POST', 'access-rules', secret, { kind: 'BLACKLIST', value: secret }),
      await call('POST', 'licenses', secret, { productId: secret, customerId: secret }),
      await call('GET', `licenses/${uuidv7()}`, secret),
      await send(management.port, '/api/v1/products', { secret, body: `{"name": ${secret}` }),
    )
  await call('DELETE', `api-keys/${key.id}`, organization.managementToken)
  // Causes database errors.
  await pool.query('alter table products rename to products_gone')
  replies.push(await call('POST', 'products', organization.managementToken, { name: 'B' }))
  await pool.query('alter table products_gone rename to products')
  await postgres.stop('immediate')
  replies.push(
    await call('GET', 'products', organization.managementToken),
    await validate(organization.apiKey, { license: license.key, fingerprint: 'c' }),
  )
  await postgres.start()
  await until(async () => (await call('GET', 'products', organization.managementToken)).status === 200)

  const metrics = await Promise.all(
    [management, validator].map(async ({ adminPort }) => (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()),
  )
  const { rows } = await pool.query<{ name: string }>(
    `select quote_ident(relname) as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`,
  )
  const tables = await Promise.all(
    rows.map(async ({ name }) => JSON.stringify((await pool.query(`select t::text from ${name} t`)).rows)),
  )
  const places = {
    'the log of management': management.output(),
    'the log of the validator': validator.output(),
    'the log of Postgres': postgres.logged.join('\n'),
    metrics: metrics.join('\n'),
    tables: tables.join('\n'),
    'an answer': replies.map(({ text }) => text).join('\n'),
  }
  const found = Object.entries(places).flatMap(([place, text]) =>
    secrets.filter((secret) => text.includes(secret)).map((secret) => `${secret.slice(0, 8)}… in ${place}`),
  )
  expect(found).toEqual([])
  expect(postgres.logged.length).toBeGreaterThan(100)
  expect(replies.filter(({ text }) => /at .*\.ts:|select |pg_|node_modules/.test(text))).toEqual([])
})

test('omits the value from the error for an invalid variable', async () => {
  for (const [name, value] of [
    ['DATABASE_URL', 'mysql://user:sesame-1234@host/db'],
    ['DATABASE_URL', 'postgres://user:sesame-1234@127.0.0.1:1/db'],
    ['OPERATOR_TOKEN', 'sesame-1234'],
    ['MASTER_KEY', 'sesame-1234'],
  ] as const) {
    const env = {
      OPERATOR_TOKEN,
      MASTER_KEY,
      MANAGEMENT_PORT: '0',
      MANAGEMENT_ADMIN_PORT: '0',
      DATABASE_URL: postgres.url,
      [name]: value,
    }
    const failure = await startService('management', env).then(
      () => 'it started',
      (error: unknown) => String(error),
    )
    expect(failure).not.toContain('it started')
    expect(failure).not.toContain('sesame')
  }
})

test('the database contains no unencrypted private signing key', async () => {
  await made('signing-keys/rotate', {}, z.unknown())
  const { rows } = await pool.query<{ publicKey: Buffer; sealed: Buffer }>(
    'select public_key as "publicKey", private_key_encrypted as sealed from signing_keys',
  )
  expect(rows.length).toBeGreaterThanOrEqual(2)
  const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex')
  const publicOf = (seed: Buffer): Buffer => {
    const key = createPrivateKey({ key: Buffer.concat([pkcs8, seed]), format: 'der', type: 'pkcs8' })
    return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)
  }
  for (const { publicKey, sealed } of rows)
    for (let at = 0; at + 32 <= sealed.length; at++)
      expect(publicOf(sealed.subarray(at, at + 32)).equals(publicKey)).toBe(false)
  expect(JSON.stringify((await call('GET', 'signing-keys', organization.managementToken)).text)).not.toMatch(
    /private|sealed|encrypted/i,
  )
})

test('the validator role has only the permissions that validators need', async () => {
  const { rows: writable } = await pool.query<{ what: string }>(
    `select c.relname || ' ' || p as what from pg_class c, unnest(array['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'REFERENCES']) p
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
       and (has_table_privilege('keyward_validator', c.oid, p)
         or (p in ('INSERT', 'UPDATE', 'REFERENCES') and has_any_column_privilege('keyward_validator', c.oid, p)))`,
  )
  expect(writable).toEqual([])
  const { rows: functions } = await pool.query<{ name: string }>(
    `select distinct p.proname as name from pg_proc p where p.pronamespace = 'public'::regnamespace and p.prosecdef
       and has_function_privilege('keyward_validator', p.oid, 'EXECUTE')
       and p.prorettype <> 'trigger'::regtype order by 1`,
  )
  expect(functions.map(({ name }) => name)).toEqual([
    'claim_slots',
    'forget_validator',
    'landmark_of',
    'note_validator',
    'open_change_log_with',
    'prune_change_log',
    'release_slots',
    'write_usage',
  ])
  const { rows: hidden } = await pool.query<{ column: string }>(
    `select attrelid::regclass || '.' || attname as column from pg_attribute
     where attrelid in ('signing_keys'::regclass, 'credentials'::regclass) and attnum > 0 and not attisdropped
       and not has_column_privilege('keyward_validator', attrelid, attnum, 'SELECT') order by 1`,
  )
  expect(hidden.map(({ column }) => column)).toContain('signing_keys.private_key_encrypted')
})

test('uses forwarding headers in any spelling only from trusted proxies', async () => {
  const rule = { kind: 'BLACKLIST', type: 'IP', value: '203.0.113.7', scope: 'ORGANIZATION' }
  await made('access-rules', rule, Identified)
  await made('access-rules', { ...rule, value: '2001:db8::7' }, Identified)
  await made('access-rules', { ...rule, type: 'HWID', value: 'marker' }, Identified)
  const url = login(postgres.url, 'validator_login', PASSWORDS.validator)
  const trusting = await startValidator(url, { TRUSTED_PROXIES: '127.0.0.1/32,10.0.0.0/8' })
  const wary = await startValidator(url, { TRUSTED_PROXIES: '192.0.2.1/32' })
  await untilReady(trusting, wary)
  const codeFrom = async ({ port }: Service, headers: Record<string, string>): Promise<string> => {
    const body = { license: license.key, fingerprint: 'a' }
    return (await send(port, '/api/v2/license/validate', { secret: organization.apiKey, body, headers })).code
  }
  const [refused, passed] = ['BLACKLISTED', 'VALID']
  const cases: [string, string][] = [
    ['203.0.113.7', refused],
    ['203.0.113.7, 10.1.1.1, 10.9.9.9', refused],
    ['203.0.113.7:4711', refused],
    ['::ffff:203.0.113.7', refused],
    ['[::ffff:203.0.113.7]:80', refused],
    ['[2001:DB8::7]', refused],
    ['2001:db8:0:0::7', refused],
    ['  203.0.113.7  ', refused],
    ['203.0.113.7, 198.51.100.1', passed],
    ['198.51.100.1, 10.0.0.1', passed],
    ['203.0.113.8', passed],
    ['203.0.113.07', passed],
    ['0xcb.0.113.7', passed],
    ['3405803783', passed],
    ['junk', passed],
    ['203.0.113.7, junk', passed],
    ['203.0.113.7, , 10.0.0.1', refused],
    [`${'10.0.0.1, '.repeat(300)}10.0.0.1`, passed],
  ]
  for (const [value, expected] of cases) {
    expect([value, await codeFrom(trusting, { 'x-forwarded-for': value })]).toEqual([value, expected])
    expect([value, await codeFrom(wary, { 'x-forwarded-for': value })]).toEqual([value, passed])
  }
  for (const name of ['forwarded', 'x-real-ip', 'cf-connecting-ip', 'true-client-ip', 'x-client-ip'])
    expect([name, await codeFrom(trusting, { [name]: '203.0.113.7' })]).toEqual([name, passed])
  await Promise.all([trusting.stop(), wary.stop()])
})

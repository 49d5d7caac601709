import { readdir } from 'node:fs/promises'
import { createServer, request, type Server } from 'node:http'
import { join } from 'node:path'

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { type TestShell, openShell } from './run-cli.ts'
import { type RunningService, startProgram } from './services.ts'

const OPERATOR_TOKEN = 'operator-token-of-these-tests-only'
const DAY_MS = 86_400_000

let database: TestDatabase
let management: RunningService
let validator: RunningService
let shell: TestShell
/** The management token of an organization with the plan STANDARD. */
let organizationToken: string
let productId: string
let customerId: string

/** Runs a command that must succeed and returns its JSON result. */
async function result<T>(schema: z.ZodType<T>, ...args: string[]): Promise<T> {
  const printed = await shell.cli('--json', ...args)
  expect(printed.err).toBe('')
  return schema.parse(JSON.parse(printed.out))
}

async function post(path: string, body: object): Promise<string> {
  const response = await fetch(`${management.url}/api/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${organizationToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return z.object({ id: z.string() }).parse(await response.json()).id
}

async function setPlan(organizationId: string, plan: string): Promise<void> {
  const response = await fetch(`${management.url}/api/v1/organizations/${organizationId}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ plan }),
  })
  expect(response.status).toBe(200)
}

test('changes a license only if it still has the version of --if-match', async () => {
  const shape = z.object({ id: z.string(), updatedAt: z.string() })
  const create = ['license', 'create', '--product', productId, '--customer', customerId]
  const read = await result(shape, ...create)
  const limits = ['license', 'limits', read.id, '--max-machines']
  await result(shape, ...limits, '9')
  const stale = await shell.cli(...limits, '7', '--if-match', read.updatedAt)
  expect(stale.code).toBe(1)
  expect(stale.err).toContain('VERSION_MISMATCH')
})

async function ruleCount(): Promise<number> {
  const { rows } = await database.pool.query<{ count: string }>('select count(*) from access_rules')
  return Number(rows[0]?.count)
}

beforeAll(async () => {
  database = await createTestDatabase()
  shell = await openShell()
  const env = { PATH: process.env['PATH'] ?? '', TRUSTED_PROXIES: '127.0.0.1' }
  ;[management, validator] = await Promise.all([
    startProgram('management', {
      ...env,
      KEYWARD_DATABASE_URL: database.url,
      KEYWARD_OPERATOR_TOKEN: OPERATOR_TOKEN,
      KEYWARD_MASTER_KEY: 'ab'.repeat(32),
    }),
    startProgram('validator', {
      ...env,
      KEYWARD_VALIDATOR_DATABASE_URL: database.validatorUrl,
      KEYWARD_VALIDATOR_WORKERS: '1',
    }),
  ])
  shell.env['KEYWARD_URL'] = management.url
  shell.env['KEYWARD_OPERATOR_TOKEN'] = OPERATOR_TOKEN
  const made = z.object({ managementToken: z.string() })
  organizationToken = (await result(made, 'org', 'create', 'Acme', '--plan', 'STANDARD')).managementToken
  shell.env['KEYWARD_TOKEN'] = organizationToken
  productId = await post('/products', { name: 'Editor' })
  customerId = await post('/customers', { email: 'ada@example.com' })
})

afterAll(async () => {
  await Promise.all([management.stop(), validator.stop()])
  await shell.clear()
  await database.drop()
})

test('creates a token with only the given permissions', async () => {
  const made = await result(z.object({ secret: z.string() }), 'token', 'create', 'reader', '-p', 'licenses.read')
  const denied = await shell.cli('--token', made.secret, 'keys', 'rotate')
  expect(denied.code).toBe(1)
  expect(denied.err).toMatch(/signing-keys\.write.*\(FORBIDDEN\)/)
})

test('forwards new events with signatures that the Standard Webhooks library verifies', async () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const received: unknown[] = []
  const receiver = createServer((incoming, response) => {
    void (async () => {
      let body = ''
      for await (const chunk of incoming.setEncoding('utf8')) body += String(chunk)
      const headers = Object.fromEntries(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]))
      received.push(new Webhook(secret).verify(body, headers))
      // The first attempt fails, and the second succeeds.
      response.writeHead(received.length === 1 ? 500 : 204).end()
    })()
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const address = receiver.address()
  const url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/hook`
  await post('/products', { name: 'before' })
  const flags = ['--forward', url, '--secret', secret, '--type', 'product.*', '--stop-after', '2']
  const listening = shell.cli('events', 'listen', ...flags)
  const ids: string[] = []
  // The command does not forward events from before its start, so the test creates products until the command ends.
  const writing = setInterval(() => void post('/products', { name: 'after' }).then((id) => ids.push(id)), 500)
  const { code, out } = await listening
  clearInterval(writing)
  expect(code).toBe(0)
  expect(out.trim().split('\n')).toHaveLength(2)
  expect(out).toMatch(/product\.created {2}[\w-]+ {2}204/)
  expect(received).toHaveLength(3)
  expect(received[0]).toEqual(received[1])
  expect(
    z.array(z.object({ data: z.object({ resource: z.object({ name: z.literal('after') }) }) })).safeParse(received)
      .success,
  ).toBe(true)
  receiver.closeAllConnections()
  await new Promise((resolve) => receiver.close(resolve))
  expect((await shell.cli('events', 'listen', '--forward', 'file:///etc/passwd')).code).toBe(2)
  expect((await shell.cli('events', 'listen', '--forward', url, '--secret', 'x')).code).toBe(2)
  expect((await shell.cli('events', 'list', '--type', 'product.*', '--limit', '1')).out).toMatch(/product\.created/)
})

test('creates, shows, checks and revokes a license by key and by id', async () => {
  const shown = z.object({ id: z.string(), key: z.string(), status: z.string() })
  const flags = ['--product', productId, '--customer', customerId, '--max-machines', '1', '--expires', '30d']
  const made = await result(shown, 'license', 'create', ...flags)
  expect(await result(shown, 'license', 'show', made.key)).toMatchObject({ id: made.id, status: 'active' })
  expect((await shell.cli('check', made.key, '--machine', 'm1')).out).toMatch(/^VALID/)
  const evaluated = await shell.cli('check', made.id)
  expect([evaluated.code, evaluated.out]).toEqual([4, expect.stringMatching(/^FINGERPRINT_REQUIRED/)])
  const revoked = await shell.cli('license', 'revoke', made.id)
  expect(revoked.out).toMatch(/revoked[^]*Applied by all 1 validators\./)
  expect((await shell.cli('check', made.key, '--machine', 'm1')).out).toMatch(/^REVOKED/)
  const unknown = await shell.cli('license', 'show', 'NO-SUCH-KEY')
  expect([unknown.code, unknown.err]).toEqual([1, expect.stringMatching(/NOT_FOUND/)])
})

test('finds a license by a key that looks like an id', async () => {
  const key = '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b'
  const shown = z.object({ id: z.string(), key: z.string(), status: z.string() })
  const flags = ['--product', productId, '--customer', customerId, '--key', key]
  const { id } = await result(shown, 'license', 'create', ...flags)
  expect(await result(shown, 'license', 'show', key)).toMatchObject({ id, key })
  expect((await shell.cli('check', key)).out).toMatch(/^VALID/)
  expect(await result(shown, 'license', 'revoke', key)).toMatchObject({ id, status: 'revoked' })
  const unknown = key.replace('019a', '019b')
  expect(await shell.cli('license', 'show', unknown)).toMatchObject({ code: 1, out: '' })
  expect((await shell.cli('check', unknown)).out).toMatch(/^NOT_FOUND/)
})

test('shows which rule decides a check', async () => {
  const flags = ['--product', productId, '--customer', customerId]
  const { key } = await result(z.object({ key: z.string() }), 'license', 'create', ...flags)
  await shell.write('one.txt', '203.0.113.0/24 # abuse\n')
  expect(await result(z.object({ created: z.int() }), 'rules', 'import', 'one.txt')).toEqual({ created: 1 })
  const printed = await shell.cli('check', key, '--ip', '203.0.113.9')
  expect(printed.code).toBe(4)
  expect(printed.out).toMatch(/^BLACKLISTED[^]*Decided by the blacklist rule .*203\.0\.113\.0\/24.*noted "abuse"/)
})

test('names each invalid flag once', async () => {
  const failed = await shell.cli('check', 'ANY', '--country', 'Narnia')
  expect(failed.code).toBe(1)
  expect(failed.err).toBe('The service rejected the request (INVALID_REQUEST)\n  --country must be two letters\n')
})

test('changes quotas, suspends and reinstates organizations, and prints their audit log', async () => {
  const details = z.looseObject({ id: z.string(), suspendedAt: z.string().nullable() })
  const made = await result(z.object({ id: z.string() }), 'org', 'create', 'Initech')
  expect((await shell.cli('org', 'list')).out).toContain(made.id)
  const changed = await shell.cli('org', 'quota', made.id, 'licenses=7', 'products=default')
  expect(changed.out).toMatch(/licenses +0 +7\n/)
  for (const wrong of ['licenses', 'licenses=', 'licenses=-1', 'lizenzen=1', 'licenses=1=2'])
    expect(await shell.cli('org', 'quota', made.id, wrong)).toMatchObject({ code: 2 })
  const tooHigh = await shell.cli('org', 'quota', made.id, 'machinesPerLicense=100001')
  expect(tooHigh.err).toMatch(/machinesPerLicense.*100,?000/)
  const token = z.object({ secret: z.string() })
  const { secret } = await result(token, 'org', 'recovery-token', made.id, '--name', 'rescue', '--expires', '1d')
  expect((await result(details, 'org', 'suspend', made.id)).suspendedAt).not.toBeNull()
  expect((await shell.cli('--token', secret, 'product', 'list')).err).toMatch(/ORGANIZATION_SUSPENDED/)
  expect((await result(details, 'org', 'reinstate', made.id)).suspendedAt).toBeNull()
  expect(await shell.cli('--token', secret, 'product', 'list')).toMatchObject({ code: 0 })
  expect(await result(details, 'org', 'show', made.id)).toMatchObject({
    id: made.id,
    quotas: { licenses: { limit: 7 } },
  })
  const log = await shell.cli('org', 'audit-log', '--org', made.id)
  for (const action of ['created', 'suspended', 'reinstated']) expect(log.out).toContain(`organization.${action}`)
  expect(log.out).not.toContain(secret)
})

test('keys rotate creates a new key each time, and status shows a ready validator', async () => {
  const first = await result(z.object({ keyId: z.string() }), 'keys', 'rotate', '--unprepared')
  expect(await result(z.object({ keyId: z.string() }), 'keys', 'rotate', '--unprepared')).not.toEqual(first)
  const status = await shell.cli('status')
  expect(status.code).toBe(0)
  expect(status.out).toMatch(/^VALIDATOR .*\n\S+ +\d+\.\d+\.\d+ +ready +(?:nothing|\d+ transactions?) /)
})

test('shows all validators when they fill more than one page', async () => {
  const insert = `insert into validators (id, name, ready, applied, seen_at)
    select gen_random_uuid(), 'made-' || n, n > 1, pg_current_snapshot()::text, now() + interval '1 hour'
    from generate_series(1, 120) n`
  await database.pool.query(insert)
  const status = await shell.cli('status')
  await database.pool.query("delete from validators where name like 'made-%'")
  expect(status.code).toBe(4)
  expect(status.out.match(/^made-/gm)).toHaveLength(120)
})

describe('a long list', () => {
  const imported = z.object({ rows: z.int(), invalid: z.int(), created: z.int(), skipped: z.int() })
  const addresses = (count: number, net: number): string =>
    Array.from({ length: count }, (_, i) => `10.${net}.${i >> 8}.${i & 255}`).join('\n')

  test('imports a long list in batches, and skips all its rules in a second import', async () => {
    await shell.write('long.txt', addresses(2_345, 1))
    const before = await ruleCount()
    const first = await result(imported, 'rules', 'import', 'long.txt')
    expect(first).toEqual({ rows: 2_345, invalid: 0, created: 2_345, skipped: 0 })
    expect(await result(imported, 'rules', 'import', 'long.txt')).toMatchObject({ created: 0, skipped: 2_345 })
    expect(await ruleCount()).toBe(before + 2_345)
  })

  test('an import resumes after an interruption and counts each rule once', async () => {
    await shell.write('cut.txt', addresses(3_500, 2))
    const gate = await openGate(management.url, 2)
    const args = ['--url', gate.url, 'rules', 'import', 'cut.txt']
    const stopped = await shell.cli(...args)
    expect([stopped.code, stopped.err]).toEqual([1, expect.stringMatching(/Added before: 2000/)])
    gate.open()
    const rest = await shell.cli(...args)
    expect(rest.err).toMatch(/Resuming after 2 batches/)
    expect(rest.out).toMatch(/^3500 rules added, 0 already existed, 0 invalid rows skipped/)
    expect(await readdir(join(shell.folder, '.keyward', 'imports'))).toEqual([])
    gate.close()
  })

  test.each([
    { batch: 1, net: 6 },
    { batch: 2, net: 7 },
  ])(
    'a resumed import keeps the expiry of its first run after a lost response of batch $batch',
    async ({ batch, net }) => {
      await shell.write('lost.txt', addresses(2_500, net))
      const gate = await openGate(management.url, batch - 1, 'lose')
      const args = ['--url', gate.url, 'rules', 'import', 'lost.txt', '--expires', '30d']
      const stopped = await shell.cli(...args)
      expect([stopped.code, stopped.err]).toEqual([
        3,
        expect.stringMatching(/[^.]\. Added before: \d+\. Run the same command/),
      ])
      gate.open()
      shell.clock.aheadMs = 5 * DAY_MS
      expect((await shell.cli(...args)).out).toMatch(/^2500 rules added, 0 already existed, 0 invalid rows skipped/)
      const select = `select count(*)::integer as rules, count(distinct expires_at)::integer as expiries
      from access_rules where convert_from(value, 'UTF8') like $1`
      expect((await database.pool.query(select, [`10.${net}.%`])).rows).toEqual([{ rules: 2_500, expiries: 1 }])
      shell.clock.aheadMs = 0
      gate.close()
    },
  )

  test('exits with 2 when an import resumes after the expiry of its rules', async () => {
    await shell.write('late.txt', addresses(1_500, 8))
    const gate = await openGate(management.url, 1)
    const args = ['--url', gate.url, 'rules', 'import', 'late.txt', '--expires', '12h']
    await shell.cli(...args)
    gate.open()
    shell.clock.aheadMs = DAY_MS
    const late = await shell.cli(...args)
    expect([late.code, late.err]).toEqual([2, expect.stringMatching(/--expires 12h of the run that .* has passed/)])
    // The rules of the first run end a day sooner than the rows of the new run, so every row is added.
    expect((await shell.cli(...args, '--restart')).out).toMatch(/^1500 rules added, 0 already existed/)
    shell.clock.aheadMs = 0
    gate.close()
  })

  test('an import resumes after the cause of an error is removed', async () => {
    const made = z.object({ id: z.string(), managementToken: z.string() })
    const { id, managementToken } = await result(made, 'org', 'create', 'Bravo', '--plan', 'STANDARD')
    const list = ['--token', managementToken, 'rules', 'import', 'limit.txt']
    await shell.write('limit.txt', addresses(1_000, 4))
    expect(await result(imported, ...list)).toMatchObject({ created: 1_000 })
    await shell.write('limit.txt', `${addresses(1_000, 4)}\n${addresses(5, 5)}`)
    await setPlan(id, 'FREE')
    for (const printed of [await shell.cli(...list), await shell.cli(...list)])
      expect(printed.err).toMatch(/Added before: 0 \(RULE_LIMIT_REACHED\)/)
    await setPlan(id, 'STANDARD')
    expect(await result(imported, ...list)).toMatchObject({ created: 5, skipped: 1_000 })
  })

  test('names the line of a row that the service rejects', async () => {
    const rows = [
      'value,type,scope',
      ...addresses(1_100, 3)
        .split('\n')
        .map((value) => `${value},IP,ORGANIZATION`),
    ]
    rows.push('019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b,CUSTOMER,ORGANIZATION')
    await shell.write('bad.csv', rows.join('\n'))
    const printed = await shell.cli('rules', 'import', 'bad.csv')
    expect(printed.code).toBe(1)
    expect(printed.err).toMatch(/Added before: 1000[^]*\n {2}line 1102: value /)
  })
})

interface Gate {
  url: string
  open: () => void
  close: () => void
}

/**
 * Forwards all requests. Makes every import after the first `imports` imports fail: `reject` responds with 403 instead of forwarding, and
 * `lose` replaces the response with a 500.
 */
async function openGate(target: string, imports: number, fault: 'reject' | 'lose' = 'reject'): Promise<Gate> {
  let left = imports
  const server: Server = createServer((incoming, response) => {
    const isFaulty = incoming.url?.endsWith('/import') === true && left-- <= 0
    if (isFaulty && fault === 'reject') {
      const problem = { type: 'x', title: 'x', status: 403, detail: 'Locked', instance: 'x', code: 'X', requestId: 'x' }
      response.writeHead(403, { 'content-type': 'application/problem+json', connection: 'close' })
      response.end(JSON.stringify(problem))
      return
    }
    const { method = 'GET', headers, url = '/' } = incoming
    const onward = request(`${target}${url}`, { method, headers }, (upstream) => {
      if (isFaulty) {
        upstream.resume().on('end', () => response.writeHead(500).end())
        return
      }
      response.writeHead(upstream.statusCode ?? 502, upstream.headers)
      upstream.pipe(response)
    })
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const close = (): void => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${port}`, open: () => void (left = Infinity), close }
}

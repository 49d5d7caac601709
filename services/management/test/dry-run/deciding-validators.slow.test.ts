/** Tests which validator decides an evaluated check, and the fallback when it does not respond. */

import { createServer, type Server } from 'node:http'
import { text as readText } from 'node:stream/consumers'

import { evaluation } from '@keyward/contract'
import { DECIDED_NOT_FOUND } from '@keyward/contract/dry-run'
import { createDatabase } from '@keyward/database/kysely'
import { createLogger } from '@keyward/runtime'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createDecidingValidators } from '../../src/dry-run/deciding-validators.ts'
import { type Harness, startHarness, startHarnessWithValidator } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

type Found = Awaited<ReturnType<typeof startHarnessWithValidator>>
let harness: Found
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarnessWithValidator()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

interface Fake {
  url: string
  /** The bodies of the requests that arrived. */
  received: string[]
  close(): Promise<void>
}

/** Starts a server in place of a validator. Without `status`, the server never responds. */
async function startFake(status?: number, body = '{}', host = '127.0.0.1', listenedPort = 0): Promise<Fake> {
  const received: string[] = []
  const server: Server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => (text += chunk.toString()))
    request.on('end', () => {
      received.push(text)
      if (status !== undefined) response.writeHead(status, { location: '/elsewhere' }).end(body)
    })
  })
  await new Promise<void>((resolve) => server.listen(listenedPort, host, resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://${host}:${port}`, received, close }
}

const evaluate = (given: Vendor, body: object) => given.call('POST', 'access-rules/evaluate', { body })

test('applies each change of the vendor in the next evaluation', async () => {
  const license = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 1 } })
  const check = { licenseId: license.id, machineId: 'm1', ip: '203.0.113.9' }
  const codeOf = async () => expectBody(await evaluate(vendor, check), 200, evaluation).code
  for (let round = 0; round < 10; round++) {
    expect(await codeOf()).toBe('VALID')
    const rule = await vendor.rule({ value: '203.0.113.0/24', scope: 'LICENSE', scopeId: license.id })
    expect(await codeOf()).toBe('BLACKLISTED')
    await vendor.call('DELETE', `access-rules/${rule.id}`)
    expect(await codeOf()).toBe('VALID')
    await vendor.call('POST', `licenses/${license.id}/suspend`)
    expect(await codeOf()).toBe('SUSPENDED')
    await vendor.call('POST', `licenses/${license.id}/reinstate`)
  }
})

test('issues a file to a machine right after a check has taken its slot', async () => {
  const license = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 1 } })
  const file = (fingerprint: string) =>
    harness.call('POST', 'licenses/file', { token: vendor.apiKey, body: { licenseKey: license.key, fingerprint } })
  expect(outcome(await file('m1'))).toBe('409 MACHINE_NOT_ACTIVE')
  await expect
    .poll(async () => {
      const response = await fetch(`http://127.0.0.1:${harness.validator.port}/api/v1/validate`, {
        method: 'POST',
        headers: { authorization: `Bearer ${vendor.apiKey}` },
        body: JSON.stringify({ licenseKey: license.key, fingerprint: 'm1' }),
      })
      return response.text()
    })
    .toContain('"VALID"')
  expect((await file('m1')).status).toBe(200)
  expect(outcome(await file('m2'))).toBe('409 TOO_MANY_MACHINES')
})

test(
  'uses another validator when one does not respond, fails, redirects or has ended',
  { timeout: 20_000 },
  async () => {
    const fakes = await Promise.all([startFake(), startFake(200, '{"code":"VALID"}'), startFake(302), startFake(401)])
    const ended = await startFake(200)
    await ended.close()
    for (const fake of [...fakes, ended]) {
      const own: Harness = await startHarness({
        DATABASE_URL: harness.database.managementUrl,
        VALIDATOR_ADMIN_URLS: `${fake.url}, ${harness.validator.adminUrl}`,
      })
      const body = { licenseKey: 'no such key', ip: '198.51.100.9' }
      const response = await own.call('POST', 'access-rules/evaluate', { token: vendor.managementToken, body })
      expect(expectBody(response, 200, evaluation)).toMatchObject({ code: 'NOT_FOUND', decidedBy: null, matched: [] })
      expect(fake.received.length).toBe(fake === ended ? 0 : 1)
      await own.close()
    }
    for (const fake of fakes) await fake.close()
  },
)

test('requests single verdicts from a validator of an earlier version, which decides no batches', async () => {
  const paths: string[] = []
  const earlier = createServer((request, response) => {
    paths.push(request.url ?? '')
    const forward = async () => {
      const body = await readText(request)
      const headers = { authorization: request.headers.authorization ?? '' }
      const decided = await fetch(`${harness.validator.adminUrl}/decide`, { method: 'POST', headers, body })
      response.writeHead(decided.status).end(await decided.text())
    }
    if (request.url === '/decide') forward().catch(() => response.destroy())
    else response.writeHead(404).end('{}')
  })
  await new Promise<void>((resolve) => earlier.listen(0, '127.0.0.1', resolve))
  const address = earlier.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const own = await startHarness({
    DATABASE_URL: harness.database.managementUrl,
    VALIDATOR_ADMIN_URLS: `http://127.0.0.1:${port}`,
  })
  const { key: licenseKey } = await vendor.license({ policy: { type: 'PERPETUAL' } })
  const request = () => own.call('POST', 'licenses/file', { token: vendor.apiKey, body: { licenseKey } })
  const responses = await Promise.all(Array.from({ length: 6 }, request))
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
  expect(new Set(paths)).toEqual(new Set(['/decide', '/decide-batch']))
  await own.close()
  await new Promise((resolve) => earlier.close(resolve))
})

test('prefers ready validators and ignores invalid addresses', async () => {
  const fake = await startFake(503)
  const { pool } = harness.database
  const add = (ready: boolean, adminUrl: string) =>
    pool.query(
      `insert into validators (id, name, ready, details) values (gen_random_uuid(), 'other', $1, jsonb_build_object('adminUrl', $2::text))`,
      [ready, adminUrl],
    )
  await add(false, fake.url)
  for (const url of ['ftp://127.0.0.1', `${fake.url}/path`, 'nonsense']) await add(true, url)
  for (let i = 0; i < 10; i++) expect((await evaluate(vendor, { licenseKey: 'k' })).status).toBe(200)
  expect(fake.received).toEqual([])
  await add(true, fake.url)
  await expect
    .poll(async () => {
      expect((await evaluate(vendor, { licenseKey: 'k' })).status).toBe(200)
      return fake.received.length
    })
    .toBeGreaterThan(0)
  await pool.query(`delete from validators where name = 'other'`)
  await fake.close()
})

/** Creates the client with names that resolve to `addresses`, and returns the code of a check. */
function createClient(fixedUrls: string[], addresses: string[]) {
  const validators = createDecidingValidators(fixedUrls, createLogger('test', 'silent'), (_origin, _options, found) =>
    found(
      null,
      addresses.map((address) => ({ address, family: 4, ttl: 5_000 })),
    ),
  )
  const context = { db: createDatabase(harness.database.pool), organizationId: vendor.id }
  return async () =>
    (await validators.decide(context, { licenseKey: 'k', machineId: null, ip: null, country: null })).code
}

test('tries the addresses of a name in turn, such as those of all pods', async () => {
  const { port } = new URL(harness.validator.adminUrl)
  const fake = await startFake(503, '{}', '127.0.0.2', Number(port))
  const decide = createClient([`http://validators.example:${port}`], ['127.0.0.1', '127.0.0.2'])
  for (let i = 0; i < 6; i++) expect(await decide()).toBe('NOT_FOUND')
  expect(fake.received.length).toBeGreaterThan(0)
  await fake.close()
})

test('ignores published addresses of other hosts, which a stolen login of a validator can forge', async () => {
  const fake = await startFake(200, JSON.stringify({ ...DECIDED_NOT_FOUND, code: 'VALID' }))
  const { pool } = harness.database
  const decide = createClient([], ['127.0.0.1'])
  const publish = (adminUrl: string) =>
    pool.query(
      `insert into validators (id, name, ready, details) select gen_random_uuid(), 'other', true, jsonb_build_object('adminUrl', $1::text) from generate_series(1, 50)`,
      [adminUrl],
    )
  await publish(fake.url.replace('127.0.0.1', 'elsewhere.example'))
  for (let i = 0; i < 5; i++) expect(await decide()).toBe('NOT_FOUND')
  expect(fake.received).toEqual([])
  // The address would be used if it were on this host.
  await publish(fake.url)
  await expect.poll(decide).toBe('VALID')
  await pool.query(`delete from validators where name = 'other'`)
  await fake.close()
})

test('returns 503 when the only validator does not respond', { timeout: 20_000 }, async () => {
  const fake = await startFake()
  const own = await startHarness({
    DATABASE_URL: harness.database.managementUrl,
    VALIDATOR_ADMIN_URLS: fake.url,
  })
  const startedMs = performance.now()
  const response = await own.call('POST', 'access-rules/evaluate', {
    token: vendor.managementToken,
    body: { licenseKey: 'k' },
  })
  expect(outcome(response)).toBe('503 UNAVAILABLE')
  expect(performance.now() - startedMs).toBeLessThan(8_000)
  await own.close()
  await fake.close()
})

/** Tests every validation endpoint and code through haproxy with TLS, two validators and two management processes. */

import { createPublicKey, verify } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { isInstalled } from '../cluster/balancer.ts'
import { type Cluster, startCluster } from '../cluster/cluster.ts'
import { type HttpResponse, type HttpsClient, createHttpsClient } from '../shared/https-client.ts'
import { runSmokeTest } from '../smoke-test/smoke-test.ts'

const isAvailable = isInstalled('haproxy', '-v') && isInstalled('openssl', 'version')
const idSchema = z.object({ id: z.string() })
const licenseSchema = z.object({ id: z.string(), key: z.string() })
type License = z.infer<typeof licenseSchema>

describe.skipIf(!isAvailable)('the base address (needs haproxy and openssl)', { timeout: 20_000 }, () => {
  const operatorToken = 'operator-token-of-these-tests-only'
  let database: TestDatabase
  let cluster: Cluster
  let client: HttpsClient
  let token: string
  let apiKey: string
  let productId: string
  let customerId: string

  const make = async <T>(path: string, body: object, schema: z.ZodType<T>, as = token): Promise<T> => {
    const response = await client.send('POST', `/api/v1${path}`, as, body, { prefer: 'wait=10' })
    expect([200, 201], JSON.stringify(response.body)).toContain(response.status)
    return schema.parse(response.body)
  }
  const createLicense = (policy: object = {}): Promise<License> =>
    make('/licenses', { productId, customerId, policy: { type: 'PERPETUAL', ...policy } }, licenseSchema)
  const v1 = (body: object, path = '/api/v1/validate'): Promise<HttpResponse> => client.send('POST', path, apiKey, body)
  const v2 = (body: object): Promise<HttpResponse> => client.send('POST', '/api/v2/license/validate', apiKey, body)
  const get = (path: string, as = apiKey): Promise<HttpResponse> => client.send('GET', `/api/v1${path}`, as)

  beforeAll(async () => {
    database = await createTestDatabase()
    const masterKey = Buffer.alloc(32, 7).toString('base64')
    const urls = { databaseUrl: database.url, validatorUrl: database.validatorUrl }
    cluster = await startCluster({ ...urls, operatorToken, masterKey, validators: 2 })
    client = createHttpsClient(cluster.baseUrl, cluster.certificate, 8)
    const secrets = z.object({ managementToken: z.string(), apiKey: z.string() })
    const made = await make('/organizations', { name: 'Acme', plan: 'STANDARD' }, secrets, operatorToken)
    token = made.managementToken
    apiKey = made.apiKey
    productId = (await make('/products', { name: 'Editor' }, idSchema)).id
    customerId = (await make('/customers', { email: 'ada@example.com' }, idSchema)).id
    const { key } = await createLicense()
    // Waits until a validator has received the API key.
    while ((await v2({ license: key })).status !== 200) await sleep(20)
  }, 240_000)

  afterAll(async () => {
    client.close()
    await cluster.stop()
    await database.drop()
  }, 240_000)

  test('the smoke test succeeds, also with a host name that does not resolve, and deletes its organization', async () => {
    const { port } = new URL(cluster.baseUrl)
    const options = { connectTo: `127.0.0.1:${port}` }
    const unresolved = createHttpsClient(`https://localhost:1`, cluster.certificate, 2, options)
    const lines: string[] = []
    await runSmokeTest({ client: unresolved, operatorToken, report: (line) => lines.push(line) })
    unresolved.close()
    expect(lines.at(-1)).toBe('The installation works.')
    const { body } = await client.send('GET', '/api/v1/organizations?limit=100', operatorToken)
    expect(JSON.stringify(body)).not.toContain('Smoke test')
  })

  test('the smoke test names the step that fails', async () => {
    const report = (): undefined => undefined
    const failing: HttpsClient = {
      ...client,
      send: async (method, path, ...rest) =>
        path === '/api/v1/products'
          ? { status: 500, headers: {}, body: { code: 'INTERNAL' } }
          : client.send(method, path, ...rest),
    }
    await expect(runSmokeTest({ client: failing, operatorToken, report })).rejects.toThrow(
      'POST /products returned 500: {"code":"INTERNAL"}',
    )
  })

  test('a license is VALID on v1 and v2 until it is revoked', async () => {
    const { id, key } = await createLicense()
    expect(await v2({ license: key })).toMatchObject({ status: 200, body: { valid: true, status: 200, code: 'VALID' } })
    expect(await v1({ licenseKey: key })).toMatchObject({ status: 200, body: { valid: true, code: 'VALID' } })
    await make(`/licenses/${id}/revoke`, {}, idSchema)
    for (let i = 0; i < 6; i++)
      expect(await v2({ license: key })).toMatchObject({ status: 400, body: { code: 'REVOKED' } })
    expect(await v1({ licenseKey: key })).toMatchObject({ status: 200, body: { valid: false, code: 'REVOKED' } })
  })

  test('suspended, expired and unknown licenses are rejected with their codes', async () => {
    const suspended = await createLicense()
    await make(`/licenses/${suspended.id}/suspend`, {}, idSchema)
    const expired = await createLicense({ type: 'SUBSCRIPTION', expiresAt: '2020-01-01T00:00:00Z' })
    const cases: [string, string][] = [
      [suspended.key, 'SUSPENDED'],
      [expired.key, 'EXPIRED'],
      ['NO-SUCH-KEY', 'NOT_FOUND'],
    ]
    for (const [license, code] of cases) {
      const response = await v2({ license })
      expect(response).toMatchObject({ status: 400, body: { valid: false, status: 400, code } })
    }
  })

  test('a machine takes a slot, and a release frees the slot for another machine', async () => {
    const { key } = await createLicense({ maxMachines: 1 })
    expect(await v1({ licenseKey: key })).toMatchObject({ body: { code: 'FINGERPRINT_REQUIRED' } })
    expect(await v1({ licenseKey: key, fingerprint: 'a', hostname: 'A' }, '/api/v1/activate')).toMatchObject({
      body: { valid: true },
    })
    for (let i = 0; i < 6; i++) {
      expect(await v2({ license: key, hwid: 'a' })).toMatchObject({ body: { code: 'VALID' } })
      expect(await v1({ licenseKey: key, fingerprint: 'b' })).toMatchObject({
        body: { code: 'TOO_MANY_MACHINES', machines: { used: 1, max: 1 } },
      })
    }
    const release = (): Promise<HttpResponse> => v1({ licenseKey: key, fingerprint: 'a' }, '/api/v1/deactivate')
    expect(await release()).toMatchObject({ status: 200, body: { deactivated: true } })
    expect(await release()).toMatchObject({ status: 200, body: { deactivated: false } })
    while ((await v2({ license: key, fingerprint: 'b' })).status !== 200) await sleep(20)
  })

  test("address rules match the caller's address and not the one in the headers", async () => {
    expect(await get('/access-rules/my-ip', token)).toMatchObject({ body: { ip: '127.0.0.1' } })
    const { id, key } = await createLicense()
    const rule = { kind: 'BLACKLIST', type: 'IP', scope: 'LICENSE', scopeId: id }
    await make('/access-rules', { ...rule, value: '203.0.113.0/24' }, idSchema)
    const claimed = { 'x-forwarded-for': '203.0.113.7', 'x-real-ip': '203.0.113.7', forwarded: 'for=203.0.113.7' }
    const spoofed = await client.send('POST', '/api/v2/license/validate', apiKey, { license: key }, claimed)
    expect(spoofed).toMatchObject({ body: { code: 'VALID' } })
    await make('/access-rules', { ...rule, value: '127.0.0.0/8' }, idSchema)
    for (let i = 0; i < 6; i++)
      expect(await v2({ license: key })).toMatchObject({ status: 400, body: { code: 'BLACKLISTED' } })
    await make('/access-rules', { ...rule, kind: 'EXCLUSION', type: 'HWID', value: 'mine' }, idSchema)
    expect(await v2({ license: key, macAddress: 'mine' })).toMatchObject({ body: { code: 'VALID' } })
  })

  test('an import creates all rules or none', async () => {
    const ruleFor = (value: string): object => ({ kind: 'BLACKLIST', type: 'IP', scope: 'ORGANIZATION', value })
    const rules = Array.from({ length: 1_000 }, (_, i) => ruleFor(`10.9.${i >> 8}.${i & 255}`))
    const imported = z.object({ created: z.int(), skipped: z.int() })
    expect(await make('/access-rules/import', { rules }, imported)).toEqual({ created: 1_000, skipped: 0 })
    const mixed = [ruleFor('10.10.0.0'), ruleFor('nonsense')]
    const response = await client.send('POST', '/api/v1/access-rules/import', token, { rules: mixed })
    expect(response).toMatchObject({ status: 422, body: { errors: [{ pointer: '#/rules/1/value' }] } })
  })

  test('the license file verifies with the public key', async () => {
    const { id } = await createLicense()
    const file = z.string().parse((await get(`/licenses/${id}/file`, token)).body)
    const [payload = '', signature = ''] = file.split('.').map((part) => Buffer.from(part, 'base64url'))
    const { keyId, publicKey } = z
      .object({ keyId: z.string(), algorithm: z.literal('Ed25519'), publicKey: z.string() })
      .parse((await get('/public-key')).body)
    const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' })
    expect(verify(null, Buffer.from(payload), key, Buffer.from(signature))).toBe(true)
    expect(JSON.parse(payload.toString())).toMatchObject({ licenseId: id, kid: keyId })
    expect(await get('/public-keys')).toMatchObject({ body: { keys: [{ keyId }] } })
  })

  test('errors have no `valid`', async () => {
    const cases: [HttpResponse, number][] = [
      [await client.send('POST', '/api/v2/license/validate', 'kwk_wrong', { license: 'x' }), 401],
      [await v2({ license: 7 }), 422],
      [await v2({ license: 'x'.repeat(20_000) }), 413],
      [await client.send('GET', '/api/v2/license/validate', apiKey), 405],
      [await client.send('POST', '/api/v2/license/other', apiKey, {}), 404],
    ]
    for (const [response, status] of cases) {
      expect(response.status).toBe(status)
      expect(JSON.stringify(response.body)).not.toContain('"valid":')
    }
  })

  test('both validators decide checks and are listed', async () => {
    const listed = await client.send('GET', '/api/v1/validators', operatorToken)
    expect(listed).toMatchObject({ status: 200, body: { data: [{ ready: true }, { ready: true }] } })
    const counts = await Promise.all(
      cluster.validators.map(async ({ service }) => {
        const page = await (await fetch(`http://127.0.0.1:${service.adminPort}/metrics`)).text()
        return [...page.matchAll(/^keyward_checks_total\{.*\} (\d+)/gm)].reduce((sum, [, n]) => sum + Number(n), 0)
      }),
    )
    expect(counts.filter((count) => count === 0)).toEqual([])
  })

  test('the balancer logs no address of a caller', () => {
    expect(cluster.balancerOutput()).toContain('/api/v2/license/validate')
    expect(
      cluster
        .balancerOutput()
        .split('\n')
        .filter((line) => line.startsWith('{') && line.includes('127.0.0.1')),
    ).toEqual([])
  })
})

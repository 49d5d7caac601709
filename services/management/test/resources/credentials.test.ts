/** Credentials and permissions: what a token may do and grant, and when it becomes invalid. */

import { createdToken, member as memberSchema, type Permission } from '@keyward/contract'
import { parseSecret } from '@keyward/database'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { type Caller, type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

interface Made {
  id: string
  secret: string
  call: Caller
}

const secretOf = createdToken.required({ secret: true })

async function makeToken(path: string, body: object, by = vendor.call): Promise<Made> {
  const { id, secret } = expectBody(await by('POST', path, { body }), 201, secretOf)
  return { id, secret, call: harness.as(secret) }
}

async function makeMember(permissions: Permission[]): Promise<string> {
  const body = { email: `${crypto.randomUUID()}@example.com`, permissions }
  return expectBody(await vendor.call('POST', 'members', { body }), 201, memberSchema).id
}

test('secrets have a checksum, are returned once, and are stored as a hash', async () => {
  const { id, secret } = await makeToken('tokens', { name: 't', permissions: [] })
  expect(parseSecret(secret)).toEqual({ kind: 'MANAGEMENT_TOKEN' })
  expect(parseSecret(vendor.apiKey)).toEqual({ kind: 'API_KEY' })
  const read = await vendor.call('GET', `tokens/${id}`)
  expect(read.body).toMatchObject({ prefix: secret.slice(0, 8), name: 't' })
  expect(read.text).not.toContain(secret)
  const { rows } = await harness.database.pool.query('select * from credentials')
  expect(JSON.stringify(rows)).not.toContain(secret.slice(8))
})

test('a credential grants only permissions that it has', async () => {
  const admin = await makeToken('tokens', { name: 'a', permissions: ['credentials.write', 'licenses.read'] })
  const wanted = { name: 'x', permissions: ['licenses.read', 'licenses.write'] }
  const rejected = await admin.call('POST', 'tokens', { body: wanted })
  expect(outcome(rejected)).toBe('403 FORBIDDEN')
  expect(rejected.text).toContain('licenses.write')
  const memberId = await makeMember(['licenses.write'])
  expect(outcome(await admin.call('POST', `members/${memberId}/access-tokens`, { body: wanted }))).toBe('403 FORBIDDEN')
  const email = 'new@example.com'
  const body = { email, permissions: ['audit.read'] }
  expect(outcome(await admin.call('POST', 'members', { body }))).toBe('403 FORBIDDEN')
  const patch = (permissions: string[]) => admin.call('PATCH', `members/${memberId}`, { body: { permissions } })
  expect(outcome(await patch(['audit.read']))).toBe('403 FORBIDDEN')
  // Permissions that the member already has may stay, and may be taken away.
  expect(outcome(await patch(['licenses.write', 'licenses.read']))).toBe('200')
  expect(outcome(await patch([]))).toBe('200')
})

test('an access token has the permissions that both it and its member have, at each request', async () => {
  const memberId = await makeMember(['products.read', 'customers.read'])
  const body = { name: 'laptop', permissions: ['products.read', 'products.write'] }
  const { call } = await makeToken(`members/${memberId}/access-tokens`, body)
  const patch = (permissions: Permission[]) => vendor.call('PATCH', `members/${memberId}`, { body: { permissions } })
  const create = () => call('POST', 'products', { body: { name: 'p' } })
  expect((await call('GET', 'products')).status).toBe(200)
  expect(outcome(await create())).toBe('403 FORBIDDEN')
  expect(outcome(await call('GET', 'customers'))).toBe('403 FORBIDDEN')
  await patch(['products.write'])
  expect((await create()).status).toBe(201)
  expect(outcome(await call('GET', 'products'))).toBe('403 FORBIDDEN')
  expect((await vendor.call('DELETE', `members/${memberId}`)).status).toBe(204)
  expect(outcome(await create())).toBe('401 UNAUTHENTICATED')
})

test('a revoked or expired credential is rejected at once', async () => {
  const { id, call } = await makeToken('tokens', { name: 't', permissions: ['products.read'] })
  expect((await call('GET', 'products')).status).toBe(200)
  expect((await vendor.call('DELETE', `tokens/${id}`)).status).toBe(204)
  expect(outcome(await call('GET', 'products'))).toBe('401 UNAUTHENTICATED')
  expect(outcome(await vendor.call('DELETE', `tokens/${id}`))).toBe('404 NOT_FOUND')
  expect(outcome(await vendor.call('GET', `tokens/${id}`))).toBe('404 NOT_FOUND')
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const short = await makeToken('tokens', { name: 's', permissions: ['products.read'], expiresAt })
  expect((await short.call('GET', 'products')).status).toBe(200)
  await harness.database.pool.query('update credentials set expires_at = now() where id = $1', [short.id])
  expect(outcome(await short.call('GET', 'products'))).toBe('401 UNAUTHENTICATED')
  const past = { name: 'p', permissions: [], expiresAt: '2020-01-01T00:00:00Z' }
  expect(outcome(await vendor.call('POST', 'tokens', { body: past }))).toBe('422 INVALID_REQUEST')
})

test('the last use is written within seconds', async () => {
  const { id, call } = await makeToken('tokens', { name: 't', permissions: ['products.read'] })
  const lastUsedAt = async () =>
    expectBody(await vendor.call('GET', `tokens/${id}`), 200, z.object({ lastUsedAt: z.string().nullable() }))
      .lastUsedAt
  expect(await lastUsedAt()).toBeNull()
  await call('GET', 'products')
  await expect.poll(lastUsedAt, { timeout: 8_000 }).not.toBeNull()
})

test('two members cannot have the same e-mail address', async () => {
  const body = { email: 'Same@example.com', permissions: [] }
  expect((await vendor.call('POST', 'members', { body })).status).toBe(201)
  const again = { email: 'same@example.com', permissions: [] }
  expect(outcome(await vendor.call('POST', 'members', { body: again }))).toBe('409 MEMBER_EXISTS')
})

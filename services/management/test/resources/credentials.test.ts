/** Tests credentials: the requests and grants that their permissions allow, their revocation and their expiry. */

import { ALL_PERMISSIONS, member as memberSchema, page, type Permission, token } from '@keyward/contract'
import { auditEntry } from '@keyward/contract/management/audit'
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

const secretOf = z.looseObject({ id: z.string(), secret: z.string() })

async function makeToken(path: string, body: object, by = vendor.call): Promise<Made> {
  const { id, secret } = expectBody(await by('POST', path, { body }), 201, secretOf)
  return { id, secret, call: harness.as(secret) }
}

async function makeMember(permissions: Permission[]): Promise<string> {
  const body = { email: `${crypto.randomUUID()}@example.com`, permissions }
  return expectBody(await vendor.call('POST', 'members', { body }), 201, memberSchema).id
}

test('a secret is returned once and stored as a hash', async () => {
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
  const coveredId = await makeMember(['licenses.read'])
  const patchCovered = (permissions: string[]) => admin.call('PATCH', `members/${coveredId}`, { body: { permissions } })
  expect(outcome(await patchCovered(['licenses.write', 'licenses.read']))).toBe('403 FORBIDDEN')
  expect(outcome(await patchCovered([]))).toBe('200')
})

test('a credential cannot change or revoke credentials and members with permissions that it lacks', async () => {
  const rogue = await makeToken('tokens', { name: 'rogue', permissions: ['credentials.write'] })
  const strong = await makeToken('tokens', { name: 'strong', permissions: ['licenses.write'] })
  const memberId = await makeMember(['licenses.write'])
  const access = await makeToken(`members/${memberId}/access-tokens`, { name: 'a', permissions: ['licenses.write'] })
  const attempts = [
    ['DELETE', `tokens/${strong.id}`],
    ['DELETE', `members/${memberId}`],
    ['DELETE', `members/${memberId}/access-tokens/${access.id}`],
    ['PATCH', `members/${memberId}`, { permissions: [] }],
    ['PATCH', `members/${memberId}`, { email: 'rogue@example.com' }],
  ] as const
  for (const [method, path, body] of attempts) {
    const response = await rogue.call(method, path, body && { body })
    expect(outcome(response)).toBe('403 FORBIDDEN')
    expect(response.text).toContain('licenses.write')
  }
  const equal = await makeToken('tokens', { name: 'equal', permissions: ['credentials.write'] })
  expect(outcome(await rogue.call('DELETE', `tokens/${equal.id}`))).toBe('204')
  expect(outcome(await rogue.call('DELETE', `tokens/${rogue.id}`))).toBe('204')
})

test('a token cannot create a token that expires later', async () => {
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const permissions = ['credentials.write', 'licenses.read']
  const { call } = await makeToken('tokens', { name: 'short', permissions, expiresAt })
  const memberId = await makeMember(['licenses.read'])
  for (const path of ['tokens', `members/${memberId}/access-tokens`]) {
    const make = (fields: object) => call('POST', path, { body: { name: 'x', permissions: [], ...fields } })
    expect(outcome(await make({}))).toBe('403 FORBIDDEN')
    expect(outcome(await make({ expiresAt: null }))).toBe('403 FORBIDDEN')
    const later = await make({ expiresAt: new Date(Date.now() + 7_200_000).toISOString() })
    expect(outcome(later)).toBe('403 FORBIDDEN')
    expect(later.text).toContain(expiresAt)
    expect(outcome(await make({ expiresAt }))).toBe('201')
  }
  // An API key may expire later, because it manages nothing and apps depend on it.
  expect(outcome(await call('POST', 'api-keys', { body: { name: 'apps' } }))).toBe('201')
})

test('lists contain the creator of a credential, and the audit log contains the creator of an access token for another person', async () => {
  const memberId = await makeMember(['credentials.write', 'products.write'])
  const permissions = ['credentials.write', 'products.write']
  const given = await makeToken(`members/${memberId}/access-tokens`, { name: 'given', permissions })
  const own = await makeToken(`members/${memberId}/access-tokens`, { name: 'own', permissions }, given.call)
  const maker = { type: 'MANAGEMENT_TOKEN', name: 'first management token' }
  const shown = await vendor.call('GET', `members/${memberId}/access-tokens/${given.id}`)
  expect(shown.body).toMatchObject({ createdBy: maker })
  const ownShown = await vendor.call('GET', `members/${memberId}/access-tokens/${own.id}`)
  expect(ownShown.body).toMatchObject({ createdBy: { type: 'ACCESS_TOKEN', id: given.id, memberId } })
  await given.call('POST', 'products', { body: { name: 'by given' } })
  await own.call('POST', 'products', { body: { name: 'by own' } })
  const log = expectBody(await vendor.call('GET', 'audit-log?limit=2'), 200, page(auditEntry))
  const firstToken = expectBody(await vendor.call('GET', 'tokens?limit=100'), 200, page(token)).data.at(-1)
  expect(log.data.map((entry) => entry.actor)).toEqual([
    { type: 'ACCESS_TOKEN', id: own.id, name: 'own', memberId },
    { type: 'ACCESS_TOKEN', id: given.id, name: 'given', memberId, issuedBy: { ...maker, id: firstToken?.id } },
  ])
})

test('an access token whose creator only a later version knows works, and the audit log keeps the creator', async () => {
  const memberId = await makeMember(['products.write'])
  const { id, call } = await makeToken(`members/${memberId}/access-tokens`, {
    name: 'x',
    permissions: ['products.write'],
  })
  const { pool } = harness.database
  await pool.query(`update credentials set created_by = '{"type":"ROBOT","id":"r2"}' where id = $1`, [id])
  expect(outcome(await call('POST', 'products', { body: { name: 'by robot' } }))).toBe('201')
  const { rows } = await pool.query<{ actor: unknown }>(
    `select actor from audit_log where action = 'product.created' and actor ->> 'id' = $1`,
    [id],
  )
  expect(rows).toMatchObject([{ actor: { type: 'ACCESS_TOKEN', issuedBy: { type: 'ROBOT', id: 'r2' } } }])
})

test('removing a member revokes every token that the member created, directly or through other tokens, and keeps API keys', async () => {
  const permissions: Permission[] = ['credentials.write', 'products.read']
  const memberId = await makeMember(permissions)
  const access = await makeToken(`members/${memberId}/access-tokens`, { name: 'laptop', permissions })
  const backup = await makeToken('tokens', { name: 'backup', permissions }, access.call)
  const second = await makeToken('tokens', { name: 'second', permissions }, backup.call)
  const colleague = await makeMember(permissions)
  const other = await makeToken(`members/${colleague}/access-tokens`, { name: 'other', permissions }, second.call)
  const key = await makeToken('api-keys', { name: 'apps' }, backup.call)
  const unrelated = await makeToken('tokens', { name: 'unrelated', permissions })
  expect((await vendor.call('DELETE', `members/${memberId}`)).status).toBe(204)
  for (const { call } of [access, backup, second, other])
    expect(outcome(await call('GET', 'products'))).toBe('401 UNAUTHENTICATED')
  expect((await unrelated.call('GET', 'products')).status).toBe(200)
  expect((await vendor.call('GET', `api-keys/${key.id}`)).status).toBe(200)
  const log = expectBody(await vendor.call('GET', 'audit-log?limit=1'), 200, page(auditEntry))
  expect(log.data[0]).toMatchObject({
    action: 'member.deleted',
    changes: { revokedTokens: [backup.id, second.id, other.id], keptApiKeys: [key.id] },
  })
})

test('a member cannot remove the last member that manages members, and a management token can', async () => {
  const alone = await createVendor(harness)
  const add = async (email: string) => {
    const body = { email, permissions: ALL_PERMISSIONS }
    return expectBody(await alone.call('POST', 'members', { body }), 201, memberSchema).id
  }
  const id = await add('only@example.com')
  const granted = { name: 'p', permissions: ALL_PERMISSIONS }
  const self = await makeToken(`members/${id}/access-tokens`, granted, alone.call)
  expect(outcome(await self.call('DELETE', `members/${id}`))).toBe('409 LAST_MANAGER')
  const less = { body: { permissions: ['licenses.read'] } }
  expect(outcome(await self.call('PATCH', `members/${id}`, less))).toBe('409 LAST_MANAGER')
  const other = await add('other@example.com')
  expect(outcome(await self.call('DELETE', `members/${id}`))).toBe('204')
  expect(outcome(await alone.call('DELETE', `members/${other}`))).toBe('204')
})

test('the last token that manages credentials cannot be revoked, even by concurrent requests', async () => {
  const alone = await createVendor(harness)
  const first = expectBody(await alone.call('GET', 'tokens'), 200, page(token)).data[0]?.id ?? ''
  expect(outcome(await alone.call('DELETE', `tokens/${first}`))).toBe('409 LAST_CREDENTIAL')
  const body = { email: 'a@example.com', permissions: ALL_PERMISSIONS }
  const memberId = expectBody(await alone.call('POST', 'members', { body }), 201, memberSchema).id
  const access = await makeToken(
    `members/${memberId}/access-tokens`,
    { name: 'p', permissions: ALL_PERMISSIONS },
    alone.call,
  )
  const attempts = await Promise.all([
    access.call('DELETE', `tokens/${first}`),
    alone.call('PATCH', `members/${memberId}`, { body: { permissions: [] } }),
    alone.call('DELETE', `members/${memberId}/access-tokens/${access.id}`),
    alone.call('DELETE', `members/${memberId}`),
  ])
  expect(
    attempts.map(outcome).filter((one) => !/^(?:20\d|409 LAST_CREDENTIAL|401 .*|404 .*|403 .*)$/.test(one)),
  ).toEqual([])
  const { rows } = await harness.database.pool.query(
    `select c.id from credentials c left join members m on m.id = c.member_id
     where c.organization_id = $1 and c.revoked_at is null and 'credentials.write' = any (c.permissions)
       and (c.member_id is null or 'credentials.write' = any (m.permissions))`,
    [alone.id],
  )
  expect(rows.length).toBeGreaterThan(0)
})

test('an organization keeps its last 1,000 revoked credentials', async () => {
  const { id } = await makeToken('api-keys', { name: 'k' })
  await harness.database.pool.query(
    `insert into credentials (id, organization_id, kind, name, prefix, secret_hash, revoked_at)
     select gen_random_uuid(), $1, 'API_KEY', 'k', 'kwk_', sha256(int4send(i)), now() - interval '1 minute' from generate_series(1, 1005) i`,
    [vendor.id],
  )
  expect((await vendor.call('DELETE', `api-keys/${id}`)).status).toBe(204)
  const { rows } = await harness.database.pool.query(
    'select count(*)::integer as count, bool_or(id = $2) as kept from credentials where organization_id = $1 and revoked_at is not null',
    [vendor.id, id],
  )
  expect(rows).toEqual([{ count: 1_000, kept: true }])
})

test('the permission credentials.write does not grant access to signing keys', async () => {
  const { call } = await makeToken('tokens', { name: 't', permissions: ['credentials.write'] })
  expect(outcome(await call('POST', 'signing-keys/rotate'))).toBe('403 FORBIDDEN')
  expect(outcome(await call('GET', 'signing-keys'))).toBe('403 FORBIDDEN')
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

test('the time of the last use is stored', async () => {
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

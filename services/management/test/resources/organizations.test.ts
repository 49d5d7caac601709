/** Tests the operator's actions on organizations: suspension, recovery tokens, and the operator's audit log. */

import { ALL_PERMISSIONS, organizationDetails, page, token } from '@keyward/contract'
import { auditEntry, operatorAuditEntry } from '@keyward/contract/management/audit'
import { installation } from '@keyward/contract/management/validators'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, operatorToken, startHarnessWithValidator } from '../support/harness.ts'
import { createVendor, expectBody, outcome } from '../support/vendor.ts'

const PREVIOUS = 'previous-operator-token-of-these-tests'
let harness: Harness

beforeAll(async () => {
  harness = await startHarnessWithValidator({ OPERATOR_TOKEN_PREVIOUS: PREVIOUS })
})
afterAll(() => harness.close())

const recovered = token.extend({ secret: z.string() })

test('a suspended organization gets 403, but its apps still get license files', async () => {
  const vendor = await createVendor(harness)
  const license = await vendor.license({ policy: { type: 'PERPETUAL' } })
  const path = `organizations/${vendor.id}`
  const suspended = expectBody(await harness.call('POST', `${path}/suspend`), 200, organizationDetails)
  expect(suspended.suspendedAt).not.toBeNull()
  const { quotas: _, ...unchanged } = suspended // whose bytes contain the audit entry of the first request
  expect((await harness.call('POST', `${path}/suspend`)).body).toMatchObject(unchanged)
  for (const [method, resource] of [
    ['GET', 'organization'],
    ['GET', 'licenses'],
    ['POST', 'products'],
    ['GET', `licenses/${license.id}/file`],
    ['DELETE', `licenses/${license.id}`],
  ] as const)
    expect(outcome(await vendor.call(method, resource))).toBe('403 ORGANIZATION_SUSPENDED')
  const file = () => harness.as(vendor.apiKey)('POST', 'licenses/file', { body: { licenseKey: license.key } })
  await expect.poll(async () => outcome(await file()), { timeout: 10_000 }).toBe('200')
  const reinstated = expectBody(await harness.call('POST', `${path}/reinstate`), 200, organizationDetails)
  expect(reinstated.suspendedAt).toBeNull()
  expect(outcome(await vendor.call('GET', 'licenses'))).toBe('200')
  const { rows } = await harness.database.pool.query(
    `select id from change_log where xid = (select xmin::text::xid8 from organizations where id = $1)`,
    [vendor.id],
  )
  expect(rows).toEqual([])
})

test('the operator issues a management token for an organization without one, beyond its quota', async () => {
  const vendor = await createVendor(harness)
  await harness.database.pool.query(
    `update credentials set revoked_at = now() where organization_id = $1 and kind <> 'API_KEY'`,
    [vendor.id],
  )
  await harness.call('PATCH', `organizations/${vendor.id}`, { body: { quotas: { tokens: 0 } } })
  expect(outcome(await vendor.call('GET', 'tokens'))).toBe('401 UNAUTHENTICATED')
  const response = await harness.call('POST', `organizations/${vendor.id}/recovery-token`, { body: {} })
  const { secret, id, permissions, createdBy } = expectBody(response, 201, recovered)
  expect(permissions).toEqual(ALL_PERMISSIONS)
  expect(createdBy).toEqual({ type: 'OPERATOR' })
  const log = await harness.as(secret)('GET', 'audit-log?limit=1')
  expect(expectBody(log, 200, page(auditEntry)).data[0]).toMatchObject({
    action: 'management_token.created',
    resourceId: id,
    actor: { type: 'OPERATOR' },
  })
  expect(outcome(await vendor.call('POST', `organizations/${vendor.id}/recovery-token`, { body: {} }))).toBe(
    '401 UNAUTHENTICATED',
  )
})

test("the operator's audit log contains only actions of the operator, including those on deleted organizations", async () => {
  const [vendor, gone] = [await createVendor(harness), await createVendor(harness)]
  await vendor.product()
  await harness.call('POST', `organizations/${vendor.id}/suspend`)
  expect((await harness.call('DELETE', `organizations/${gone.id}`)).status).toBe(204)
  const read = async (query: string) =>
    expectBody(await harness.call('GET', `operator/audit-log${query}`), 200, page(operatorAuditEntry)).data
  const all = await read('?limit=100')
  expect(all.filter(({ actor }) => actor.type !== 'OPERATOR')).toEqual([])
  expect(all[0]).toMatchObject({ action: 'organization.deleted', organizationId: gone.id })
  const actions = (await read(`?organizationId=${vendor.id}`)).map(({ action }) => action)
  expect(actions).toEqual([
    'organization.suspended',
    'api_key.created',
    'management_token.created',
    'organization.created',
  ])
  expect((await read(`?organizationId=${gone.id}`)).map(({ action }) => action)).toContain('organization.created')
})

test('the current and the previous operator token are accepted', async () => {
  for (const [secret, expected] of [
    [operatorToken, '200'],
    [PREVIOUS, '200'],
    [`${PREVIOUS}x`, '401 UNAUTHENTICATED'],
  ] as const)
    expect(outcome(await harness.as(secret)('GET', 'organizations'))).toBe(expected)
})

test('a member who manages credentials and the operator set the time zone of an organization', async () => {
  const vendor = await createVendor(harness)
  const shape = z.object({ timeZone: z.string().nullable() })
  const read = async () => expectBody(await vendor.call('GET', 'organization'), 200, shape).timeZone
  const set = (timeZone: unknown) => vendor.call('PATCH', 'organization', { body: { timeZone } })
  expect(await read()).toBeNull()
  expect(expectBody(await set('America/Los_Angeles'), 200, shape).timeZone).toBe('America/Los_Angeles')
  for (const unknown of ['Mars/Base', '+01:00', '', 'x'.repeat(65), 3])
    expect(outcome(await set(unknown))).toBe('422 INVALID_REQUEST')
  expect(await read()).toBe('America/Los_Angeles')
  await harness.call('PATCH', `organizations/${vendor.id}`, { body: { timeZone: null } })
  expect(await read()).toBeNull()
  const reader = await vendor.call('POST', 'tokens', { body: { name: 'reader', permissions: ['licenses.write'] } })
  const { secret } = expectBody(reader, 201, z.object({ secret: z.string() }))
  expect(outcome(await harness.as(secret)('PATCH', 'organization', { body: { timeZone: null } }))).toBe('403 FORBIDDEN')
})

test('the operator reads the size of the database and the number of disabled endpoints', async () => {
  const vendor = await createVendor(harness)
  const body = { url: 'https://hooks.example.com', types: ['*'], enabled: false }
  expect(outcome(await vendor.call('POST', 'webhook-endpoints', { body }))).toBe('201')
  const { database, webhooks } = expectBody(await harness.call('GET', 'installation'), 200, installation)
  expect(database.bytes).toBeGreaterThan(1_000_000)
  expect(database.version).toMatch(/^\d+\.\d+/)
  expect(webhooks).toEqual({ due: 0, disabledEndpoints: 1 })
  expect(outcome(await vendor.call('GET', 'installation'))).toBe('403 FORBIDDEN')
})

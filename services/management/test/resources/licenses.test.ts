import {
  importedLicenses,
  license as licenseSchema,
  machine as machineSchema,
  page as pageOf,
  problem,
} from '@keyward/contract'
import { auditEntry } from '@keyward/contract/management/audit'
import { event } from '@keyward/contract/management/events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarness } from '../support/harness.ts'
import { insertMachine } from '../support/requests.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor
let base: { productId: string; customerId: string; policy: object }

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
  base = { productId: await vendor.product(), customerId: await vendor.customer(), policy: { type: 'PERPETUAL' } }
})
afterAll(() => harness.close())

const importLicenses = (licenses: unknown) => vendor.call('POST', 'licenses/import', { body: { licenses } })
const pointers = (body: unknown) => problem.parse(body).errors?.map((error) => error.pointer)

async function count(): Promise<number | null> {
  return (await harness.database.pool.query('select from licenses where organization_id = $1', [vendor.id])).rowCount
}

describe('an import', () => {
  test('an import keeps given keys, generates the others, and returns all keys in the order of the rows', async () => {
    const past = { type: 'SUBSCRIPTION', expiresAt: '2020-01-01T00:00:00Z', maxMachines: 3 }
    const response = await importLicenses([{ ...base, key: 'old 1' }, base, { ...base, key: 'old 2', policy: past }])
    const { created, licenses } = expectBody(response, 200, importedLicenses)
    expect(created).toBe(3)
    expect(licenses.map((license) => license.key)).toEqual([
      'old 1',
      expect.stringMatching(/^(?:\w{4}-){3}\w{4}$/),
      'old 2',
    ])
    const last = await vendor.call('GET', `licenses/${licenses[2]?.id}`)
    expect(expectBody(last, 200, licenseSchema)).toMatchObject({ status: 'expired', machines: { used: 0, max: 3 } })
  })

  test('an import adds all rows or none, and lists every invalid row', async () => {
    const before = await count()
    const other = await createVendor(harness)
    const bad = await importLicenses([
      base,
      { ...base, productId: await other.product() },
      { ...base, customerId: base.productId },
      { ...base, key: 'twice' },
      { ...base, key: 'twice' },
    ])
    expect(outcome(bad)).toBe('422 INVALID_REQUEST')
    expect(pointers(bad.body)).toEqual(['#/licenses/1/productId', '#/licenses/2/customerId', '#/licenses/4/key'])
    // A malformed row does not hide the errors of other rows.
    const mixed = await importLicenses([
      { ...base, key: 'old 1' },
      { ...base, policy: { type: 'TRIAL' } },
      { ...base, productId: await other.product() },
      7,
      { ...base, key: 'twice' },
      { ...base, key: 'twice' },
    ])
    expect(outcome(mixed)).toBe('422 INVALID_REQUEST')
    expect(pointers(mixed.body)).toEqual([
      '#/licenses/0/key',
      '#/licenses/1/policy/expiresAt',
      '#/licenses/2/productId',
      '#/licenses/3',
      '#/licenses/5/key',
    ])
    const shapes = await importLicenses([{ ...base, policy: { type: 'TRIAL' } }, { ...base, key: 'ü' }, {}])
    expect(pointers(shapes.body)).toEqual([
      '#/licenses/0/policy/expiresAt',
      '#/licenses/1/key',
      '#/licenses/2/customerId',
      '#/licenses/2/productId',
      '#/licenses/2/policy',
    ])
    const twice = await importLicenses([
      { ...base, externalId: 'x' },
      { ...base, externalId: 'x' },
    ])
    expect(pointers(twice.body)).toEqual(['#/licenses/1/externalId'])
    const taken = await importLicenses([
      { ...base, key: 'new' },
      { ...base, key: 'old 1' },
    ])
    expect(outcome(taken)).toBe('409 LICENSE_KEY_EXISTS')
    expect(taken.text).toContain('A license with this key exists.')
    expect(pointers(taken.body)).toEqual(['#/licenses/1/key'])
    expect(await count()).toBe(before)
  })

  test('an import accepts at most a thousand licenses', async () => {
    const rows = Array.from({ length: 1_001 }, () => base)
    expect(outcome(await importLicenses(rows))).toBe('422 IMPORT_TOO_LARGE')
    const { licenses } = expectBody(await importLicenses(rows.slice(1)), 200, importedLicenses)
    expect(new Set(licenses.map((license) => license.key)).size).toBe(1_000)
  })
})

test('accepts a limit of 100,000 machines, and keeps a larger limit that an earlier version stored', async () => {
  const policy = (maxMachines: number) => ({ type: 'PERPETUAL', maxMachines })
  const tooMany = await vendor.call('POST', 'licenses', { body: { ...base, policy: policy(100_001) } })
  expect([outcome(tooMany), pointers(tooMany.body)]).toEqual(['422 INVALID_REQUEST', ['#/policy/maxMachines']])
  const { id } = await vendor.license({ ...base, policy: policy(100_000) })
  const path = `licenses/${id}`
  const raise = { body: { policy: { maxMachines: 100_001 } } }
  expect(outcome(await vendor.call('PATCH', path, raise))).toBe('422 INVALID_REQUEST')
  await harness.database.pool.query('update licenses set max_machines = 2147483647 where id = $1', [id])
  const changed = await vendor.call('PATCH', path, { body: { metadata: { changed: true } } })
  expect(changed.body).toMatchObject({ policy: { maxMachines: 2_147_483_647 } })
})

test('20 concurrent requests with the same license key create one license', async () => {
  const body = { ...base, key: 'raced' }
  const responses = await Promise.all(Array.from({ length: 20 }, () => vendor.call('POST', 'licenses', { body })))
  expect(responses.map(outcome).toSorted()).toEqual([
    '201',
    ...Array.from({ length: 19 }, () => '409 LICENSE_KEY_EXISTS'),
  ])
})

test('lists machines, and removing one releases its slot', async () => {
  const { id } = await vendor.license({ ...base, policy: { type: 'PERPETUAL', maxMachines: 2 } })
  const first = await insertMachine({ harness, vendor }, id, 'm\u0000 1')
  const second = await insertMachine({ harness, vendor }, id, 'Ünï-2')
  const page = z.object({ data: z.array(machineSchema), nextCursor: z.null() })
  const list = async () => expectBody(await vendor.call('GET', `licenses/${id}/machines`), 200, page).data
  const read = async () => expectBody(await vendor.call('GET', `licenses/${id}`), 200, licenseSchema).machines
  expect((await list()).map((machine) => machine.machineId)).toEqual(['Ünï-2', 'm\u0000 1'])
  expect(await read()).toEqual({ used: 2, max: 2 })
  const lower = { body: { policy: { maxMachines: 1 } } }
  expect(expectBody(await vendor.call('PATCH', `licenses/${id}`, lower), 200, licenseSchema).machines).toEqual({
    used: 2,
    max: 1,
  })
  expect((await vendor.call('DELETE', `licenses/${id}/machines/${first}`)).status).toBe(204)
  expect(outcome(await vendor.call('DELETE', `licenses/${id}/machines/${first}`))).toBe('404 NOT_FOUND')
  const other = await vendor.license(base)
  expect(outcome(await vendor.call('DELETE', `licenses/${other.id}/machines/${second}`))).toBe('404 NOT_FOUND')
  expect((await list()).map((machine) => machine.id)).toEqual([second])
  expect(await read()).toEqual({ used: 1, max: 1 })
})

test('a machine with a lease is listed until its lease ends, and then holds no slot', async () => {
  const { id } = await vendor.license({ ...base, policy: { type: 'PERPETUAL', maxMachines: 2 } })
  const machine = await insertMachine({ harness, vendor }, id, 'desk')
  const page = z.object({ data: z.array(machineSchema) })
  const list = async () => expectBody(await vendor.call('GET', `licenses/${id}/machines`), 200, page).data
  const used = async () => expectBody(await vendor.call('GET', `licenses/${id}`), 200, licenseSchema).machines.used
  expect(await list()).toMatchObject([{ id: machine, leaseEndsAt: null }])
  await vendor.call('PATCH', `licenses/${id}`, { body: { policy: { leaseSeconds: 600 } } })
  const [leased] = await list()
  expect(Date.parse(leased?.leaseEndsAt ?? '')).toBeGreaterThan(Date.now() + 60_000)
  expect(await used()).toBe(1)
  await harness.database.pool.query('update machines set lease_ends_at = now() where license_id = $1', [id])
  expect([await list(), await used()]).toEqual([[], 0])
  expect(outcome(await vendor.call('DELETE', `licenses/${id}/machines/${machine}`))).toBe('404 NOT_FOUND')
})

test('the reason of a suspension or revocation is in the audit log and in the event, and a repetition changes nothing', async () => {
  const { id } = await vendor.license()
  for (const [action, reason] of [
    ['suspend', 'Chargeback'],
    ['suspend', 'Another'],
    ['revoke', 'Key in a forum'],
  ] as const)
    expect((await vendor.call('POST', `licenses/${id}/${action}`, { body: { reason } })).status).toBe(200)
  const audited = expectBody(await vendor.call('GET', `audit-log?resourceId=${id}`), 200, pageOf(auditEntry)).data
  expect(audited.map(({ action, changes }) => [action, changes?.['reason']])).toEqual([
    ['license.revoked', 'Key in a forum'],
    ['license.suspended', 'Chargeback'],
    ['license.created', undefined],
  ])
  const written = expectBody(await vendor.call('GET', `events?resourceId=${id}`), 200, pageOf(event)).data
  expect(written.map(({ type, data }) => [type, data['reason']])).toEqual([
    ['license.revoked', 'Key in a forum'],
    ['license.suspended', 'Chargeback'],
    ['license.created', undefined],
  ])
  const empty = await vendor.call('POST', `licenses/${(await vendor.license()).id}/suspend`, { body: { reason: '' } })
  expect(outcome(empty)).toBe('422 INVALID_REQUEST')
})

test('the effective entitlements of a license are those that its checks return', async () => {
  const defaults = { edition: 'pro', seats: 5, cloud: true }
  const created = await vendor.call('POST', 'products', { body: { name: 'Studio', entitlements: defaults } })
  const productId = expectBody(created, 201, z.object({ id: z.uuid() })).id
  const overrides = { seats: 9, cloud: null, beta: true }
  const { id } = await vendor.license({ productId, entitlements: overrides })
  const read = await vendor.call('GET', `licenses/${id}/entitlements`)
  expect(read.body).toEqual({ effective: { edition: 'pro', seats: 9, beta: true }, defaults, overrides })
})

/** Tests the import of licenses with status, machines and customers (docs/api.md#m20). */

import { customer as customerSchema, importedLicenses, license as licenseSchema, page } from '@keyward/contract'
import { licenseOfCells, licenseOfJson } from '@keyward/contract/management/license-cells'
import { foundMachine } from '@keyward/contract/management/machines'
import { claimSlots, uuidToBytes } from '@keyward/database'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { parseCsv } from '../support/csv.ts'
import { type Harness, startHarnessWithValidator } from '../support/harness.ts'
import { createVendor, expectBody, outcome, perpetual, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor
let productId: string

beforeAll(async () => {
  harness = await startHarnessWithValidator()
  vendor = await createVendor(harness)
  productId = await vendor.product()
})
afterAll(() => harness.close())

const send = (licenses: object[], options: object = {}, by = vendor) =>
  by.call('POST', 'licenses/import', { body: { licenses, ...options } })
const row = (fields: object) => ({ productId, policy: perpetual, ...fields })
const shown = async (id = '') => expectBody(await vendor.call('GET', `licenses/${id}`), 200, licenseSchema)
const customersWith = async (email: string) =>
  expectBody(await vendor.call('GET', `customers?email=${email}`), 200, page(customerSchema)).data
const errorsOf = (response: { body: unknown }) => response.body

test('creates licenses with their status and machines, for customers by e-mail address or external id', async () => {
  const ada = await vendor.customer({ email: 'ada@example.com', externalId: 'crm-1' })
  const bob = { email: 'Bob@example.com', name: 'Bob' }
  const response = await send(
    [
      row({
        customer: { email: 'ADA@example.com' },
        status: 'suspended',
        machines: [{ machineId: 'm1', hostname: 'h' }],
      }),
      row({ customer: { externalId: 'crm-1' }, status: 'revoked' }),
      row({ customer: bob, machines: [{ machineId: 'm1' }, { machineId: ' ü\n' }] }),
      row({ customer: { ...bob, email: 'bob@example.com' } }),
      row({ customerId: ada }),
    ],
    { createCustomers: true },
  )
  const { licenses, ...counts } = expectBody(response, 200, importedLicenses)
  expect(counts).toEqual({ created: 5, skipped: 0, createdCustomers: 1 })
  expect(licenses.map(({ pointer }) => pointer)).toEqual([0, 1, 2, 3, 4].map((at) => `#/licenses/${at}`))
  const [suspended, revoked, third, fourth, fifth] = await Promise.all(licenses.map(({ id }) => shown(id)))
  expect(suspended).toMatchObject({ customerId: ada, status: 'suspended', machines: { used: 1, max: 5 } })
  expect(suspended?.suspendedAt).not.toBeNull()
  expect(revoked).toMatchObject({ customerId: ada, status: 'revoked', suspendedAt: null })
  expect(revoked?.revokedAt).not.toBeNull()
  const [created] = await customersWith('bob@example.com')
  expect(created).toMatchObject({ email: 'Bob@example.com', name: 'Bob' })
  expect(third).toMatchObject({ customerId: created?.id, status: 'active', machines: { used: 2 } })
  expect(fourth).toMatchObject({ customerId: created?.id, machines: { used: 0 } })
  expect(fifth).toMatchObject({ customerId: ada })
  const machines = expectBody(await vendor.call('GET', 'machines?machineId=m1'), 200, page(foundMachine)).data
  expect(new Set(machines.map(({ licenseId }) => licenseId))).toEqual(new Set([licenses[0]?.id, licenses[2]?.id]))
  const audited = await vendor.call('GET', 'audit-log?action=license.imported')
  expect(audited.body).toMatchObject({ data: [{ changes: { created: 5, machines: 3 } }] })
  const events = await vendor.call('GET', 'events?type=license.created&limit=100')
  expect(events.text).toContain('"status":"suspended"')
})

test('an imported machine is known, and another one finds no slot', async () => {
  const policy = { type: 'PERPETUAL', maxMachines: 1, leaseSeconds: 3600 }
  const given = row({
    policy,
    customer: { email: 'ada@example.com' },
    machines: [{ machineId: 'known' }],
    key: 'SLOT-1',
  })
  const { licenses } = expectBody(await send([given]), 200, importedLicenses)
  const { rows } = await harness.database.pool.query(
    `select lease_ends_at > now() + interval '50 minutes' as leased from machines where machine_id = 'known'`,
  )
  expect(rows).toEqual([{ leased: true }])
  const licenseId = uuidToBytes(licenses[0]?.id ?? '')
  const claims = ['known', 'other'].map((name) => ({ licenseId, machineId: Buffer.from(name), hostname: null }))
  const answers = await claimSlots(harness.database.pool, claims)
  expect(answers.map(({ outcome: one }) => one)).toEqual(['known', 'limit'])
})

test('lists every row with its field and the reason, and creates nothing', async () => {
  const before = (await customersWith('new@example.com')).length
  const response = await send(
    [
      row({ customer: { email: 'new@example.com' }, status: 'expired' }),
      row({ customer: { email: 'new@example.com' } }),
      row({
        customer: { email: 'new@example.com' },
        policy: { type: 'PERPETUAL', maxMachines: 1 },
        machines: [{ machineId: 'a' }, { machineId: 'b' }],
      }),
      row({ customer: { email: 'new@example.com' }, machines: [{ machineId: 'a' }, { machineId: 'a' }] }),
      row({}),
      row({ customer: { name: 'Nobody' } }),
      row({ customer: { externalId: 'unknown' } }),
      row({ customer: { email: 'new@example.com' }, machines: [{ machineId: '' }] }),
    ],
    { createCustomers: true },
  )
  expect(outcome(response)).toBe('422 INVALID_REQUEST')
  expect(errorsOf(response)).toMatchObject({
    errors: [
      { pointer: '#/licenses/0/status' },
      { pointer: '#/licenses/2/machines', detail: 'has 2 machines, and the license has 1 slots' },
      { pointer: '#/licenses/3/machines', detail: 'must name each machine once' },
      { pointer: '#/licenses/4/customerId' },
      { pointer: '#/licenses/5/customer' },
      { pointer: '#/licenses/6/customer' },
      { pointer: '#/licenses/7/machines/0/machineId' },
    ],
  })
  expect(await customersWith('new@example.com')).toHaveLength(before)
  const missing = await send([row({ customer: { email: 'nobody@example.com' } })])
  expect(errorsOf(missing)).toMatchObject({ errors: [{ pointer: '#/licenses/0/customer' }] })
})

test('a repeated import skips the rows whose key or external id exists', async () => {
  const customer = { email: 'again@example.com' }
  const rows = [
    row({ customer, key: 'AGAIN-1' }),
    row({ customer, externalId: 'again-2' }),
    row({ customer, key: 'AGAIN-3' }),
  ]
  const options = { createCustomers: true, skipExisting: true }
  expect(expectBody(await send(rows.slice(0, 2), options), 200, importedLicenses)).toMatchObject({ created: 2 })
  const again = expectBody(await send(rows, options), 200, importedLicenses)
  expect(again).toMatchObject({
    created: 1,
    skipped: 2,
    createdCustomers: 0,
    licenses: [{ key: 'AGAIN-3', pointer: '#/licenses/2' }],
  })
  expect(expectBody(await send(rows, options), 200, importedLicenses)).toMatchObject({ created: 0, skipped: 3 })
  expect(await customersWith('again@example.com')).toHaveLength(1)
  expect(outcome(await send(rows.slice(0, 1)))).toBe('409 LICENSE_KEY_EXISTS')
  const two = await send([row({ customer, key: 'AGAIN-1', externalId: 'again-2' })], options)
  expect(errorsOf(two)).toMatchObject({
    errors: [{ pointer: '#/licenses/0/externalId' }, { pointer: '#/licenses/0/key' }],
  })
})

test('names no customer of another organization, and needs the permission for customers', async () => {
  const other = await createVendor(harness)
  await other.customer({ email: 'theirs@example.com', externalId: 'theirs' })
  for (const customer of [{ email: 'theirs@example.com' }, { externalId: 'theirs' }])
    expect(errorsOf(await send([row({ customer })]))).toMatchObject({ errors: [{ pointer: '#/licenses/0/customer' }] })
  const body = { name: 'limited', permissions: ['licenses.read', 'licenses.write', 'customers.read'] }
  const created = await vendor.call('POST', 'tokens', { body })
  const limited = harness.as(/"secret":"([^"]+)"/.exec(created.text)?.[1] ?? '')
  const licenses = [row({ customer: { email: 'ada@example.com' } })]
  const attempt = (createCustomers: boolean) =>
    limited('POST', 'licenses/import', { body: { licenses, createCustomers } })
  expect(outcome(await attempt(true))).toBe('403 FORBIDDEN')
  expect(outcome(await attempt(false))).toBe('200')
})

test('1,000 rows with new customers and 10,000 machines are imported, and one machine more is rejected', async () => {
  const own = await createVendor(harness)
  const product = await own.product()
  const machines = (at: number) => Array.from({ length: 10 }, (_, n) => ({ machineId: `m-${at}-${n}` }))
  const rows = Array.from({ length: 1_000 }, (_, at) => ({
    productId: product,
    customer: { email: `c${at}@example.com` },
    policy: { type: 'PERPETUAL' },
    machines: machines(at),
  }))
  const more = rows.map((one, at) => (at < 999 ? one : { ...one, machines: [...one.machines, { machineId: 'more' }] }))
  expect(errorsOf(await send(more, { createCustomers: true }, own))).toMatchObject({
    errors: [{ pointer: '#/licenses/999/machines' }],
  })
  const all = expectBody(await send(rows, { createCustomers: true }, own), 200, importedLicenses)
  expect(all).toMatchObject({ created: 1_000, createdCustomers: 1_000 })
  const { rows: used } = await harness.database.pool.query(
    'select sum(used)::integer as used from license_slots s join licenses l on l.id = s.license_id where l.organization_id = $1',
    [own.id],
  )
  expect(used).toEqual([{ used: 10_000 }])
  // One occurrence has all machines, and its events are written in several statements.
  const events = async () =>
    (
      await harness.database.pool.query(
        `select count(*)::integer as events, count(distinct data -> 'resource' ->> 'machineId')::integer as machines
         from events where organization_id = $1 and type = 'machine.activated'`,
        [own.id],
      )
    ).rows
  await expect.poll(events, { timeout: 60_000, interval: 200 }).toEqual([{ events: 10_000, machines: 10_000 }])
}, 120_000)

test('a row of an export is the row of an import', () => {
  const record = {
    id: 'x',
    key: "'=1",
    status: 'expired',
    productId: 'p',
    customerId: 'c',
    externalId: '',
    type: 'SUBSCRIPTION',
    expiresAt: '2020-01-01T00:00:00.000Z',
    durationDays: '30',
    maxMachines: '5',
    usedMachines: '2',
    entitlements: '{"sso":false}',
    metadata: '{"a":1}',
    createdAt: '2020-01-01T00:00:00.000Z',
  }
  expect(licenseOfCells(record)).toEqual({
    key: '=1',
    status: 'active',
    productId: 'p',
    customerId: 'c',
    policy: { type: 'SUBSCRIPTION', expiresAt: '2020-01-01T00:00:00.000Z', maxMachines: 5 },
    entitlements: { sso: false },
    metadata: { a: 1 },
  })
  expect(
    licenseOfCells({
      email: 'a@b.c',
      name: 'A',
      expiresAt: '2030-01-01',
      machines: 'm 1\r\nm2',
      order: '7',
      'due;x': 'y',
    }),
  ).toEqual({
    customer: { email: 'a@b.c', name: 'A' },
    policy: { type: 'SUBSCRIPTION', expiresAt: '2030-01-01T00:00:00Z' },
    machines: [{ machineId: 'm 1' }, { machineId: 'm2' }],
    metadata: { order: '7', 'due;x': 'y' },
  })
  expect(licenseOfCells({ machines: '[{"machineId":"a\\nb"}]', metadata: 'no json' })).toMatchObject({
    machines: [{ machineId: 'a\nb' }],
    metadata: 'no json',
  })
})

test('an import of an export reproduces licenses whose values differ from their template', async () => {
  const own = await createVendor(harness)
  const [customerId, product] = [await own.customer(), await own.product()]
  const policy = {
    type: 'SUBSCRIPTION',
    maxMachines: 3,
    durationDays: 30,
    maxReleases: 2,
    leaseSeconds: 600,
    graceDays: 7,
    fileDays: 60,
  }
  const template = await own.call('POST', `products/${product}/templates`, {
    body: { name: 'T', policy, entitlements: { sso: true }, metadata: { a: 1 } },
  })
  const { id: templateId } = expectBody(template, 201, z.looseObject({ id: z.uuid() }))
  const none = { maxMachines: null, maxReleases: null, leaseSeconds: null, fileDays: null, durationDays: null }
  const issued = { templateId, customerId }
  await own.license({ ...issued, productId: product, policy: undefined, externalId: 'e-1' })
  await own.license({ ...issued, productId: product, policy: { ...none, expiresAt: '2099-01-01T00:00:00.000Z' } })
  const different = { policy: { ...none, type: 'PERPETUAL', graceDays: 0 }, entitlements: {}, metadata: {} }
  const { id } = await own.license({ ...issued, productId: product, ...different })
  await own.call('POST', `licenses/${id}/suspend`)
  const content = async () => {
    const { data } = expectBody(await own.call('GET', 'licenses'), 200, page(licenseSchema))
    return data
      .map(({ id: _id, createdAt: _c, updatedAt: _u, suspendedAt, ...rest }) => [rest, suspendedAt !== null] as const)
      .toSorted(([a], [b]) => (a.key < b.key ? -1 : 1))
  }
  const before = await content()
  const csv = parseCsv((await own.call('GET', 'licenses/export')).text).map(licenseOfCells)
  const json = (await own.call('GET', 'licenses/export?format=jsonl')).text
    .trim()
    .split('\n')
    .map((line) => licenseOfJson(z.record(z.string(), z.unknown()).parse(JSON.parse(line))))
  for (const rows of [csv, json]) {
    for (const one of expectBody(await own.call('GET', 'licenses'), 200, page(licenseSchema)).data)
      await own.call('DELETE', `licenses/${one.id}`)
    expect(expectBody(await send(rows, {}, own), 200, importedLicenses).created).toBe(3)
    expect(await content()).toEqual(before)
  }
})

test('a column beside the metadata is an error', async () => {
  const cells = { productId, customerId: await vendor.customer(), type: 'PERPETUAL', note: 'x', metadata: '{"a":1}' }
  const rejected = await send([licenseOfCells(cells)])
  expect(outcome(rejected)).toBe('422 INVALID_REQUEST')
  expect(rejected.text).toContain('note')
})

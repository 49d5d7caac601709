/** Tests the exports of lists (docs/api.md#m19). */

import { connect } from 'node:net'

import { page } from '@keyward/contract'
import { auditEntry } from '@keyward/contract/management/audit'
import { readCell } from '@keyward/contract/text'
import { insertMachine } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { parseCsv } from '../support/csv.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor
let other: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
  other = await createVendor(harness)
})
afterAll(() => harness.close())

const HOSTILE = ['=1+1', '+1', '-1', '@SUM(A1)', "'=1", '"a";b,c', 'é ü', ' a ']

async function csv(path: string, by = vendor) {
  return parseCsv((await by.call('GET', path)).text)
}

async function lines(path: string, by = vendor): Promise<unknown[]> {
  const { text } = await by.call('GET', path)
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line): unknown => JSON.parse(line))
}

test('a cell is harmless in a spreadsheet, and reads as it was stored', async () => {
  const own = await createVendor(harness)
  for (const name of HOSTILE) await own.customer({ name, metadata: { '=a': `"${name}\n;` } })
  const { text, headers } = await own.call('GET', 'customers/export')
  expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(headers.get('content-disposition')).toBe('attachment; filename="customers.csv"')
  expect(text).toMatch(/^id,email,name,externalId,metadata,createdAt,updatedAt\r\n/)
  const cells = await csv('customers/export', own)
  expect(cells.map(({ name = '' }) => readCell(name)).toReversed()).toEqual(HOSTILE)
  expect(cells.flatMap((row) => Object.values(row)).filter((cell) => /^[=+\-@\t\r]/.test(cell))).toEqual([])
  expect(cells.map(({ metadata = '' }): unknown => JSON.parse(metadata)).at(-1)).toEqual({ '=a': '"=1+1\n;' })
})

test('a tab, a carriage return or another control character of an app is escaped', async () => {
  const own = await createVendor(harness)
  const license = await own.license()
  for (const machineId of ['\t=1', '\r=1', '\u0000', '\u202eabc', '\u001b[2J']) {
    await insertMachine(harness.database.pool, { licenseId: license.id, machineId })
  }
  const { text } = await own.call('GET', 'machines/export')
  for (const unsafe of ['\t', '\u0000', '\u001b', '\u202e']) expect(text).not.toContain(unsafe)
  expect(text.replaceAll('\r\n', '')).not.toContain('\r')
  const found = (await csv('machines/export', own)).map(({ machineId = '' }) => readCell(machineId))
  expect(found.toSorted()).toEqual(['\u0000', '\t=1', '\r=1', '\u001b[2J', '\u202eabc'])
})

test('each export has the items of its list and its filters, and nothing of another organization', async () => {
  await other.license({ key: 'OTHER-1' })
  const [first, second] = [await vendor.license({ key: 'A-1' }), await vendor.license({ key: 'A-2' })]
  const { id } = first
  await insertMachine(harness.database.pool, { licenseId: id, machineId: 'm1' })
  await vendor.call('POST', `licenses/${id}/suspend`, { body: { reason: 'test' } })
  const all = await lines('licenses/export?format=jsonl')
  expect(all).toEqual([second, (await vendor.call('GET', `licenses/${id}`)).body])
  expect(await csv('licenses/export?status=suspended')).toMatchObject([
    { id, key: 'A-1', status: 'suspended', type: 'PERPETUAL', maxMachines: '5', usedMachines: '1', metadata: '{}' },
  ])
  expect(await csv('licenses/export?email=nobody@example.com')).toEqual([])
  expect(await csv(`licenses/export?productId=${first.productId}`, other)).toEqual([])
  expect(await csv('machines/export?machineId=m1')).toMatchObject([{ machineId: 'm1', licenseId: id }])
  expect(await lines('machines/export?format=jsonl&machineId=m1', other)).toEqual([])
  expect(await lines('customers/export?format=jsonl')).toHaveLength(2)
  expect(await lines('activity/export?format=jsonl&type=LICENSE_SUSPENDED')).toMatchObject([{ licenseId: id }])
  const [entry] = await csv('audit-log/export?action=license.suspended')
  expect(entry).toMatchObject({
    resourceId: id,
    actorType: 'MANAGEMENT_TOKEN',
    changes: '{"reason":"test","status":"suspended"}',
  })
  for (const path of ['licenses/export?format=xml', 'licenses/export?status=', 'customers/export?sort=email'])
    expect(outcome(await vendor.call('GET', path))).toBe('422 INVALID_REQUEST')
})

test('an export has an audit entry with its filter, and a HEAD has none', async () => {
  const own = await createVendor(harness)
  await own.call('HEAD', 'licenses/export')
  await own.call('GET', 'licenses/export?format=jsonl&status=active')
  await own.call('GET', 'access-rules/export?kind=BLACKLIST')
  const { data } = expectBody(await own.call('GET', 'audit-log?limit=2'), 200, page(auditEntry))
  expect(data).toMatchObject([
    { action: 'access_rule.exported', resourceId: null, changes: { format: 'json', kind: 'BLACKLIST' } },
    { action: 'license.exported', changes: { format: 'jsonl', status: 'active' } },
  ])
})

test('an aborted download and a failed one release their places, and the caller can tell', async () => {
  const own = await createVendor(harness)
  const { pool } = harness.database
  await pool.query(
    `insert into customers (id, organization_id, email, metadata) select gen_random_uuid(), $1, 'c' || n || '@example.com',
       jsonb_build_object('note', repeat('x', 2000)) from generate_series(1, 20000) n`,
    [own.id],
  )
  const url = new URL(harness.origin)
  const path = '/api/v1/customers/export'
  const open = () =>
    new Promise<ReturnType<typeof connect>>((resolve) => {
      const socket = connect(Number(url.port), url.hostname, () =>
        socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${own.managementToken}\r\n\r\n`),
      )
      // The rest stays unread, so the service waits.
      socket.once('readable', () => resolve(socket))
    })
  const sockets = [await open(), await open()]
  expect(outcome(await own.call('GET', 'customers/export'))).toBe('429 RATE_LIMITED')
  expect(outcome(await other.call('GET', 'customers/export'))).toBe('200')
  for (const socket of sockets) socket.destroy()
  await expect.poll(async () => outcome(await own.call('HEAD', 'customers/export'))).toBe('200')

  const headers = { authorization: `Bearer ${own.managementToken}` }
  const response = await fetch(new URL(path, url), { headers })
  const reader = response.body!.getReader()
  await reader.read()
  await pool.query('alter table customers rename to customers_elsewhere')
  const rest = async () => {
    for (;;) if ((await reader.read()).done) return 'complete'
  }
  await expect(rest()).rejects.toThrow('terminated')
  await pool.query('alter table customers_elsewhere rename to customers')
  await expect.poll(async () => outcome(await own.call('GET', 'customers/export?email=c1@example.com'))).toBe('200')
}, 60_000)

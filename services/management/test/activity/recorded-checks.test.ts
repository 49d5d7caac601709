/** Tests activity, alerts and analytics as vendors read them. The tests insert the rows that validators would write. */

import { activityEntry, alert } from '@keyward/contract/management/activity'
import { checkCounts } from '@keyward/contract/management/analytics'
import { uuidv7 } from '@keyward/database'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarness } from '../support/harness.ts'
import { insertMachine } from '../support/requests.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const pageOf = <Schema extends z.ZodType>(schema: Schema) => z.object({ data: z.array(schema), nextCursor: z.null() })
const query = (sql: string, values: unknown[]) => harness.database.pool.query(sql, values)

test('lists activity and audit entries of an actor that only a later version knows', async () => {
  const own = await createVendor(harness)
  const { id } = await own.license()
  const actor = JSON.stringify({ type: 'ROBOT', id: 'r2' })
  await query(
    `insert into activity (at, id, organization_id, license_id, type, count, first_at, last_at, actor)
     values (date_trunc('minute', now()), new_id(), $1, $2, 'LICENSE_CHANGED', 1, now(), now(), $3)`,
    [own.id, id, actor],
  )
  await query(
    `insert into audit_log (id, organization_id, actor, action, resource_type, resource_id)
     values (new_id(), $1, $3, 'license.changed', 'license', $2)`,
    [own.id, id, actor],
  )
  for (const path of [`licenses/${id}/activity`, `audit-log?resourceId=${id}`])
    expect((await own.call('GET', path)).body).toMatchObject({
      data: [{ actor: { type: 'SYSTEM', name: 'an actor of a later version' } }, {}],
    })
})

test('lists changes, machines and checks in the activity of a license', async () => {
  const license = await vendor.license()
  await vendor.call('POST', `licenses/${license.id}/suspend`)
  await vendor.call('PATCH', `licenses/${license.id}`, { body: { metadata: { a: 1 } } })
  const machine = await insertMachine({ harness, vendor }, license.id, 'm1')
  expect((await vendor.call('DELETE', `licenses/${license.id}/machines/${machine}`)).status).toBe(204)
  await query(
    `insert into activity (at, id, organization_id, license_id, type, code, machine_id, count, first_at, last_at)
     values (date_trunc('minute', now()), new_id(), $1, $2, 'CHECK', 'SUSPENDED', 'm1', 17, now(), now())`,
    [vendor.id, license.id],
  )
  const response = await vendor.call('GET', `licenses/${license.id}/activity`)
  const { data } = expectBody(response, 200, pageOf(activityEntry))
  expect(data.map((entry) => entry.type)).toEqual([
    'CHECK',
    'MACHINE_RELEASED',
    'LICENSE_CHANGED',
    'LICENSE_SUSPENDED',
    'LICENSE_CREATED',
  ])
  expect(data[0]).toMatchObject({ code: 'SUSPENDED', machineId: 'm1', count: 17 })
  expect(data[1]).toMatchObject({ machineId: 'm1', actor: { type: 'MANAGEMENT_TOKEN' } })
  const all = expectBody(await vendor.call('GET', 'activity'), 200, pageOf(activityEntry))
  expect(all.data).toEqual(data)
})

test('keeps the first acknowledgement of an alert', async () => {
  const license = await vendor.license()
  const id = uuidv7()
  await query(
    'insert into alerts (id, organization_id, license_id, count, first_at, last_at) values ($1, $2, $3, 9, now(), now())',
    [id, vendor.id, license.id],
  )
  const { data } = expectBody(await vendor.call('GET', 'alerts'), 200, pageOf(alert))
  expect(data).toMatchObject([{ id, kind: 'OVERUSE', licenseId: license.id, count: 9, acknowledgedAt: null }])
  const first = expectBody(await vendor.call('POST', `alerts/${id}/acknowledge`), 200, alert)
  expect(first.acknowledgedAt).not.toBeNull()
  expect(expectBody(await vendor.call('POST', `alerts/${id}/acknowledge`), 200, alert)).toEqual(first)
})

test('counts checks by hour, day, code and product', async () => {
  const productId = await vendor.product()
  const now = new Date()
  // The month before last has no counts yet and is within the retention.
  const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 2)).toISOString().slice(0, 7)
  const rows: [string, string | null, string, number][] = [
    [`${month}-01T22:00:00Z`, productId, 'VALID', 5],
    [`${month}-01T23:00:00Z`, productId, 'EXPIRED', 2],
    [`${month}-02T00:00:00Z`, null, 'NOT_FOUND', 1],
  ]
  await query(`select ensure_partition('check_counts', $1)`, [rows[0]?.[0]])
  for (const row of rows)
    await query(
      'insert into check_counts (hour, organization_id, product_id, code, count) values ($1, $5, $2, $3, $4)',
      [...row, vendor.id],
    )
  const span = `from=${month}-01T00:00:00Z&to=${month}-03T00:00:00Z`
  const count = async (more: string) =>
    expectBody(await vendor.call('GET', `analytics/checks?${span}${more}`), 200, checkCounts).data
  const [day1, day2] = [`${month}-01T00:00:00.000Z`, `${month}-02T00:00:00.000Z`]
  expect(await count('')).toEqual([
    { start: day1, count: 7 },
    { start: day2, count: 1 },
  ])
  // In a zone that is ahead of UTC by two hours, all three hours belong to the second day.
  expect(await count('&timeZone=Africa/Maputo')).toEqual(
    [`${day1.slice(0, 8)}01`, `${day1.slice(0, 8)}02`, `${day1.slice(0, 8)}03`].map((date, i) => ({
      start: new Date(Date.parse(`${date}T00:00:00+02:00`)).toISOString(),
      count: i === 1 ? 8 : 0,
    })),
  )
  expect(await count('&groupBy=code')).toEqual([
    { start: day1, code: 'EXPIRED', count: 2 },
    { start: day1, code: 'NOT_FOUND', count: 0 },
    { start: day1, code: 'VALID', count: 5 },
    { start: day2, code: 'EXPIRED', count: 0 },
    { start: day2, code: 'NOT_FOUND', count: 1 },
    { start: day2, code: 'VALID', count: 0 },
  ])
  expect(await count('&groupBy=product')).toEqual([
    { start: day1, productId, count: 7 },
    { start: day1, productId: null, count: 0 },
    { start: day2, productId, count: 0 },
    { start: day2, productId: null, count: 1 },
  ])
  const hours = await count(`&interval=hour&productId=${productId}`)
  expect(hours).toHaveLength(48)
  expect(hours.filter((bucket) => bucket.count > 0)).toEqual([
    { start: `${month}-01T22:00:00.000Z`, count: 5 },
    { start: `${month}-01T23:00:00.000Z`, count: 2 },
  ])
  // An hour is counted when its beginning is in the period.
  const part = `from=${month}-01T22:30:00Z&to=${month}-02T00:30:00Z&interval=hour`
  const inPart = await vendor.call('GET', `analytics/checks?${part}`)
  expect(expectBody(inPart, 200, checkCounts).data.map((bucket) => bucket.count)).toEqual([2, 1])
  const other = await createVendor(harness)
  expect(
    expectBody(await other.call('GET', `analytics/checks?${span}`), 200, checkCounts).data.map(
      (bucket) => bucket.count,
    ),
  ).toEqual([0, 0])
  const outcomeOf = async (more: string) => outcome(await vendor.call('GET', `analytics/checks?${more}`))
  expect(await outcomeOf(`from=${month}-03T00:00:00Z&to=${month}-01T00:00:00Z`)).toBe('422 INVALID_REQUEST')
  for (const zone of ['', 'Mars/Olympus', 'x'.repeat(65)])
    expect(await outcomeOf(`timeZone=${zone}`)).toBe('422 INVALID_REQUEST')
  expect(await outcomeOf('from=2026-01-01T00:00:00Z&to=2026-03-01T00:00:00Z&interval=hour')).toBe('422 INVALID_REQUEST')
})

/** Tests `Prefer: wait`, which compares the snapshots that validators write, and the operator's list of validators. */

import { setTimeout as sleep } from 'node:timers/promises'

import { propagationStatus } from '@keyward/contract/management/propagation'
import { validatorList } from '@keyward/contract/management/validators'
import { uuidv7 } from '@keyward/database'
import { insertMachine } from '@keyward/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { parsePrefer } from '../../src/http/propagation.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
beforeEach(() => harness.database.pool.query('delete from validators'))
afterAll(() => harness.close())

/** Writes the heartbeat of a validator that has applied the whole change log. */
async function report(id: string, name = id): Promise<void> {
  await harness.database.pool.query(
    `insert into validators (id, name, applied, ready) values ($1, $2, pg_current_snapshot()::text, true)
     on conflict (id) do update set applied = excluded.applied, seen_at = now()`,
    [id, name],
  )
}

const headers = (wait: number) => ({ prefer: `wait=${wait}` })
let counter = 0
const newRule = () => ({ kind: 'BLACKLIST', type: 'HWID', value: `m${++counter}`, scope: 'ORGANIZATION' })
const create = (wait: number) => vendor.call('POST', 'access-rules', { body: newRule(), headers: headers(wait) })

test('Prefer: wait delays the response until every live validator has applied the change', async () => {
  const ids = [uuidv7(), uuidv7()]
  await Promise.all(ids.map((id) => report(id)))
  let isResponded = false
  const pending = create(10).finally(() => (isResponded = true))
  const value = `m${counter}`
  const isCommitted = async () =>
    (await harness.database.pool.query('select from access_rules where value = $1', [Buffer.from(value)])).rowCount ===
    1
  while (!(await isCommitted())) await sleep(10)
  // The validators are live but have not applied the change.
  await harness.database.pool.query('update validators set seen_at = now()')
  await sleep(200)
  expect(isResponded).toBe(false)
  await Promise.all(ids.map((id) => report(id)))
  const response = await pending
  expect(response.status).toBe(201)
  expect(response.headers.get('preference-applied')).toBe('wait')
  expect(response.headers.get('x-applied-by')).toBe('2/2')
})

test('keeps the change at the timeout and reports how many validators have applied it', async () => {
  await report(uuidv7())
  const response = await create(1)
  expect(response.status).toBe(201)
  expect(response.headers.get('x-applied-by')).toBe('0/1')
})

test('does not wait for a large change of another organization', async () => {
  const id = uuidv7()
  await report(id)
  /** Writes a heartbeat in which a later snapshot is applied for all organizations except one. */
  const reportExcept = (organizationId: string, applied = 'applied') =>
    harness.database.pool.query(
      `update validators set seen_at = now(), applied = ${applied}, details = jsonb_build_object('others',
         jsonb_build_object('snapshot', pg_current_snapshot()::text, 'except', jsonb_build_array($2::text))) where id = $1`,
      [id, organizationId],
    )
  const again = async () => (await create(0)).headers.get('x-applied-by')
  const { id: ruleId } = await vendor.rule(newRule())
  const remove = (wait: number) => vendor.call('DELETE', `access-rules/${ruleId}`, { headers: headers(wait) })
  const pending = remove(10)
  const isGone = async () =>
    (await harness.database.pool.query('select from access_rules where id = $1', [ruleId])).rowCount === 0
  while (!(await isGone())) await sleep(10)
  await reportExcept(vendor.id)
  expect(await again()).toBe('0/1')
  // The snapshots belong to another server.
  await reportExcept(uuidv7(), `'1:1:'`)
  expect(await again()).toBe('0/1')
  await reportExcept(uuidv7(), `'10:10:'`)
  expect((await pending).headers.get('x-applied-by')).toBe('1/1')
})

test('does not wait without a validator, without a change, or without the header', async () => {
  expect((await create(10)).headers.get('x-applied-by')).toBe('0/0')
  const { id } = await vendor.license()
  await vendor.call('POST', `licenses/${id}/suspend`)
  await report(uuidv7())
  const again = await vendor.call('POST', `licenses/${id}/suspend`, { headers: headers(10) })
  expect(again.headers.get('x-applied-by')).toBe('1/1')
  const unasked = await vendor.call('POST', 'access-rules', { body: newRule() })
  expect(unasked.headers.get('preference-applied')).toBeNull()
})

test('does not wait after an error, even when the error response is replayed', async () => {
  await report(uuidv7())
  const body = newRule()
  await vendor.call('POST', 'access-rules', { body })
  for (const key of [{}, { 'idempotency-key': 'rejected' }, { 'idempotency-key': 'rejected' }]) {
    const response = await vendor.call('POST', 'access-rules', { body, headers: { ...headers(10), ...key } })
    expect(response.status).toBe(409)
    expect(response.headers.get('preference-applied')).toBeNull()
    expect(response.headers.get('x-applied-by')).toBeNull()
  }
})

test('waits for deletions that cascade to access rules', async () => {
  await report(uuidv7())
  const [product, customer, license] = [await vendor.product(), await vendor.customer(), (await vendor.license()).id]
  for (const path of [`products/${product}`, `customers/${customer}`, `licenses/${license}`]) {
    const response = await vendor.call('DELETE', path, { headers: headers(0) })
    expect([path, response.status, response.headers.get('x-applied-by')]).toEqual([path, 204, '0/1'])
  }
})

test('parses the header as RFC 7240 requires', () => {
  expect(parsePrefer('wait=3')).toBe(3)
  expect(parsePrefer('respond-async, wait=100')).toBe(10)
  expect(parsePrefer('handling=lenient; wait = "2"')).toBe(2)
  for (const header of [undefined, '', 'wait', 'wait=x', 'await=3', 'wait=-1']) expect(parsePrefer(header)).toBeNull()
})

test('lists live validators with their applied snapshots and their lag', async () => {
  const [late, current, dead] = [uuidv7(), uuidv7(), uuidv7()]
  await report(late, 'late')
  await vendor.rule(newRule())
  await vendor.rule(newRule())
  await report(current, 'current')
  await report(dead, 'dead')
  await harness.database.pool.query(`update validators set seen_at = now() - interval '1 minute' where id = $1`, [dead])
  const { data } = expectBody(await harness.call('GET', 'validators'), 200, validatorList)
  expect(data.map(({ name, behindBy }) => [name, behindBy])).toEqual([
    ['current', 0],
    ['late', 2],
  ])
  const { rows } = await harness.database.pool.query<{ applied: string }>(
    `select applied from validators where name in ('late', 'current') order by name`,
  )
  expect(data.map(({ applied }) => applied)).toEqual(rows.map(({ applied }) => applied))
  await harness.database.pool.query(`update validators set applied = null`)
  const loading = expectBody(await harness.call('GET', 'validators'), 200, validatorList)
  expect(loading.data[0]).toMatchObject({ applied: null, behindBy: null })
})

test('reads the state of validators with one statement for all waiting requests', async () => {
  await report(uuidv7())
  let statements = 0
  const waits = Array.from({ length: 20 }, () => create(1))
  const read = async () => {
    const { rows } = await harness.database.pool.query<{ count: number }>(
      `select count(*)::integer as count from pg_stat_activity
       where datname = current_database() and query like '%pg_visible_in_snapshot%' and pid <> pg_backend_pid()
         and state = 'active'`,
    )
    statements = Math.max(statements, rows[0]?.count ?? 0)
  }
  const all = Promise.all(waits)
  for (let i = 0; i < 100; i++) await read()
  for (const response of await all) expect(response.headers.get('x-applied-by')).toBe('0/1')
  expect(statements).toBeLessThanOrEqual(1)
})

test('shows a vendor how many validators have applied its changes, and nothing about other organizations', async () => {
  const read = async (of: Vendor) => expectBody(await of.call('GET', 'propagation'), 200, propagationStatus)
  expect(await read(vendor)).toEqual({ validators: 0, current: 0, behindBy: 0 })
  const [first, second] = [uuidv7(), uuidv7()]
  const stranger = await createVendor(harness)
  await Promise.all([report(first), report(second)])
  for (let i = 0; i < 2; i++) await vendor.call('POST', 'access-rules', { body: newRule() })
  expect(await read(vendor)).toEqual({ validators: 2, current: 0, behindBy: 2 })
  expect(await read(stranger)).toEqual({ validators: 2, current: 2, behindBy: 0 })
  await report(first)
  expect(await read(vendor)).toEqual({ validators: 2, current: 1, behindBy: 2 })
  await report(second)
  const { id } = await vendor.license()
  await Promise.all([report(first), report(second)])
  await insertMachine(harness.database.pool, { licenseId: id, machineId: 'm' })
  expect(await read(vendor)).toEqual({ validators: 2, current: 2, behindBy: 0 })
  await harness.database.pool.query(`update validators set seen_at = now() - interval '1 minute' where id = $1`, [
    first,
  ])
  expect(await read(vendor)).toEqual({ validators: 1, current: 1, behindBy: 0 })
})

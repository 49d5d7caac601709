/** `Prefer: wait`, told by the snapshots that validators write down, and the operator's list of validators. */
import { setTimeout as sleep } from 'node:timers/promises'

import { validatorList } from '@keyward/contract'
import { uuidv7 } from '@keyward/database'
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

/** What a validator writes once it has read the change log up to now. */
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

test('the answer comes when every live validator has applied the change', async () => {
  const ids = [uuidv7(), uuidv7()]
  await Promise.all(ids.map((id) => report(id)))
  let answered = false
  const pending = create(10).finally(() => (answered = true))
  const value = `m${counter}`
  const isCommitted = async () =>
    (await harness.database.pool.query('select from access_rules where value = $1', [Buffer.from(value)])).rowCount ===
    1
  while (!(await isCommitted())) await sleep(10)
  // They live, but have not read on.
  await harness.database.pool.query('update validators set seen_at = now()')
  await sleep(200)
  expect(answered).toBe(false)
  await Promise.all(ids.map((id) => report(id)))
  const answer = await pending
  expect(answer.status).toBe(201)
  expect(answer.headers.get('preference-applied')).toBe('wait')
  expect(answer.headers.get('x-applied-by')).toBe('2/2')
})

test('when time runs out the change stands, and the header says how many have it', async () => {
  await report(uuidv7())
  const answer = await create(1)
  expect(answer.status).toBe(201)
  expect(answer.headers.get('x-applied-by')).toBe('0/1')
})

test('no validator and a change of nothing do not wait; nobody waits unasked', async () => {
  expect((await create(10)).headers.get('x-applied-by')).toBe('0/0')
  const { id } = await vendor.license()
  await vendor.call('POST', `licenses/${id}/suspend`)
  await report(uuidv7())
  const again = await vendor.call('POST', `licenses/${id}/suspend`, { headers: headers(10) })
  expect(again.headers.get('x-applied-by')).toBe('1/1')
  const unasked = await vendor.call('POST', 'access-rules', { body: newRule() })
  expect(unasked.headers.get('preference-applied')).toBeNull()
})

test('a refusal waits for nobody and claims nothing, also one that is kept for a repeat', async () => {
  await report(uuidv7())
  const body = newRule()
  await vendor.call('POST', 'access-rules', { body })
  for (const key of [{}, { 'idempotency-key': 'refused' }, { 'idempotency-key': 'refused' }]) {
    const answer = await vendor.call('POST', 'access-rules', { body, headers: { ...headers(10), ...key } })
    expect(answer.status).toBe(409)
    expect(answer.headers.get('preference-applied')).toBeNull()
    expect(answer.headers.get('x-applied-by')).toBeNull()
  }
})

test('what takes access rules along waits as a change of them does', async () => {
  await report(uuidv7())
  const [product, customer, license] = [await vendor.product(), await vendor.customer(), (await vendor.license()).id]
  for (const path of [`products/${product}`, `customers/${customer}`, `licenses/${license}`]) {
    const answer = await vendor.call('DELETE', path, { headers: headers(0) })
    expect([path, answer.status, answer.headers.get('x-applied-by')]).toEqual([path, 204, '0/1'])
  }
})

test('the preference is read as RFC 7240 has it', () => {
  expect(parsePrefer('wait=3')).toBe(3)
  expect(parsePrefer('respond-async, wait=100')).toBe(10)
  expect(parsePrefer('handling=lenient; wait = "2"')).toBe(2)
  for (const header of [undefined, '', 'wait', 'wait=x', 'await=3', 'wait=-1']) expect(parsePrefer(header)).toBeNull()
})

test('the operator sees who is live, what each has applied and how far behind it is', async () => {
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

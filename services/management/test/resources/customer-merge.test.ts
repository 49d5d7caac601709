/**
 * Tests merges of customers (docs/api.md#m10): moved licenses and rules, equal rules that become one, matches that are written late, the
 * audit entries and events, and the old id.
 */

import { accessRule, customer as customerSchema, license as licenseSchema, page, problem } from '@keyward/contract'
import { auditEntry } from '@keyward/contract/management/audit'
import { event } from '@keyward/contract/management/events'
import { uuidToBytes, uuidv7, writeBehind } from '@keyward/database'
import { createDatabase } from '@keyward/database/kysely'
import { toActivityColumns } from '@keyward/testkit'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { applyRetention } from '../../src/retention/retention.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const merge = (id: string, into: string) => vendor.call('POST', `customers/${id}/merge`, { body: { into } })
const readRule = async (id: string) => expectBody(await vendor.call('GET', `access-rules/${id}`), 200, accessRule)

async function count(ruleId: string, matches: number, lastMatchedAt: string): Promise<void> {
  await harness.database.pool.query(
    'update access_rule_counters set match_count = $2, last_matched_at = $3 where rule_id = $1',
    [ruleId, matches, lastMatchedAt],
  )
}

test('a merge moves licenses and rules, and adds up the matches of equal rules', async () => {
  const first = await vendor.license()
  const second = await vendor.license()
  const [gone, kept] = [first.customerId, second.customerId]
  const [soon, later] = [60_000, 120_000].map((ms) => new Date(Date.now() + ms).toISOString())
  const ofCustomer = (value: string, fields: object = {}) => vendor.rule({ type: 'CUSTOMER', value, ...fields })
  const moved = await ofCustomer(gone, { scope: 'PRODUCT', scopeId: first.productId })
  const folded = await ofCustomer(gone, { expiresAt: later })
  const remaining = await ofCustomer(kept, { expiresAt: later })
  const separate = [
    await ofCustomer(gone, { mode: 'MONITOR' }),
    await ofCustomer(kept, { set: 'feed', expiresAt: soon }),
    await ofCustomer(kept),
  ]
  await count(folded.id, 3, '2026-01-02T00:00:00.000Z')
  await count(remaining.id, 4, '2026-01-01T00:00:00.000Z')
  const response = expectBody(await merge(gone, kept), 200, customerSchema)
  expect(response.id).toBe(kept)
  expect(await readRule(moved.id)).toMatchObject({ value: kept, scope: 'PRODUCT' })
  const merged = { matchCount: 7, lastMatchedAt: '2026-01-02T00:00:00.000Z', expiresAt: later }
  expect(await readRule(remaining.id)).toMatchObject(merged)
  for (const { id, mode, expiresAt, set } of separate)
    expect(await readRule(id)).toMatchObject({ value: kept, mode, expiresAt, set })
  expect((await vendor.call('GET', `access-rules/${folded.id}`)).status).toBe(404)
  const license = expectBody(await vendor.call('GET', `licenses/${first.id}`), 200, licenseSchema)
  expect(license.customerId).toBe(kept)
})

test('the audit log and the events contain all that a merge moves, changes and deletes', async () => {
  const license = await vendor.license()
  const gone = license.customerId
  await vendor.call('PATCH', `customers/${gone}`, { body: { externalId: 'crm-9', metadata: { tier: 'gold' } } })
  const kept = await vendor.customer()
  const moved = await vendor.rule({ type: 'CUSTOMER', value: gone, mode: 'MONITOR' })
  const folded = await vendor.rule({ type: 'CUSTOMER', value: gone, note: 'fraud' })
  const remaining = await vendor.rule({ type: 'CUSTOMER', value: kept })
  expect((await merge(gone, kept)).status).toBe(200)
  const entries = expectBody(await vendor.call('GET', 'audit-log?limit=2'), 200, page(auditEntry)).data
  expect(entries.map(({ action }) => action)).toEqual(['customer.changed', 'customer.merged'])
  expect(entries[0]).toMatchObject({ resourceId: kept, changes: { externalId: 'crm-9' }, before: { externalId: null } })
  expect(entries[1]).toMatchObject({
    changes: {
      into: kept,
      licenses: { count: 1, first: [{ id: license.id }] },
      movedRules: { count: 1, first: [{ id: moved.id, value: kept, mode: 'MONITOR' }] },
      foldedRules: { count: 1, first: [{ gone: folded.id, kept: remaining.id }] },
    },
    before: {
      email: 'ada@example.com',
      externalId: 'crm-9',
      metadata: { tier: 'gold' },
      movedRules: { count: 1, first: [{ id: moved.id, value: gone }] },
      foldedRules: { count: 1, first: [{ id: folded.id, value: gone, note: 'fraud' }] },
    },
  })
  const events = expectBody(await vendor.call('GET', 'events?limit=5'), 200, page(event)).data
  const found = events.map(
    ({ type, data }) => `${type} ${z.looseObject({ id: z.string() }).parse(data['resource']).id}`,
  )
  expect(found.toSorted()).toEqual([
    `access_rule.deleted ${folded.id}`,
    `access_rule.updated ${moved.id}`,
    `customer.merged ${gone}`,
    `customer.updated ${kept}`,
    `license.updated ${license.id}`,
  ])
  const mergedEvent = events.find(({ type }) => type === 'customer.merged')
  expect(mergedEvent?.data).toMatchObject({ into: kept, licenses: 1, rules: 2 })
  const updated = events.find(({ type }) => type === 'license.updated')
  expect(updated?.data).toMatchObject({ resource: { customerId: kept }, previous: { customerId: gone } })
})

test('rejects a merge that would leave more than 32 rules with the same scope', async () => {
  const [gone, kept] = [await vendor.customer(), await vendor.customer()]
  for (let i = 0; i < 34; i++) {
    const expiresAt = new Date(Date.now() + 3_600_000 + 1_000 * i).toISOString()
    await vendor.rule({ type: 'CUSTOMER', value: i % 2 === 0 ? gone : kept, expiresAt })
  }
  expect(outcome(await merge(gone, kept))).toBe('422 INVALID_REQUEST')
  expect((await vendor.call('GET', `customers/${gone}`)).status).toBe(200)
})

/** Writes matches as a validator does. */
function writeMatches(client: Pick<pg.ClientBase, 'query'>, matches: readonly { id: string; count: number }[]) {
  const rules = matches.map(({ id, count: times }) => ({ id: uuidToBytes(id), count: times, lastAtMs: Date.now() }))
  return writeBehind(client, uuidv7(), 1, {
    rules,
    checks: [],
    overuse: [],
    keyUses: [],
    hostnames: [],
    activity: toActivityColumns([]),
  })
}

test('counts matches that validators write after a merge for the kept rule, also after two merges', async () => {
  const customers = [await vendor.customer(), await vendor.customer(), await vendor.customer()] as const
  const rules = [
    await vendor.rule({ type: 'CUSTOMER', value: customers[0] }),
    await vendor.rule({ type: 'CUSTOMER', value: customers[1] }),
    await vendor.rule({ type: 'CUSTOMER', value: customers[2] }),
  ] as const
  expect((await merge(customers[0], customers[1])).status).toBe(200)
  await writeMatches(harness.database.pool, [{ id: rules[0].id, count: 3 }])
  expect((await readRule(rules[1].id)).matchCount).toBe(3)
  expect((await merge(customers[1], customers[2])).status).toBe(200)
  await writeMatches(
    harness.database.pool,
    rules.map(({ id }, i) => ({ id, count: 10 ** (i + 1) })),
  )
  expect((await readRule(rules[2].id)).matchCount).toBe(1_113)
})

/** Begins a transaction, which the test commits. `blocks` resolves when another transaction waits for this transaction. */
async function begin() {
  const client = await harness.database.pool.connect()
  await client.query('begin')
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const waiting = 'select from pg_stat_activity where datname = current_database() and $1 = any (pg_blocking_pids(pid))'
  return {
    client,
    async blocks() {
      await expect.poll(async () => (await harness.database.pool.query(waiting, [rows[0]?.pid])).rowCount).toBe(1)
    },
    async commit() {
      await client.query('commit')
      client.release()
    },
  }
}

test('keeps matches that are written during the merge', async () => {
  const [gone, kept] = [await vendor.customer(), await vendor.customer()]
  const folded = await vendor.rule({ type: 'CUSTOMER', value: gone })
  const remaining = await vendor.rule({ type: 'CUSTOMER', value: kept })
  const writer = await begin()
  await writeMatches(writer.client, [{ id: folded.id, count: 5 }])
  const merging = merge(gone, kept)
  await writer.blocks()
  await writer.commit()
  expect((await merging).status).toBe(200)
  expect((await readRule(remaining.id)).matchCount).toBe(5)
})

test('keeps the matches of a write that waits for two merges', async () => {
  const rules = []
  for (let i = 0; i < 4; i++) rules.push(await vendor.rule({ type: 'CUSTOMER', value: await vendor.customer() }))
  const [first, second, third, other] = rules.map(({ id }) => id)
  /** Changes the rules as a merge does, without a commit. */
  const fold = async (from: string | undefined, to: string | undefined) => {
    const merging = await begin()
    const lock = 'select from access_rule_counters where rule_id in ($1, $2) order by rule_id for update'
    for (const sql of [
      lock,
      `update access_rule_counters c set match_count = c.match_count + o.match_count from access_rule_counters o
       where o.rule_id = $1 and c.rule_id = $2`,
      'update folded_rules set kept = $2 where kept = $1',
      'insert into folded_rules (gone, kept) values ($1, $2)',
    ])
      await merging.client.query(sql, [from, to])
    await merging.client.query('delete from access_rules where id = $1', [from])
    return merging
  }
  const holder = await begin()
  await holder.client.query('select from access_rule_counters where rule_id = $1 for update', [other])
  const one = await fold(first, second)
  const writing = writeMatches(harness.database.pool, [
    { id: first ?? '', count: 7 },
    { id: other ?? '', count: 1 },
  ])
  await one.blocks()
  await one.commit()
  await holder.blocks()
  const two = await fold(second, third)
  await holder.commit()
  await two.blocks()
  await two.commit()
  expect(await writing).toBe('applied')
  expect((await readRule(third ?? '')).matchCount).toBe(7)
})

test('a merge does not deadlock with the deletion of the rule that the merge would keep', async () => {
  const [gone, kept] = [await vendor.customer(), await vendor.customer()]
  const moved = await vendor.rule({ type: 'CUSTOMER', value: gone })
  const deleted = await vendor.rule({ type: 'CUSTOMER', value: kept })
  const deadlocks = async () =>
    (
      await harness.database.pool.query<{ deadlocks: string }>(
        'select deadlocks from pg_stat_database where datname = current_database()',
      )
    ).rows[0]?.deadlocks
  const before = await deadlocks()
  const deleting = await begin()
  await deleting.client.query('select from access_rules where id = $1 for update', [deleted.id])
  const merging = merge(gone, kept)
  await deleting.blocks()
  await deleting.client.query('delete from access_rules where id = $1', [deleted.id])
  await deleting.commit()
  expect((await merging).status).toBe(200)
  expect(await readRule(moved.id)).toMatchObject({ value: kept })
  expect(await deadlocks()).toBe(before)
})

test('deletes the entries that map deleted rules to their duplicates after 7 days', async () => {
  const [gone, kept] = [await vendor.customer(), await vendor.customer()]
  const folded = await vendor.rule({ type: 'CUSTOMER', value: gone })
  await vendor.rule({ type: 'CUSTOMER', value: kept })
  await merge(gone, kept)
  const days = { expiredRules: 1, revokedCredentials: 1, acknowledgedAlerts: 1, audit: 1, mergedCustomers: 1 }
  const known = async () => {
    await applyRetention(createDatabase(harness.database.pool), { days })
    return (await harness.database.pool.query('select from folded_rules where gone = $1', [folded.id])).rowCount
  }
  expect(await known()).toBe(1)
  await harness.database.pool.query(`update folded_rules set folded_at = now() - interval '8 days'`)
  expect(await known()).toBe(0)
})

test('a temporary block stays temporary beside a monitored rule of the other customer', async () => {
  const [gone, kept] = [await vendor.customer(), await vendor.customer()]
  const monitored = await vendor.rule({ type: 'CUSTOMER', value: gone, mode: 'MONITOR' })
  const expiresAt = new Date(Date.now() + 60_000).toISOString()
  const temporary = await vendor.rule({ type: 'CUSTOMER', value: kept, expiresAt })
  expect((await merge(gone, kept)).status).toBe(200)
  expect(await readRule(temporary.id)).toMatchObject({ mode: 'ENFORCE', expiresAt })
  expect(await readRule(monitored.id)).toMatchObject({ mode: 'MONITOR', expiresAt: null, value: kept })
})

test('copies the external id to the remaining customer, unless that customer already has one', async () => {
  const read = async (id: string) => expectBody(await vendor.call('GET', `customers/${id}`), 200, customerSchema)
  const [gone, kept] = [await vendor.customer({ externalId: 'crm-1', name: 'Gone' }), await vendor.customer()]
  const response = expectBody(await merge(gone, kept), 200, customerSchema)
  expect(response).toMatchObject({ id: kept, externalId: 'crm-1', name: null })
  expect(await read(kept)).toEqual(response)
  const other = await vendor.customer({ externalId: 'crm-2' })
  expect(expectBody(await merge(kept, other), 200, customerSchema).externalId).toBe('crm-2')
})

test('returns 404 with the id of the remaining customer for the old id, also after a second merge', async () => {
  const [a, b, c] = [await vendor.customer(), await vendor.customer(), await vendor.customer()]
  await merge(a, b)
  await merge(b, c)
  for (const [method, path] of [
    ['GET', a],
    ['PATCH', a],
    ['DELETE', b],
    ['POST', `${b}/merge`],
  ] as const) {
    const body = method === 'POST' ? { into: c } : {}
    const response = await vendor.call(
      method,
      `customers/${path}`,
      method === 'GET' || method === 'DELETE' ? {} : { body },
    )
    expect(outcome(response)).toBe('404 NOT_FOUND')
    expect(problem.parse(response.body).mergedInto).toBe(c)
  }
})

test('rejects invalid merges', async () => {
  const mine = await vendor.customer()
  const other = await (await createVendor(harness)).customer()
  expect(outcome(await merge(mine, mine))).toBe('422 INVALID_REQUEST')
  expect(outcome(await merge(mine, other))).toBe('422 INVALID_REQUEST')
  expect(outcome(await merge(other, mine))).toBe('404 NOT_FOUND')
})

test('performs one of two opposite concurrent merges and keeps both licenses', async () => {
  for (let round = 0; round < 5; round++) {
    const [a, b] = [await vendor.license(), await vendor.license()]
    const responses = await Promise.all([merge(a.customerId, b.customerId), merge(b.customerId, a.customerId)])
    expect(responses.map((response) => response.status === 200).filter(Boolean)).toHaveLength(1)
    const owners = await Promise.all(
      [a, b].map(
        async ({ id }) => expectBody(await vendor.call('GET', `licenses/${id}`), 200, licenseSchema).customerId,
      ),
    )
    expect(new Set(owners).size).toBe(1)
  }
})

test('keeps every license that is created during a merge', async () => {
  const productId = await vendor.product()
  const [gone, kept] = [await vendor.customer(), await vendor.customer()]
  const body = { productId, customerId: gone, policy: { type: 'PERPETUAL' } }
  const creates = Array.from({ length: 20 }, () => vendor.call('POST', 'licenses', { body }))
  const [merged, ...responses] = await Promise.all([merge(gone, kept), ...creates])
  expect(merged?.status).toBe(200)
  const rejected = responses.filter((response) => response.status !== 201).map(outcome)
  expect(rejected.filter((one) => one !== '422 INVALID_REQUEST')).toEqual([])
  for (const response of responses.filter((one) => one.status === 201)) {
    const { id } = licenseSchema.parse(response.body)
    expect(expectBody(await vendor.call('GET', `licenses/${id}`), 200, licenseSchema).customerId).toBe(kept)
  }
})

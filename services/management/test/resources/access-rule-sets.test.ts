/** Tests sets of access rules: replacement by a list, versions, written differences, and rules outside the set. */

import { accessRule, accessRuleSet, page, problem, replacedRuleSet } from '@keyward/contract'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { type ApiResponse, type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.close())
beforeEach(async () => {
  vendor = await createVendor(harness)
})

const ip = (value: string, fields: object = {}): object => ({
  kind: 'BLACKLIST',
  type: 'IP',
  value,
  scope: 'ORGANIZATION',
  ...fields,
})
const inFuture = (ms: number) => new Date(Date.now() + ms).toISOString()
const put = (rules: unknown, others: object = {}, set = 'feed') =>
  vendor.call('PUT', `access-rules/sets/${set}`, { body: { rules, ...others } })
const replaced = (response: ApiResponse) => expectBody(response, 200, replacedRuleSet)
const rulesOf = async (query = 'set=feed') =>
  expectBody(await vendor.call('GET', `access-rules?limit=100&${query}`), 200, page(accessRule)).data
const readSet = async (set = 'feed') =>
  expectBody(await vendor.call('GET', `access-rules/sets/${set}`), 200, accessRuleSet)

async function changedRows(run: () => Promise<unknown>): Promise<number> {
  const { pool } = harness.database
  const count = async () => {
    const select = 'select count(*)::integer as n from change_log where organization_id = $1'
    return (await pool.query<{ n: number }>(select, [vendor.id])).rows[0]!.n
  }
  const before = await count()
  await run()
  return (await count()) - before
}

test('replaces the rules of a set with the list, and writes only the differences', async () => {
  const first = replaced(await put(['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((value) => ip(value))))
  expect(first).toMatchObject({ created: 3, updated: 0, unchanged: 0, removed: 0, skipped: 0, skippedRows: [] })
  const before = await rulesOf()
  expect(before.map(({ value, set }) => [value, set])).toEqual([
    ['192.0.2.3', 'feed'],
    ['192.0.2.2', 'feed'],
    ['192.0.2.1', 'feed'],
  ])
  const list = [ip('192.0.2.1/32'), ip('192.0.2.2', { note: 'seen twice' }), ip('::ffff:192.0.2.4')]
  let second: ReturnType<typeof replaced> | undefined
  // One removal and one addition are logged. No verdict depends on the note.
  expect(await changedRows(async () => (second = replaced(await put(list))))).toBe(2)
  expect(second).toMatchObject({ created: 1, updated: 1, unchanged: 1, removed: 1, skipped: 0 })
  expect(second!.version).not.toBe(first.version)
  const after = await rulesOf()
  expect(after.map(({ value }) => value).toSorted()).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.4'])
  const idOf = (rules: typeof before, value: string) => rules.find((rule) => rule.value === value)?.id
  for (const value of ['192.0.2.1', '192.0.2.2']) expect(idOf(after, value)).toBe(idOf(before, value))
  const { version } = second!
  expect(await changedRows(async () => put(list))).toBe(0)
  expect(replaced(await put(list))).toMatchObject({ version, unchanged: 3, created: 0, updated: 0, removed: 0 })
  expect(replaced(await put([], { allowEmpty: true }))).toMatchObject({ removed: 3, unchanged: 0 })
  expect(await readSet()).toMatchObject({ name: 'feed', rules: 0 })
})

test('updates mode, expiry and option in place, and replaces expired rules', async () => {
  const [later, muchLater] = [inFuture(60_000), inFuture(120_000)]
  const rules = (expiresAt: string, fields: object = {}) => [
    ip('192.0.2.1', { expiresAt }),
    ip('192.0.2.2', { kind: 'EXCLUSION', ...fields }),
  ]
  await put(rules(later))
  expect(replaced(await put(rules(muchLater, { allowSuspendedOrExpired: true, mode: 'MONITOR' })))).toMatchObject({
    updated: 2,
    unchanged: 0,
    removed: 0,
  })
  const [exclusion, blacklist] = await rulesOf()
  expect(exclusion).toMatchObject({ mode: 'MONITOR', allowSuspendedOrExpired: true })
  expect(blacklist).toMatchObject({ expiresAt: muchLater })
  await harness.database.pool.query(`update access_rules set expires_at = now() where id = $1`, [blacklist!.id])
  const fields = { allowSuspendedOrExpired: true, mode: 'MONITOR' }
  expect(replaced(await put(rules(muchLater, fields)))).toMatchObject({ created: 1, unchanged: 1, removed: 0 })
  expect((await rulesOf()).map(({ id }) => id)).not.toContain(blacklist!.id)
})

test('a set has its own rules beside equal rules of other sources, and skips only rows that another row covers', async () => {
  const outside = await vendor.rule({ value: '192.0.2.1', note: 'mine' })
  const expired = await vendor.rule({ value: '192.0.2.2' })
  await harness.database.pool.query(`update access_rules set expires_at = now() where id = $1`, [expired.id])
  const values = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.3/32']
  const response = replaced(await put(values.map((value) => ip(value))))
  const own = (await rulesOf()).find(({ value }) => value === '192.0.2.3')
  expect(response).toMatchObject({
    created: 3,
    skipped: 1,
    skippedRows: [{ pointer: '#/rules/3', ruleId: own?.id }],
  })
  expect(replaced(await put(values.map((value) => ip(value))))).toMatchObject({
    unchanged: 3,
    skippedRows: [{ pointer: '#/rules/3', ruleId: own?.id }],
  })
  expect((await vendor.call('GET', `access-rules/${expired.id}`)).status).toBe(404)
  expect(replaced(await put([], { allowEmpty: true }, 'other'))).toMatchObject({ created: 0, removed: 0 })
  expect(replaced(await put([], { allowEmpty: true }))).toMatchObject({ removed: 3 })
  expect(await rulesOf('')).toEqual([outside])
})

test('deletes all rules of a set only with allowEmpty', async () => {
  await put([ip('192.0.2.1'), ip('192.0.2.2')])
  const response = await put([])
  expect(outcome(response)).toBe('422 INVALID_REQUEST')
  const [error] = problem.parse(response.body).errors ?? []
  expect(error?.pointer).toBe('#/rules')
  expect(error?.detail).toContain('delete all 2 rules of the set')
  expect(await rulesOf()).toHaveLength(2)
  expect(replaced(await put([], { allowEmpty: true }))).toMatchObject({ removed: 2 })
})

test('a value that two sets contain stays in both, whichever set loses it', async () => {
  await put([ip('203.0.113.7')], {}, 'feed-a')
  expect(replaced(await put([ip('203.0.113.7')], {}, 'feed-b'))).toMatchObject({ created: 1, skipped: 0 })
  await put([ip('203.0.113.8')], {}, 'feed-a')
  expect((await rulesOf('value=203.0.113.7')).map(({ set }) => set)).toEqual(['feed-b'])
  await vendor.call('DELETE', 'access-rules/sets/feed-a')
  expect((await rulesOf('')).map(({ set, value }) => [set, value])).toEqual([['feed-b', '203.0.113.7']])
})

test('a set keeps rows that differ in mode, end or option, and changes the rest in place', async () => {
  const [soon, later] = [inFuture(60_000), inFuture(120_000)]
  const rows = [ip('192.0.2.1', { mode: 'MONITOR' }), ip('192.0.2.1', { expiresAt: soon })]
  expect(replaced(await put(rows))).toMatchObject({ created: 2, skipped: 0 })
  const before = await rulesOf()
  expect(replaced(await put(rows.toReversed()))).toMatchObject({ unchanged: 2, created: 0, removed: 0 })
  const changed = [ip('192.0.2.1', { expiresAt: later }), ip('192.0.2.1', { mode: 'MONITOR' })]
  expect(replaced(await put(changed))).toMatchObject({ updated: 1, unchanged: 1, created: 0, removed: 0 })
  const after = await rulesOf()
  expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id))
  expect(after.map(({ mode, expiresAt }) => [mode, expiresAt])).toEqual([
    ['ENFORCE', later],
    ['MONITOR', null],
  ])
  // The last row covers the first one, whatever their order.
  const covered = [ip('192.0.2.1', { expiresAt: soon }), ip('192.0.2.1', { mode: 'MONITOR' }), ip('192.0.2.1')]
  expect(replaced(await put(covered))).toMatchObject({
    updated: 1,
    unchanged: 1,
    skipped: 1,
    skippedRows: [{ pointer: '#/rules/0', ruleId: before[0]!.id }],
  })
})

test('a row that names a merged customer applies to the remaining customer', async () => {
  const [gone, kept] = [await vendor.customer(), await vendor.customer()]
  const rows = [ip(gone, { type: 'CUSTOMER' })]
  await put(rows)
  await vendor.call('POST', `customers/${gone}/merge`, { body: { into: kept } })
  expect(replaced(await put(rows))).toMatchObject({ unchanged: 1, created: 0, removed: 0 })
  expect((await rulesOf()).map(({ value }) => value)).toEqual([kept])
})

test('at most 32 rules of all sources have the same kind, type, value and scope', async () => {
  for (let i = 0; i < 32; i++) await put([ip('192.0.2.1')], {}, `feed-${i}`)
  expect(problem.parse((await put([ip('192.0.2.2'), ip('192.0.2.1')], {}, 'one-more')).body).errors).toMatchObject([
    { pointer: '#/rules/1/value' },
  ])
  const response = await vendor.call('POST', 'access-rules', { body: ip('192.0.2.1') })
  expect(problem.parse(response.body).errors).toMatchObject([{ pointer: '#/value' }])
  await vendor.call('DELETE', 'access-rules/sets/feed-0')
  expect((await put([ip('192.0.2.1')], {}, 'one-more')).status).toBe(200)
})

test('adds rules to a set one by one and by import, and lists sets newest first', async () => {
  const rule = await vendor.rule({ value: '192.0.2.1', set: 'hand-made' })
  expect(rule.set).toBe('hand-made')
  const rules = [ip('192.0.2.2', { set: 'hand-made' }), ip('192.0.2.3', { set: 'import' }), ip('192.0.2.4')]
  expect((await vendor.call('POST', 'access-rules/import', { body: { rules } })).status).toBe(200)
  const sets = expectBody(await vendor.call('GET', 'access-rules/sets'), 200, page(accessRuleSet)).data
  expect(sets.map(({ name, rules: count }) => [name, count])).toEqual([
    ['import', 1],
    ['hand-made', 2],
  ])
  expect((await rulesOf('set=hand-made')).map(({ value }) => value)).toEqual(['192.0.2.2', '192.0.2.1'])
  expect(await rulesOf('set=nothing')).toEqual([])
  const row = ip('192.0.2.9', { set: 'feed' })
  expect(problem.parse((await put([row])).body).errors?.[0]?.pointer).toBe('#/rules/0/set')
})

describe('the version', () => {
  test('a set gets a new version after every change of its rules, including cascades', async () => {
    const license = await vendor.license()
    await put([ip('192.0.2.1'), ip('192.0.2.2'), ip('192.0.2.3', { scope: 'LICENSE', scopeId: license.id })])
    const [scoped, second, first] = await rulesOf()
    const seen = [(await readSet()).version]
    const note = { body: { note: 'n' } }
    for (const change of [
      () => vendor.call('PATCH', `access-rules/${first!.id}`, note),
      () => vendor.call('DELETE', `access-rules/${second!.id}`),
      () => vendor.call('DELETE', `licenses/${license.id}`),
      () => vendor.call('POST', 'access-rules', { body: ip('192.0.2.4', { set: 'feed' }) }),
    ]) {
      expect((await change()).status).toBeLessThan(300)
      seen.push((await readSet()).version)
    }
    expect(new Set(seen).size).toBe(5)
    expect(await readSet()).toMatchObject({ rules: 2 })
    expect((await vendor.call('GET', `access-rules/${scoped!.id}`)).status).toBe(404)
    await vendor.call('PATCH', `access-rules/${first!.id}`, note)
    expect((await readSet()).version).toBe(seen.at(-1))
  })

  test('one of several concurrent writers with the same version succeeds, and the others get 412', async () => {
    const { version } = replaced(await put([ip('192.0.2.1')]))
    const lists = Array.from({ length: 6 }, (_, i) => [ip(`192.0.2.${i + 10}`)])
    const outcomes = await Promise.all(lists.map(async (rules) => outcome(await put(rules, { ifMatch: version }))))
    expect(outcomes.toSorted()).toEqual(['200', ...Array.from({ length: 5 }, () => '412 VERSION_MISMATCH')])
    expect(await rulesOf()).toHaveLength(1)
    expect(outcome(await put([], { ifMatch: null, allowEmpty: true }))).toBe('412 VERSION_MISMATCH')
    const created = await Promise.all(
      [1, 2].map(async () => outcome(await put([], { ifMatch: null, allowEmpty: true }, 'new'))),
    )
    expect(created.toSorted()).toEqual(['200', '412 VERSION_MISMATCH'])
    await vendor.call('DELETE', 'access-rules/sets/new')
    expect(outcome(await put([], { ifMatch: version, allowEmpty: true }, 'new'))).toBe('412 VERSION_MISMATCH')
  })
})

test('changes nothing when a row is invalid, the list is too long, or a limit is exceeded', async () => {
  await put([ip('192.0.2.1')])
  const before = [await readSet(), await rulesOf()]
  expect(problem.parse((await put([ip('192.0.2.2'), ip('300.0.0.1')], { more: 1 })).body).errors).toMatchObject([
    { pointer: '#/more' },
    { pointer: '#/rules/1/value' },
  ])
  expect(outcome(await put(Array.from({ length: 20_001 }, () => 1)))).toBe('422 IMPORT_TOO_LARGE')
  expect(outcome(await put(null))).toBe('422 INVALID_REQUEST')
  expect(outcome(await put([], { ifMatch: 'x' }))).toBe('422 INVALID_REQUEST')
  expect(outcome(await put([], {}, 'x'.repeat(65)))).toBe('422 INVALID_REQUEST')
  expect(outcome(await put([], {}, 'a%00b'))).toBe('422 INVALID_REQUEST')
  for (const name of ['nothing', 'a%00b', 'x'.repeat(65)]) {
    expect((await vendor.call('GET', `access-rules/sets/${name}`)).status).toBe(404)
    expect((await vendor.call('DELETE', `access-rules/sets/${name}`)).status).toBe(404)
  }
  expect([await readSet(), await rulesOf()]).toEqual(before)
  const free = await createVendor(harness, 'FREE')
  const many = Array.from({ length: 10 }, (_, i) => ip(`192.0.2.${i}`))
  const putFree = (rules: object[]) => free.call('PUT', 'access-rules/sets/feed', { body: { rules } })
  expect((await putFree(many)).status).toBe(200)
  // The removal of one rule leaves capacity for the new rule.
  expect(replaced(await putFree([...many.slice(1), ip('192.0.2.99')]))).toMatchObject({ created: 1, removed: 1 })
  expect(outcome(await putFree([...many, ip('192.0.2.98')]))).toBe('403 RULE_LIMIT_REACHED')
  expect(outcome(await putFree([ip('DE', { type: 'COUNTRY' })]))).toBe('403 COUNTRY_RULES_NOT_IN_PLAN')
})

test('deletes a set with its rules, and returns 404 for sets of other organizations', async () => {
  await put([ip('192.0.2.1'), ip('192.0.2.2')])
  const other = await createVendor(harness)
  expect((await other.call('GET', 'access-rules/sets/feed')).status).toBe(404)
  expect((await other.call('DELETE', 'access-rules/sets/feed')).status).toBe(404)
  expect((await other.call('GET', 'access-rules?set=feed')).body).toMatchObject({ data: [] })
  expect(await changedRows(async () => vendor.call('DELETE', 'access-rules/sets/feed'))).toBe(2)
  expect((await vendor.call('GET', 'access-rules/sets/feed')).status).toBe(404)
  expect(await rulesOf('')).toEqual([])
})

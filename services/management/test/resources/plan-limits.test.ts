/** Tests that plan limits (docs/api.md#r7) apply to adding rules, also under concurrent requests, and never to existing rules. */

import { accessRule, importedAccessRules, ownOrganization } from '@keyward/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Harness, startHarnessWithValidator } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startHarnessWithValidator()
})
afterAll(() => harness.close())

const base = { kind: 'BLACKLIST', type: 'IP', scope: 'ORGANIZATION' }
const rows = (length: number, net: number) => Array.from({ length }, (_, i) => ({ ...base, value: `10.${net}.0.${i}` }))

function tally(outcomes: string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const one of outcomes) counts[one] = (counts[one] ?? 0) + 1
  return counts
}

async function unexpired(vendor: Vendor): Promise<number> {
  const response = await vendor.call('GET', 'organization')
  return expectBody(response, 200, ownOrganization).usage.rules.used
}

test('50 concurrent requests add exactly 10 rules when the limit is 10', async () => {
  const vendor = await createVendor(harness, 'FREE')
  const responses = await Promise.all(rows(50, 1).map((body) => vendor.call('POST', 'access-rules', { body })))
  expect(tally(responses.map(outcome))).toEqual({ 201: 10, '403 RULE_LIMIT_REACHED': 40 })
  expect(await unexpired(vendor)).toBe(10)
})

test('concurrent imports and additions never exceed the limit, and an import is never partial', async () => {
  for (let round = 0; round < 5; round++) {
    const vendor = await createVendor(harness, 'FREE')
    const creates = rows(12, 2).map((body) => vendor.call('POST', 'access-rules', { body }))
    const imports = [3, 4, 5].map((net) =>
      vendor.call('POST', 'access-rules/import', { body: { rules: rows(4, net) } }),
    )
    const created = (await Promise.all(creates)).filter((response) => response.status === 201).length
    const imported = (await Promise.all(imports)).filter((response) => response.status === 200).length
    const used = await unexpired(vendor)
    expect(used).toBe(created + 4 * imported)
    expect(used).toBeLessThanOrEqual(10)
    expect(used + 4).toBeGreaterThan(10)
  }
})

test('restrictions and monitored rules count toward the limit, and country restrictions need a plan with country rules', async () => {
  const vendor = await createVendor(harness, 'FREE')
  const restriction = { ...base, kind: 'RESTRICTION' }
  const post = async (body: object) => outcome(await vendor.call('POST', 'access-rules', { body }))
  expect(await post({ ...restriction, type: 'COUNTRY', value: 'DE' })).toBe('403 COUNTRY_RULES_NOT_IN_PLAN')
  const rules = rows(10, 1).map((rule, i) => Object.assign(rule, i < 5 ? restriction : { mode: 'MONITOR' }))
  expect((await vendor.call('POST', 'access-rules/import', { body: { rules } })).status).toBe(200)
  expect(await unexpired(vendor)).toBe(10)
  expect(await post({ ...restriction, value: '192.0.2.1' })).toBe('403 RULE_LIMIT_REACHED')
  expect(await post({ ...base, mode: 'MONITOR', value: '192.0.2.1' })).toBe('403 RULE_LIMIT_REACHED')
})

test('20 concurrent requests for the same rule add it once', async () => {
  const vendor = await createVendor(harness)
  const body = { ...base, value: '192.0.2.1' }
  const responses = await Promise.all(Array.from({ length: 20 }, () => vendor.call('POST', 'access-rules', { body })))
  expect(tally(responses.map(outcome))).toEqual({ 201: 1, '409 RULE_EXISTS': 19 })
})

test('after a downgrade, existing rules match and can be changed, but no rule can be added', async () => {
  const vendor = await createVendor(harness, 'LITE')
  await vendor.call('POST', 'access-rules/import', { body: { rules: rows(12, 1) } })
  const country = await vendor.rule({ type: 'COUNTRY', value: 'DE' })
  const downgrade = { body: { plan: 'FREE' } }
  expect((await harness.call('PATCH', `organizations/${vendor.id}`, downgrade)).status).toBe(200)
  const own = expectBody(await vendor.call('GET', 'organization'), 200, ownOrganization)
  expect(own).toMatchObject({ plan: 'FREE', usage: { rules: { used: 13, limit: 10 } } })
  const post = (body: object) => vendor.call('POST', 'access-rules', { body: { ...base, ...body } })
  expect(outcome(await post({ value: '192.0.2.1' }))).toBe('403 RULE_LIMIT_REACHED')
  expect(outcome(await post({ type: 'COUNTRY', value: 'FR' }))).toBe('403 COUNTRY_RULES_NOT_IN_PLAN')
  const { id } = await vendor.license()
  const evaluate = (check: object) =>
    vendor.call('POST', 'access-rules/evaluate', { body: { licenseId: id, ...check } })
  for (const check of [...rows(12, 1).map(({ value }) => ({ ip: value })), { country: 'DE' }])
    expect((await evaluate(check)).body).toMatchObject({ code: 'BLACKLISTED', matched: { length: 1 } })
  const expiresAt = new Date(Date.now() + 60_000).toISOString()
  const patch = await vendor.call('PATCH', `access-rules/${country.id}`, { body: { note: 'kept', expiresAt } })
  expect(expectBody(patch, 200, accessRule)).toMatchObject({ note: 'kept', expiresAt })
  expect((await vendor.call('DELETE', `access-rules/${country.id}`)).status).toBe(204)
})

test('after a downgrade, a set can swap and remove rules but not grow', async () => {
  const vendor = await createVendor(harness, 'LITE')
  const country = (value: string) => ({ ...base, type: 'COUNTRY', value })
  const put = async (rules: object[]) =>
    vendor.call('PUT', 'access-rules/sets/feed', { body: { rules: [...rules, country('DE')] } })
  expect((await put(rows(18, 1))).status).toBe(200)
  await harness.call('PATCH', `organizations/${vendor.id}`, { body: { plan: 'FREE' } })
  const swapped = [...rows(17, 1), ...rows(1, 2)]
  expect((await put(swapped)).body).toMatchObject({ created: 1, removed: 1, unchanged: 18 })
  for (const rules of [
    [...swapped, ...rows(1, 3)],
    [...swapped.slice(1), ...rows(2, 3)],
  ]) {
    const grown = await put(rules)
    expect(outcome(grown)).toBe('403 RULE_LIMIT_REACHED')
    expect(JSON.stringify(grown.body)).toContain('The organization has 19, and would have 20.')
  }
  expect(outcome(await put([...swapped.slice(1), country('FR')]))).toBe('403 COUNTRY_RULES_NOT_IN_PLAN')
  expect((await put(rows(5, 1))).body).toMatchObject({ created: 0, removed: 13 })
  expect(await unexpired(vendor)).toBe(6)
  expect((await put(rows(9, 4))).status).toBe(200)
  expect(outcome(await put(rows(10, 4)))).toBe('403 RULE_LIMIT_REACHED')
})

test('skipped rows do not count toward the limit, and an import over the limit adds nothing', async () => {
  const vendor = await createVendor(harness, 'FREE')
  await vendor.call('POST', 'access-rules/import', { body: { rules: rows(8, 1) } })
  const over = await vendor.call('POST', 'access-rules/import', { body: { rules: rows(11, 1) } })
  expect(outcome(over)).toBe('403 RULE_LIMIT_REACHED')
  const within = await vendor.call('POST', 'access-rules/import', { body: { rules: rows(10, 1) } })
  expect(expectBody(within, 200, importedAccessRules)).toMatchObject({ created: 2, skipped: 8, ids: { length: 2 } })
  const again = await vendor.call('POST', 'access-rules/import', { body: { rules: rows(10, 1) } })
  expect(expectBody(again, 200, importedAccessRules)).toMatchObject({ created: 0, skipped: 10, ids: [] })
})

test('errors come in the order 422, 409, 403', async () => {
  const vendor = await createVendor(harness, 'FREE')
  await vendor.call('POST', 'access-rules/import', { body: { rules: rows(10, 1) } })
  const post = (body: object) => vendor.call('POST', 'access-rules', { body: { ...base, ...body } })
  expect(outcome(await post({ value: 'nonsense' }))).toBe('422 INVALID_REQUEST')
  expect(outcome(await post({ value: '10.1.0.0' }))).toBe('409 RULE_EXISTS')
  expect(outcome(await post({ value: '10.2.0.0' }))).toBe('403 RULE_LIMIT_REACHED')
})

test('a later expiry of an expired rule counts as adding a rule', async () => {
  const vendor = await createVendor(harness, 'FREE')
  const rule = await vendor.rule({ value: '192.0.2.1' })
  const sql = `update access_rules set expires_at = now() - interval '1 minute' where id = $1`
  await harness.database.pool.query(sql, [rule.id])
  await vendor.call('POST', 'access-rules/import', { body: { rules: rows(10, 1) } })
  const patch = (body: object) => vendor.call('PATCH', `access-rules/${rule.id}`, { body })
  expect(outcome(await patch({ note: 'still expired' }))).toBe('200')
  expect(outcome(await patch({ expiresAt: null }))).toBe('403 RULE_LIMIT_REACHED')
  expect(await unexpired(vendor)).toBe(10)
})

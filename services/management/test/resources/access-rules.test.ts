/** Tests access rules: canonical values, validation of each field, duplicates, filters, changes, imports. */

import { accessRule, changedAccessRules, importedAccessRules, problem } from '@keyward/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.close())

const list = z.object({ data: z.array(accessRule), nextCursor: z.string().nullable() })
const base = { kind: 'BLACKLIST', type: 'IP', value: '203.0.113.7', scope: 'ORGANIZATION' }
const inFuture = (ms: number) => new Date(Date.now() + ms).toISOString()
const post = (body: unknown) => vendor.call('POST', 'access-rules', { body })

async function expire(id: string): Promise<void> {
  await harness.database.pool.query(`update access_rules set expires_at = now() - interval '1 second' where id = $1`, [
    id,
  ])
}

describe('one rule', () => {
  beforeAll(async () => {
    vendor = await createVendor(harness)
  })

  test.each([
    ['IP', '10.1.2.3/8', '10.0.0.0/8'],
    ['IP', '::ffff:1.2.3.4', '1.2.3.4'],
    ['IP', '1.2.3.5/32', '1.2.3.5'],
    ['IP', '2001:DB8:0:0:0:0:0:1/128', '2001:db8::1'],
    ['HWID', '  Kept exactly / Ünïcode \u0000', '  Kept exactly / Ünïcode \u0000'],
    ['COUNTRY', 'de', 'DE'],
    ['COUNTRY', 'xk', 'XK'],
  ])('a rule with the type %s and the value %j is stored as %j', async (type, value, canonical) => {
    const rule = await vendor.rule({ type, value })
    expect(rule).toMatchObject({ value: canonical, scopeId: null, note: null, expiresAt: null, matchCount: 0 })
    expect(rule).toMatchObject({ lastMatchedAt: null, allowSuspendedOrExpired: false })
    expect(rule.createdBy.type).toBe('MANAGEMENT_TOKEN')
    const again = await post({ ...base, type, value: canonical })
    expect(outcome(again)).toBe('409 RULE_EXISTS')
    expect(problem.parse(again.body).ruleId).toBe(rule.id)
    expect(expectBody(await vendor.call('GET', `access-rules/${rule.id}`), 200, accessRule)).toEqual(rule)
  })

  test.each<[object, string]>([
    [{ kind: 'WHITELIST' }, '#/kind'],
    [{ value: '1.2.3' }, '#/value'],
    [{ value: '01.2.3.4' }, '#/value'],
    [{ value: 'fe80::1%eth0' }, '#/value'],
    [{ value: '' }, '#/value'],
    [{ type: 'HWID', value: 'x'.repeat(513) }, '#/value'],
    [{ type: 'HWID', value: 'ü'.repeat(257) }, '#/value'],
    [{ type: 'HWID', value: '\ud800' }, '#/value'],
    [{ type: 'COUNTRY', value: 'ZZ' }, '#/value'],
    [{ type: 'COUNTRY', value: 'DEU' }, '#/value'],
    [{ type: 'CUSTOMER', value: 'nobody' }, '#/value'],
    [{ type: 'CUSTOMER', value: '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b' }, '#/value'],
    [{ kind: 'EXCLUSION', type: 'COUNTRY', value: 'DE' }, '#/type'],
    [{ kind: 'EXCLUSION', type: 'CUSTOMER', value: '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b' }, '#/type'],
    [{ kind: 'RESTRICTION', type: 'CUSTOMER', value: '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b' }, '#/type'],
    [{ kind: 'RESTRICTION', allowSuspendedOrExpired: true }, '#/allowSuspendedOrExpired'],
    [{ mode: 'OFF' }, '#/mode'],
    [{ scope: 'PRODUCT' }, '#/scopeId'],
    [{ scope: 'LICENSE', scopeId: '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b' }, '#/scopeId'],
    [{ scope: 'PRODUCT', scopeId: '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b' }, '#/scopeId'],
    [{ scopeId: '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b' }, '#/scopeId'],
    [{ scope: 'LICENSE', scopeId: 'x' }, '#/scopeId'],
    [{ note: 'x'.repeat(501) }, '#/note'],
    [{ note: 'a\u0000b' }, '#/note'],
    [{ expiresAt: '2020-01-01T00:00:00Z' }, '#/expiresAt'],
    [{ expiresAt: 'tomorrow' }, '#/expiresAt'],
    [{ allowSuspendedOrExpired: true }, '#/allowSuspendedOrExpired'],
    [{ allowSuspendedOrExpired: 'yes', kind: 'EXCLUSION' }, '#/allowSuspendedOrExpired'],
    [{ surprise: 1 }, '#/surprise'],
  ])('rejects a rule with %j, with an error at %s', async (change, pointer) => {
    const response = await post({ ...base, value: '198.51.100.1', ...change })
    expect(outcome(response)).toBe('422 INVALID_REQUEST')
    expect(problem.parse(response.body).errors?.map((error) => error.pointer)).toContain(pointer)
  })

  test('a rule accepts only products and licenses of the organization as scope', async () => {
    const license = await vendor.license()
    const other = await (await createVendor(harness)).license()
    const scoped = await vendor.rule({ scope: 'LICENSE', scopeId: license.id.toUpperCase() })
    expect(scoped.scopeId).toBe(license.id)
    await vendor.rule({ scope: 'PRODUCT', scopeId: license.productId })
    expect(outcome(await post({ ...base, scope: 'LICENSE', scopeId: license.id }))).toBe('409 RULE_EXISTS')
    expect(outcome(await post({ ...base, scope: 'LICENSE', scopeId: other.id }))).toBe('422 INVALID_REQUEST')
    const customerRule = { ...base, type: 'CUSTOMER', value: other.customerId }
    expect(outcome(await post(customerRule))).toBe('422 INVALID_REQUEST')
    const named = await vendor.rule({ type: 'CUSTOMER', value: license.customerId.toUpperCase() })
    expect(named.value).toBe(license.customerId)
  })

  test('an expired rule is replaced by a new rule with zero matches', async () => {
    const old = await vendor.rule({ value: '192.0.2.1' })
    await expire(old.id)
    await harness.database.pool.query('update access_rule_counters set match_count = 7 where rule_id = $1', [old.id])
    expect(await vendor.call('GET', `access-rules/${old.id}`)).toMatchObject({ body: { matchCount: 7 } })
    const next = await vendor.rule({ value: '192.0.2.1', note: 'again' })
    expect(next.id).not.toBe(old.id)
    expect(next).toMatchObject({ matchCount: 0, note: 'again' })
    expect(outcome(await vendor.call('GET', `access-rules/${old.id}`))).toBe('404 NOT_FOUND')
  })

  test('the note, expiry and option of a rule can be changed, and the rule can be deleted', async () => {
    const rule = await vendor.rule({ kind: 'EXCLUSION', value: '192.0.2.2' })
    const patch = (body: object) => vendor.call('PATCH', `access-rules/${rule.id}`, { body })
    const expiresAt = inFuture(60_000)
    const changed = expectBody(await patch({ note: 'n', expiresAt, allowSuspendedOrExpired: true }), 200, accessRule)
    expect(changed).toMatchObject({ note: 'n', expiresAt, allowSuspendedOrExpired: true, value: '192.0.2.2' })
    expect(expectBody(await patch({ note: null, expiresAt: null }), 200, accessRule)).toMatchObject({ expiresAt: null })
    expect(outcome(await patch({ value: '192.0.2.3' }))).toBe('422 INVALID_REQUEST')
    expect(outcome(await patch({ expiresAt: '2020-01-01T00:00:00Z' }))).toBe('422 INVALID_REQUEST')
    const blacklist = await vendor.rule({ value: '192.0.2.3' })
    const option = { body: { allowSuspendedOrExpired: true } }
    expect(outcome(await vendor.call('PATCH', `access-rules/${blacklist.id}`, option))).toBe('422 INVALID_REQUEST')
    expect((await vendor.call('DELETE', `access-rules/${rule.id}`)).status).toBe(204)
    expect(outcome(await vendor.call('GET', `access-rules/${rule.id}`))).toBe('404 NOT_FOUND')
  })

  test('the mode of a rule can be changed, and a rule with another mode is added beside it', async () => {
    const rule = await vendor.rule({ kind: 'RESTRICTION', mode: 'MONITOR', value: '192.0.2.5' })
    expect(rule).toMatchObject({ kind: 'RESTRICTION', mode: 'MONITOR' })
    const twin = { ...base, kind: 'RESTRICTION', value: '192.0.2.5' }
    expect(outcome(await post({ ...twin, mode: 'MONITOR', expiresAt: inFuture(60_000) }))).toBe('409 RULE_EXISTS')
    expect(outcome(await post(twin))).toBe('201')
    expect(outcome(await post(twin))).toBe('409 RULE_EXISTS')
    const patch = (body: object) => vendor.call('PATCH', `access-rules/${rule.id}`, { body })
    expect(expectBody(await patch({ mode: 'ENFORCE' }), 200, accessRule)).toMatchObject({ mode: 'ENFORCE' })
    expect(outcome(await patch({ mode: null }))).toBe('422 INVALID_REQUEST')
    expect(outcome(await patch({ allowSuspendedOrExpired: true }))).toBe('422 INVALID_REQUEST')
    expect(await vendor.rule({ value: '192.0.2.6' })).toMatchObject({ mode: 'ENFORCE' })
  })

  test('a rule is deleted with its product, license or customer', async () => {
    const license = await vendor.license()
    const { productId, customerId } = license
    const rules = [
      await vendor.rule({ scope: 'LICENSE', scopeId: license.id }),
      await vendor.rule({ scope: 'PRODUCT', scopeId: productId }),
      await vendor.rule({ type: 'CUSTOMER', value: customerId }),
    ]
    for (const path of [`licenses/${license.id}`, `products/${productId}`, `customers/${customerId}`])
      expect((await vendor.call('DELETE', path)).status).toBe(204)
    for (const { id } of rules) expect((await vendor.call('GET', `access-rules/${id}`)).status).toBe(404)
  })
})

test('lists rules by every documented filter', async () => {
  vendor = await createVendor(harness)
  const productId = await vendor.product()
  const ip = await vendor.rule({ value: '10.0.0.0/8' })
  const hwid = await vendor.rule({ kind: 'EXCLUSION', mode: 'MONITOR', type: 'HWID', value: 'DE' })
  const country = await vendor.rule({ type: 'COUNTRY', value: 'DE', scope: 'PRODUCT', scopeId: productId })
  await expire(hwid.id)
  const ids = async (query: string) =>
    expectBody(await vendor.call('GET', `access-rules?${query}`), 200, list).data.map((rule) => rule.id)
  expect(await ids('')).toEqual([country.id, hwid.id, ip.id])
  expect(await ids('kind=EXCLUSION')).toEqual([hwid.id])
  expect(await ids('type=IP')).toEqual([ip.id])
  expect(await ids('mode=MONITOR')).toEqual([hwid.id])
  expect(await ids('mode=ENFORCE&kind=BLACKLIST')).toEqual([country.id, ip.id])
  expect(await ids('scope=PRODUCT')).toEqual([country.id])
  expect(await ids(`scopeId=${productId}`)).toEqual([country.id])
  expect(await ids('value=10.9.9.9/8')).toEqual([ip.id])
  expect(await ids('value=DE')).toEqual([country.id, hwid.id])
  expect(await ids('value=de')).toEqual([country.id])
  expect(await ids('expired=true')).toEqual([hwid.id])
  expect(await ids('expired=false')).toEqual([country.id, ip.id])
})

test('finds the rules that would match a value, and sorts by matches', async () => {
  vendor = await createVendor(harness)
  const rules: Record<string, string> = {}
  for (const value of ['10.0.0.0/8', '10.1.0.0/16', '10.1.2.3', '10.2.0.0/16', '2001:db8::/32', '0.0.0.0/0'])
    rules[value] = (await vendor.rule({ value })).id
  for (const type of ['HWID', 'COUNTRY']) rules[type] = (await vendor.rule({ type, value: 'DE' })).id
  rules['expired'] = (await vendor.rule({ kind: 'EXCLUSION', value: '10.1.2.0/24' })).id
  await expire(rules['expired'])
  const names = async (query: string) => {
    const found = expectBody(await vendor.call('GET', `access-rules?${query}`), 200, list).data
    return found.map(({ id }) => Object.entries(rules).find(([, other]) => other === id)?.[0])
  }
  expect(await names('matches=10.1.2.3')).toEqual(['0.0.0.0/0', '10.1.2.3', '10.1.0.0/16', '10.0.0.0/8'])
  expect(await names('matches=10.1.2.3&order=asc&limit=2')).toEqual(['10.0.0.0/8', '10.1.0.0/16'])
  expect(await names('matches=10.1.2.3&expired=true')).toEqual(['expired'])
  expect(await names('matches=10.1.2.128/25')).toEqual(['0.0.0.0/0', '10.1.0.0/16', '10.0.0.0/8'])
  expect(await names('matches=2001:DB8::1')).toEqual(['2001:db8::/32'])
  expect(await names('matches=::ffff:10.2.0.1')).toEqual(['0.0.0.0/0', '10.2.0.0/16', '10.0.0.0/8'])
  expect(await names('matches=DE')).toEqual(['COUNTRY', 'HWID'])
  expect(await names('matches=de')).toEqual(['COUNTRY'])
  expect(await names('matches=10.1.2.3&value=10.0.0.0/8')).toEqual(['10.0.0.0/8'])
  expect(await names('matches=10.1.2.3&kind=EXCLUSION')).toEqual([])
  const count = async (name: string, matches: number, at: string) =>
    harness.database.pool.query(
      'update access_rule_counters set match_count = $2, last_matched_at = $3 where rule_id = $1',
      [rules[name], matches, at],
    )
  await count('10.0.0.0/8', 7, '2026-01-02T00:00:00Z')
  await count('10.1.0.0/16', 9, '2026-01-01T00:00:00Z')
  expect((await names('sort=matchCount')).slice(0, 3)).toEqual(['10.1.0.0/16', '10.0.0.0/8', 'expired'])
  expect((await names('sort=lastMatchedAt')).slice(0, 3)).toEqual(['10.0.0.0/8', '10.1.0.0/16', 'expired'])
  expect((await names('sort=lastMatchedAt&order=asc')).slice(-2)).toEqual(['10.1.0.0/16', '10.0.0.0/8'])
  expect(await names('sort=matchCount&matches=10.1.2.3&limit=2')).toEqual(['10.1.0.0/16', '10.0.0.0/8'])
  for (const sort of ['createdAt', 'matchCount', 'lastMatchedAt']) {
    for (const order of ['asc', 'desc']) {
      const query = `access-rules?sort=${sort}&order=${order}`
      const whole = expectBody(await vendor.call('GET', query), 200, list).data.map(({ id }) => id)
      const paged: string[] = []
      for (let cursor: string | null = ''; cursor !== null;) {
        const path: string = `${query}&limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`
        const page = expectBody(await vendor.call('GET', path), 200, list)
        paged.push(...page.data.map(({ id }) => id))
        cursor = page.nextCursor
      }
      expect(paged).toEqual(whole)
      expect(whole).toHaveLength(9)
    }
  }
  const first = expectBody(await vendor.call('GET', 'access-rules?sort=matchCount&limit=1'), 200, list)
  expect(outcome(await vendor.call('GET', `access-rules?cursor=${first.nextCursor}`))).toBe('422 INVALID_REQUEST')
  expect(outcome(await vendor.call('GET', 'access-rules?sort=note'))).toBe('422 INVALID_REQUEST')
})

test('deletes many rules of the organization in one request', async () => {
  vendor = await createVendor(harness)
  const own = [await vendor.rule({ value: '192.0.2.1' }), await vendor.rule({ value: '192.0.2.2' })].map(({ id }) => id)
  const kept = await vendor.rule({ value: '192.0.2.3' })
  const foreign = await (await createVendor(harness)).rule({ value: '192.0.2.1' })
  const remove = (ids: unknown) => vendor.call('POST', 'access-rules/delete', { body: { ids } })
  const unknown = '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b'
  expect((await remove([...own, own[0], foreign.id, unknown])).body).toEqual({ deleted: 2, missing: 2 })
  expect((await remove(own)).body).toEqual({ deleted: 0, missing: 2 })
  expect((await vendor.call('GET', `access-rules/${kept.id}`)).status).toBe(200)
  for (const ids of [[], ['x'], Array.from({ length: 1_001 }, () => unknown), null])
    expect(outcome(await remove(ids))).toBe('422 INVALID_REQUEST')
})

test('changes the mode of many rules in one request, all or none', async () => {
  vendor = await createVendor(harness)
  const set = (body: object) => vendor.call('POST', 'access-rules/set-mode', { body })
  const offices = [1, 2, 3].map((i) => ({ kind: 'RESTRICTION', mode: 'MONITOR', value: `198.51.100.${i}` }))
  const [first, second, deleted] = [
    await vendor.rule(offices[0]!),
    await vendor.rule(offices[1]!),
    await vendor.rule(offices[2]!),
  ]
  await vendor.call('DELETE', `access-rules/${deleted.id}`)
  const failed = await set({ mode: 'ENFORCE', ids: [first.id, deleted.id, second.id] })
  expect(problem.parse(failed.body).errors).toMatchObject([{ pointer: '#/ids/1' }])
  const modes = async () =>
    expectBody(await vendor.call('GET', 'access-rules?kind=RESTRICTION'), 200, list).data.map(({ mode }) => mode)
  expect(await modes()).toEqual(['MONITOR', 'MONITOR'])
  expect((await set({ mode: 'ENFORCE', ids: [first.id, second.id] })).body).toEqual({ updated: 2, unchanged: 0 })
  expect(await modes()).toEqual(['ENFORCE', 'ENFORCE'])
  const data = { mode: 'ENFORCE', updated: 2, ruleIds: [first.id, second.id] }
  const events = await vendor.call('GET', 'events?type=access_rules.updated')
  expect(events.body).toMatchObject({ data: [{ data }] })
  const before = { rules: { count: 2, first: [{ id: first.id, mode: 'MONITOR' }, { id: second.id }] } }
  const audited = await vendor.call('GET', 'audit-log?action=access_rules.changed')
  expect(audited.body).toMatchObject({ data: [{ changes: { mode: 'ENFORCE', updated: 2 }, before }] })
  expect((await set({ mode: 'MONITOR', filter: { value: '198.51.100.1' } })).body).toEqual({ updated: 1, unchanged: 0 })
  await vendor.rule({ value: '192.0.2.1', set: 'feed' })
  expect((await set({ mode: 'MONITOR', set: 'feed' })).body).toEqual({ updated: 1, unchanged: 0 })
  expect((await set({ mode: 'MONITOR', set: 'feed' })).body).toEqual({ updated: 0, unchanged: 1 })
  expect(await modes()).toEqual(['ENFORCE', 'MONITOR'])
  for (const selection of [{}, { filter: {} }, { ids: [] }, { ids: [first.id], set: 'feed' }])
    expect(outcome(await set({ mode: 'ENFORCE', ...selection }))).toBe('422 INVALID_REQUEST')
  expect(outcome(await set({ mode: 'ENFORCE', set: 'unknown' }))).toBe('404 NOT_FOUND')
})

test('estimates how many checks of the last day an enforcement would have rejected, and changes nothing', async () => {
  vendor = await createVendor(harness)
  const { pool } = harness.database
  const license = await vendor.license()
  const other = await vendor.product()
  const restriction = { kind: 'RESTRICTION', mode: 'MONITOR' }
  const ofLicense = { scope: 'LICENSE', scopeId: license.id }
  const rules = {
    office: await vendor.rule({ ...restriction, value: '192.0.2.0/24', set: 'offices' }),
    branch: await vendor.rule({ ...restriction, value: '198.51.100.0/24', set: 'offices' }),
    blocked: await vendor.rule({ mode: 'MONITOR', value: '203.0.113.7' }),
    machine: await vendor.rule({ ...restriction, ...ofLicense, type: 'HWID', value: 'm-1' }),
    product: await vendor.rule({ ...restriction, scope: 'PRODUCT', scopeId: other, value: '192.0.2.1' }),
    exclusion: await vendor.rule({ kind: 'EXCLUSION', mode: 'MONITOR', value: '192.0.2.9' }),
  }
  const estimate = async (selection: object) =>
    (await vendor.call('POST', 'access-rules/set-mode', { body: { mode: 'ENFORCE', dryRun: true, ...selection } })).body
  const lastDay = async (...names: (keyof typeof rules)[]) => {
    const { from: _, ...counts } = expectBody(
      await vendor.call('POST', 'access-rules/set-mode', {
        body: { mode: 'ENFORCE', dryRun: true, ids: names.map((name) => rules[name].id) },
      }),
      200,
      changedAccessRules,
    ).lastDay!
    return counts
  }
  // Rules that were added in this hour have no hour with all of their matches.
  const { rows: counted } = await pool.query<{ hour: Date }>(
    `select date_trunc('hour', now(), 'UTC') - interval '2 hours' as hour`,
  )
  const { hour } = counted[0]!
  const count = (code: string, checks: number) =>
    pool.query(
      'insert into check_counts (hour, organization_id, product_id, code, count) values ($1, $2, $3, $4, $5)',
      [hour, vendor.id, license.productId, code, checks],
    )
  await pool.query(`select ensure_partition('check_counts', $1), ensure_partition('activity', $1)`, [hour])
  await count('VALID', 90)
  await count('EXPIRED', 10)
  await count('NOT_FOUND', 1_000)
  const matches: [string, number][] = [
    [rules.office.id, 60],
    [rules.branch.id, 25],
    [rules.blocked.id, 7],
    [rules.machine.id, 2],
    [rules.exclusion.id, 50],
  ]
  for (const [id, n] of matches)
    await pool.query('insert into monitored_matches (rule_id, hour, count) values ($1, $2, $3), ($1, $4, 1000)', [
      id,
      hour,
      n,
      new Date(hour.getTime() - 30 * 3_600_000),
    ])
  await pool.query(
    `insert into activity (at, id, organization_id, license_id, type, code, count, first_at, last_at)
     values ($1, new_id(), $2, $3, 'CHECK', 'VALID', 5, $1, $1)`,
    [hour, vendor.id, license.id],
  )
  expect(await lastDay('office', 'branch')).toEqual({ checks: 0, rejected: 0 })
  // Without the trigger that makes each version later than the one before.
  await pool.query(`begin; set local session_replication_role = replica;
    update access_rules set updated_at = now() - interval '3 days' where organization_id = '${vendor.id}'; commit`)
  expect(await lastDay('office', 'branch')).toEqual({ checks: 100, rejected: 15 })
  expect(await lastDay('office')).toEqual({ checks: 100, rejected: 40 })
  expect(await lastDay('blocked')).toEqual({ checks: 100, rejected: 7 })
  expect(await lastDay('office', 'branch', 'blocked')).toEqual({ checks: 100, rejected: 22 })
  expect(await lastDay('machine')).toEqual({ checks: 100, rejected: 3 })
  expect(await lastDay('product')).toEqual({ checks: 100, rejected: 0 })
  expect(await lastDay('exclusion')).toEqual({ checks: 100, rejected: 0 })
  expect(await estimate({ set: 'offices' })).toMatchObject({ updated: 2, unchanged: 0, lastDay: { rejected: 15 } })
  // In a scope that has restrictions of the type, further ones only allow more checks.
  await vendor.rule({ kind: 'RESTRICTION', value: '203.0.113.0/24' })
  expect(await lastDay('office')).toEqual({ checks: 100, rejected: 0 })
  const foreign = await createVendor(harness)
  const own = await foreign.rule({ mode: 'MONITOR', value: '192.0.2.1' })
  const foreignDay = await foreign.call('POST', 'access-rules/set-mode', {
    body: { mode: 'ENFORCE', dryRun: true, ids: [own.id] },
  })
  expect(foreignDay.body).toMatchObject({ lastDay: { checks: 0, rejected: 0 } })
  expect(await estimate({ mode: 'MONITOR', ids: [rules.office.id] })).toEqual({ updated: 0, unchanged: 1 })
  const modes = expectBody(await vendor.call('GET', 'access-rules?mode=MONITOR'), 200, list).data
  expect(modes).toHaveLength(6)
})

test('exports the rules of a filter in the formats of an import', async () => {
  vendor = await createVendor(harness)
  const license = await vendor.license()
  const expiresAt = inFuture(60_000)
  const rules = [
    { ...base, value: '192.0.2.0/24', note: 'a "quoted", note', set: 'feed', expiresAt },
    { ...base, kind: 'EXCLUSION', type: 'HWID', value: ' m-1\n', allowSuspendedOrExpired: true },
    { ...base, kind: 'RESTRICTION', mode: 'MONITOR', scope: 'LICENSE', scopeId: license.id },
  ]
  expect((await vendor.call('POST', 'access-rules/import', { body: { rules } })).status).toBe(200)
  const exported = await vendor.call('GET', 'access-rules/export')
  expect(exported.headers.get('content-disposition')).toBe('attachment; filename="access-rules.json"')
  expect(exported.body).toMatchObject({ rules })
  const csv = await vendor.call('GET', 'access-rules/export?format=csv&scope=ORGANIZATION')
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(csv.text).toBe(
    'kind,mode,type,value,scope,scopeId,set,note,expiresAt,allowSuspendedOrExpired\r\n' +
      `BLACKLIST,ENFORCE,IP,192.0.2.0/24,ORGANIZATION,,feed,"a ""quoted"", note",${expiresAt},false\r\n` +
      'EXCLUSION,ENFORCE,HWID," m-1\n",ORGANIZATION,,,,,true\r\n',
  )
  expect(outcome(await vendor.call('GET', 'access-rules/export?format=xml'))).toBe('422 INVALID_REQUEST')
  expect((await vendor.call('HEAD', 'access-rules/export')).status).toBe(200)
  await harness.database.pool.query('delete from access_rules where organization_id = $1', [vendor.id])
  expect((await vendor.call('POST', 'access-rules/import', { body: exported.body })).body).toMatchObject({ created: 3 })
  await vendor.call('PUT', 'access-rules/sets/many', {
    body: { rules: Array.from({ length: 2_500 }, (_, i) => ({ ...base, value: `10.0.${i >> 8}.${i & 255}` })) },
  })
  const many = await vendor.call('GET', 'access-rules/export?format=csv&set=many')
  expect(many.text.split('\r\n')).toHaveLength(2_502)
})

describe('an import', () => {
  beforeAll(async () => {
    vendor = await createVendor(harness)
  })
  const ipRule = (value: string) => Object.assign({}, base, { value })
  const importRules = (rules: unknown) => vendor.call('POST', 'access-rules/import', { body: { rules } })
  const count = async () =>
    (await harness.database.pool.query('select from access_rules where organization_id = $1', [vendor.id])).rowCount

  test('skips only rows that an unexpired manual rule covers, and names them', async () => {
    const own = await createVendor(harness)
    const [soon, later] = [inFuture(60_000), inFuture(120_000)]
    const rule = (fields: object) => ({ ...base, value: '198.51.100.0/24', ...fields })
    const monitored = await own.rule(rule({ mode: 'MONITOR', kind: 'RESTRICTION' }))
    const temporary = await own.rule(rule({ expiresAt: later }))
    await own.rule(rule({ set: 'feed' }))
    const rows = [
      rule({ kind: 'RESTRICTION', mode: 'MONITOR', expiresAt: soon }),
      rule({ kind: 'RESTRICTION' }),
      rule({ expiresAt: soon }),
      rule({}),
      rule({ set: 'feed' }),
    ]
    const response = await own.call('POST', 'access-rules/import', { body: { rules: rows } })
    const inSet = expectBody(await own.call('GET', 'access-rules?set=feed'), 200, list).data[0]
    expect(expectBody(response, 200, importedAccessRules)).toMatchObject({
      created: 2,
      skipped: 3,
      skippedRows: [
        { pointer: '#/rules/0', ruleId: monitored.id },
        { pointer: '#/rules/2', ruleId: temporary.id },
        { pointer: '#/rules/4', ruleId: inSet?.id },
      ],
    })
  })

  test('an import adds new rules, skips existing and repeated ones, and replaces expired ones', async () => {
    const expired = await vendor.rule({ value: '192.0.2.1' })
    await expire(expired.id)
    await vendor.rule({ value: '192.0.2.2' })
    const values = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.3/32', '::ffff:192.0.2.3']
    const response = await importRules(values.map(ipRule))
    expect(expectBody(response, 200, importedAccessRules)).toMatchObject({ created: 2, skipped: 3, ids: { length: 2 } })
    expect(await count()).toBe(3)
  })

  test('an import adds nothing when a row is invalid, and lists every invalid row', async () => {
    const before = await count()
    const other = await (await createVendor(harness)).license()
    const rows = [
      { ...base, value: '192.0.2.10' },
      { ...base, type: 'HWID', value: '' },
      { ...base, type: 'CUSTOMER', value: other.customerId },
      { ...base, scope: 'PRODUCT', scopeId: other.productId },
      { ...base, scope: 'LICENSE', scopeId: other.id },
      { ...base, value: '300.1.1.1' },
      { ...base, type: 'COUNTRY', value: 'QQ' },
      { ...base, kind: 'EXCLUSION', type: 'COUNTRY', value: 'DE' },
      { ...base, extra: 1 },
      null,
      { ...base, expiresAt: '2020-01-01T00:00:00Z' },
    ]
    const response = await importRules(rows)
    expect(outcome(response)).toBe('422 INVALID_REQUEST')
    expect(problem.parse(response.body).errors).toEqual([
      { pointer: '#/rules/1/value', detail: 'must not be empty' },
      { pointer: '#/rules/2/value', detail: 'must be the id of a customer of this organization' },
      { pointer: '#/rules/3/scopeId', detail: 'must be the id of a product of this organization' },
      { pointer: '#/rules/4/scopeId', detail: 'must be the id of a license of this organization' },
      { pointer: '#/rules/5/value', detail: 'must be an IPv4 or IPv6 address or a CIDR range; got "300.1.1.1"' },
      {
        pointer: '#/rules/6/value',
        detail: 'must be an assigned ISO 3166-1 alpha-2 country code, such as DE; got "QQ"',
      },
      { pointer: '#/rules/7/type', detail: 'must be IP or HWID with the kind EXCLUSION; got COUNTRY' },
      { pointer: '#/rules/8/extra', detail: 'is not a known field' },
      { pointer: '#/rules/9', detail: 'must be an object' },
      { pointer: '#/rules/10/expiresAt', detail: 'must be in the future' },
    ])
    expect(await count()).toBe(before)
  })

  test('an import lists a thousand invalid rows, and unknown fields beside them', async () => {
    const rows = Array.from({ length: 1_000 }, (_, i) => ({ ...base, value: i % 2 ? '' : `300.0.0.${i}` }))
    const response = await vendor.call('POST', 'access-rules/import', { body: { rules: rows, more: 1 } })
    const pointers = problem.parse(response.body).errors?.map((error) => error.pointer)
    expect(pointers).toEqual(['#/more', ...rows.map((_, i) => `#/rules/${i}/value`)])
  })

  test('an import accepts at most a thousand rules', async () => {
    const rows = Array.from({ length: 1_001 }, (_, i) => ({ ...base, value: `10.0.${i >> 8}.${i & 255}` }))
    expect(outcome(await importRules(rows))).toBe('422 IMPORT_TOO_LARGE')
    const taken = await importRules(rows.slice(0, 1_000))
    expect(expectBody(taken, 200, importedAccessRules)).toMatchObject({
      created: 1_000,
      skipped: 0,
      ids: { length: 1_000 },
    })
    expect(outcome(await importRules([]))).toBe('422 INVALID_REQUEST')
  })
})

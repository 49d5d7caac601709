/** Tests the search across all kinds of resources, and the filters of licenses, machines, alerts, activity and the audit log. */

import { createdToken, foundMachine, license as licenseSchema, page } from '@keyward/contract'
import { auditEntry } from '@keyward/contract/management/audit'
import { resourceNames } from '@keyward/contract/management/names'
import { searchResults } from '@keyward/contract/management/search'
import { uuidv7 } from '@keyward/database'
import { insertMachine } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const find = async (q: string, token = vendor.managementToken) =>
  expectBody(await harness.as(token)('GET', `search?q=${encodeURIComponent(q)}`), 200, searchResults)
const list = z.object({ data: z.array(z.looseObject({ id: z.string() })) })
const ids = async (path: string) => expectBody(await vendor.call('GET', path), 200, list).data.map(({ id }) => id)

test('finds licenses, customers, products and rules by parts of their names and values', async () => {
  const customerId = await vendor.customer({
    email: 'Grace@Example.org',
    name: 'Grace 100%_Hopper',
    externalId: 'CRM-4711',
  })
  const productId = await vendor.product('Acme Studio Pro')
  const license = await vendor.license({ key: 'AbCd-EFGH-1234', customerId, productId })
  await vendor.license({ key: 'ABCE', customerId, productId })
  for (const q of ['AbCd-EFGH-1234', ' abcd-efgh-1234\n', 'a b c d', 'abcd-'])
    expect((await find(q)).licenses.map(({ id }) => id)).toEqual([license.id])
  expect((await find('abc')).licenses).toHaveLength(2)
  for (const q of ['grace@', 'EXAMPLE.ORG', 'hopper', '100%_h', 'crm-47'])
    expect((await find(q)).customers.map(({ id }) => id)).toEqual([customerId])
  for (const q of ['100_', 'gr', 'org\ngrace', '%%%', '\\\\\\']) expect((await find(q)).customers).toEqual([])
  expect((await find('studio p')).products.map(({ id }) => id)).toEqual([productId])
  const wide = await vendor.rule({ value: '10.0.0.0/8' })
  const country = await vendor.rule({ type: 'COUNTRY', value: 'DE' })
  expect((await find('10.1.2.3')).accessRules.map(({ id }) => id)).toEqual([wide.id])
  expect((await find('de')).accessRules.map(({ id }) => id)).toEqual([country.id])
  expect((await find(customerId)).accessRules).toEqual([])
  for (const q of ['', ' ', 'x'.repeat(201), 'a%00b'])
    expect(outcome(await vendor.call('GET', `search?q=${q.includes('%') ? q : encodeURIComponent(q)}`))).toBe(
      '422 INVALID_REQUEST',
    )
})

test('finds a customer by a text whose parts all occur in other customers', async () => {
  const own = await createVendor(harness)
  const [one = ''] = await Promise.all(
    ['alpha.bravo@delta.example', 'bravo.alpha@delta.example', 'delta.alpha@bravo.example', 'x-+-y@z.example'].map(
      (email) => own.customer({ email }),
    ),
  )
  const found = async (q: string) => (await find(q, own.managementToken)).customers.map(({ id, email }) => [id, email])
  expect(await found('Alpha.Bravo@Delta')).toEqual([[one, 'alpha.bravo@delta.example']])
  expect((await found('-+-')).map(([, email]) => email)).toEqual(['x-+-y@z.example'])
  expect(await found(`alpha.bravo@delta.example ${'charlie '.repeat(20)}`)).toEqual([])
})

test('returns at most 10 resources of each kind, and none that the caller may not read', async () => {
  const own = await createVendor(harness)
  for (let i = 0; i < 12; i++) await own.customer({ email: `many${i}@example.net` })
  const productId = await own.product('many')
  const customerId = await own.customer({ email: 'one@example.net' })
  for (let i = 0; i < 12; i++) await own.license({ key: `MANY-${i}`, productId, customerId })
  const all = await find('many', own.managementToken)
  expect([all.licenses.length, all.customers.length, all.products.length]).toEqual([10, 10, 1])
  expect(await find('many')).toEqual({ licenses: [], customers: [], products: [], machines: [], accessRules: [] })
  const body = { name: 'support', permissions: ['customers.read'] }
  const { secret = '' } = expectBody(await own.call('POST', 'tokens', { body }), 201, createdToken)
  const some = await find('many', secret)
  expect([some.licenses.length, some.customers.length, some.products.length]).toEqual([0, 10, 0])
})

test('returns the names of resources by their ids, but not those that the caller may not read', async () => {
  const productId = await vendor.product('Named')
  const customerId = await vendor.customer({ email: 'named@example.com', name: 'Ada' })
  const unnamed = await vendor.customer({ email: 'unnamed@example.com' })
  const license = await vendor.license({ key: 'NAMED-1', productId, customerId })
  const rule = await vendor.rule({ type: 'HWID', value: 'a\u0000\u00e9' })
  const stranger = await (await createVendor(harness)).product('of a stranger')
  const read = async (given: readonly string[], token = vendor.managementToken) =>
    expectBody(await harness.as(token)('GET', `names?ids=${given.join(',')}`), 200, resourceNames).names
  const all = [productId, customerId, unnamed, license.id, rule.id, stranger, uuidv7()]
  expect(await read(all)).toEqual({
    [productId]: 'Named',
    [customerId]: 'Ada',
    [unnamed]: 'unnamed@example.com',
    [license.id]: 'NAMED-1',
    [rule.id]: 'a\u0000\u00e9',
  })
  const body = { name: 'support', permissions: ['customers.read'] }
  const { secret = '', id } = expectBody(await vendor.call('POST', 'tokens', { body }), 201, createdToken)
  expect(await read(all, secret)).toEqual({ [customerId]: 'Ada', [unnamed]: 'unnamed@example.com' })
  expect(await read([id])).toEqual({ [id]: 'support' })
  expect(await read([productId.toUpperCase(), productId])).toEqual({ [productId]: 'Named' })
  for (const given of ['', 'x', `${productId},`, Array.from({ length: 101 }, () => uuidv7()).join(',')])
    expect(outcome(await vendor.call('GET', `names?ids=${given}`))).toBe('422 INVALID_REQUEST')
})

test('finds machines of all licenses by machine id and host name, as long as they hold a slot', async () => {
  const [first, second] = [await vendor.license(), await vendor.license()]
  const { pool } = harness.database
  const add = (licenseId: string, machineId: string | Uint8Array, hostname: string) =>
    insertMachine(pool, { licenseId, machineId, hostname })
  const laptop = await add(first.id, 'A4-F1-00-12', 'Build-7.Office')
  const tower = await add(second.id, 'A4-F1-00-13', 'build-7.office')
  const same = await add(second.id, 'A4-F1-00-12', 'other%_host')
  const odd = await add(second.id, Uint8Array.of(0xff, 0xff, 0xff), 'Ümlaut')
  const ended = await add(first.id, 'A4-F1-00-14', 'build-7.office')
  await pool.query(`update machines set lease_ends_at = now() where id = $1`, [ended])
  const stranger = await createVendor(harness)
  await add((await stranger.license()).id, 'A4-F1-00-12', 'build-7.office')
  const found = async (query: string) => new Set(await ids(`machines?${query}`))
  expect(await found('machineId=A4-F1-00-12')).toEqual(new Set([laptop, same]))
  expect(await found('hostname=BUILD-7.office')).toEqual(new Set([laptop, tower]))
  expect(await found('hostname=build-7.office&machineId=A4-F1-00-13')).toEqual(new Set([tower]))
  expect(await found('machineId=a4-f1-00-12')).toEqual(new Set())
  const pages: string[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const path: string = `machines?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`
    const one = expectBody(await vendor.call('GET', path), 200, page(foundMachine))
    pages.push(...one.data.map(({ id }) => id))
    cursor = one.nextCursor
  }
  expect(pages.toSorted()).toEqual([laptop, tower, same, odd].toSorted())
  const search = async (q: string) => new Set((await find(q)).machines.map(({ id }) => id))
  expect(await search('A4-F1-00-1')).toEqual(new Set([laptop, tower, same]))
  expect(await search('build-7')).toEqual(new Set([laptop, tower]))
  for (const q of ['other%_', 'OTHER%_h']) expect(await search(q)).toEqual(new Set([same]))
  for (const q of ['a4-f1', 'other__', 'uild-7', 'A4']) expect(await search(q)).toEqual(new Set())
  const [{ licenseId } = { licenseId: '' }] = (await find('other%')).machines
  expect(licenseId).toBe(second.id)
})

test('lists licenses by expiry and by the e-mail address of their customer', async () => {
  const own = await createVendor(harness)
  const productId = await own.product()
  const [ada, grace] = [
    await own.customer({ email: 'Ada@Example.com' }),
    await own.customer({ email: 'g@example.com' }),
  ]
  const create = async (customerId: string, expiresAt: string | null) => {
    const policy = expiresAt === null ? { type: 'PERPETUAL' } : { type: 'SUBSCRIPTION', expiresAt }
    return (await own.license({ customerId, productId, policy })).id
  }
  const never = await create(ada, null)
  const late = await create(grace, '2031-01-01T00:00:00Z')
  const early = await create(ada, '2029-01-01T00:00:00Z')
  const past = await create(grace, '2020-01-01T00:00:00Z')
  const all = async (query: string) =>
    expectBody(await own.call('GET', `licenses?${query}`), 200, list).data.map(({ id }) => id)
  expect(await all('sort=expiresAt')).toEqual([past, early, late, never])
  expect(await all('sort=expiresAt&order=desc')).toEqual([late, early, past, never])
  expect(await all('sort=expiresAt&order=desc&email=ada@example.com')).toEqual([early, never])
  expect(await all('order=asc')).toEqual([never, late, early, past])
  expect(await all('expiresBefore=2031-01-01T00:00:00Z')).toEqual([past, early])
  expect(await all('expiresAfter=2029-01-01T00:00:00Z&sort=expiresAt')).toEqual([early, late])
  expect(await all('email=ADA@example.com')).toEqual([early, never])
  expect(await all('email=ada@example.com&status=active&expiresBefore=2030-01-01T00:00:00Z')).toEqual([early])
  expect(await all('email=nobody@example.com')).toEqual([])
  const later = await create(grace, null)
  for (const [order, expected] of [
    ['asc', [past, early, late, never, later]],
    ['desc', [late, early, past, later, never]],
  ] as const) {
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const path: string = `licenses?sort=expiresAt&order=${order}&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`
      const one = expectBody(await own.call('GET', path), 200, page(licenseSchema))
      seen.push(...one.data.map(({ id }) => id))
      cursor = one.nextCursor
    }
    expect(seen).toEqual(expected)
  }
  for (const query of ['sort=key', 'expiresBefore=soon', 'email=nobody', 'order=up'])
    expect(outcome(await own.call('GET', `licenses?${query}`))).toBe('422 INVALID_REQUEST')
})

test('lists audit entries by their filters, with the values before and after a change', async () => {
  const own = await createVendor(harness)
  const entries = async (query: string) =>
    expectBody(await own.call('GET', `audit-log?${query}`), 200, page(auditEntry)).data
  const product = await own.product('Before')
  const beforeChange = new Date().toISOString()
  await own.call('PATCH', `products/${product}`, { body: { name: 'After', metadata: {} } })
  const rule = await own.rule({ value: '192.0.2.1', note: 'old' })
  await own.call('PATCH', `access-rules/${rule.id}`, { body: { note: 'new', mode: 'MONITOR' } })
  const [changed] = await entries(`resourceId=${product}&action=product.changed`)
  expect(changed).toMatchObject({ changes: { name: 'After' }, before: { name: 'Before' } })
  expect(await entries('action=access_rule.changed')).toMatchObject([
    { changes: { note: 'new', mode: 'MONITOR' }, before: { note: 'old', mode: 'ENFORCE' } },
  ])
  expect((await entries('resourceType=access_rule')).map(({ action }) => action)).toEqual([
    'access_rule.changed',
    'access_rule.created',
  ])
  const license = await own.license({ policy: { type: 'PERPETUAL', maxMachines: 5 } })
  await own.call('PATCH', `licenses/${license.id}`, { body: { policy: { maxMachines: 7 }, metadata: { order: 1 } } })
  await own.call('POST', `licenses/${license.id}/suspend`)
  expect(await entries(`resourceId=${license.id}`)).toMatchObject([
    { action: 'license.suspended', before: { status: 'active' }, changes: { status: 'suspended' } },
    {
      changes: { policy: { maxMachines: 7 }, metadata: { order: 1 } },
      before: { policy: { maxMachines: 5 }, metadata: {} },
    },
    { action: 'license.created', before: null },
  ])
  const actorId = changed?.actor.id ?? ''
  expect((await entries(`actorId=${actorId}`)).length).toBeGreaterThan(3)
  expect(await entries(`actorId=${uuidv7()}`)).toEqual([])
  const since = await entries(`from=${beforeChange}`)
  expect(since.map(({ action }) => action).slice(-3)).toEqual([
    'access_rule.changed',
    'access_rule.created',
    'product.changed',
  ])
  const until = (await entries(`to=${beforeChange}`)).map(({ id }) => id)
  expect(until.length).toBeGreaterThan(0)
  expect(until).not.toContain(since[0]?.id)
  expect(outcome(await own.call('GET', 'audit-log?from=yesterday'))).toBe('422 INVALID_REQUEST')
})

test('lists alerts and activity by their filters', async () => {
  const [first, second] = [await vendor.license(), await vendor.license()]
  const { pool } = harness.database
  const insertAlert = async (licenseId: string, acknowledgedAt: Date | null) => {
    const id = uuidv7()
    await pool.query(
      `insert into alerts (id, organization_id, license_id, count, first_at, last_at, acknowledged_at)
       values ($1, $2, $3, 1, now(), now(), $4)`,
      [id, vendor.id, licenseId, acknowledgedAt],
    )
    return id
  }
  const open = await insertAlert(first.id, null)
  const closed = await insertAlert(first.id, new Date())
  const other = await insertAlert(second.id, null)
  expect(await ids('alerts?open=true')).toEqual([other, open])
  expect(await ids('alerts?open=false')).toEqual([closed])
  expect(await ids(`alerts?licenseId=${first.id}`)).toEqual([closed, open])
  const from = new Date().toISOString()
  await vendor.call('POST', `licenses/${first.id}/suspend`)
  const path = `licenses/${first.id}/activity`
  expect(await ids(`${path}?type=LICENSE_SUSPENDED`)).toHaveLength(1)
  expect(await ids(`${path}?from=${from}`)).toHaveLength(1)
  expect(await ids(`${path}?to=${from}`)).toHaveLength(1)
  expect(await ids(`${path}?code=VALID`)).toEqual([])
  expect(await ids(`${path}?machineId=m1`)).toEqual([])
  expect(await ids(`activity?type=LICENSE_SUSPENDED`)).toHaveLength(1)
})

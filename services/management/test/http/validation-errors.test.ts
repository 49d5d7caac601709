/** Tests validation errors. Each pointer has one error, a response lists at most 100 errors, and no message comes from a library. */

import { accessRule, customer as customerSchema, problem } from '@keyward/contract'
import { product as productSchema } from '@keyward/contract/management/products'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

async function errorsOf(path: string, body: object): Promise<string[]> {
  const response = await vendor.call('POST', path, { body })
  expect(outcome(response)).toBe('422 INVALID_REQUEST')
  return (problem.parse(response.body).errors ?? []).map(({ pointer, detail }) => `${pointer} ${detail}`)
}

const someId = '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b'
const blacklist = { kind: 'BLACKLIST', type: 'IP', value: '192.0.2.1', scope: 'ORGANIZATION' }

test.each<[string, object, string[]]>([
  ['products', {}, ['#/name is required']],
  ['products', { name: null }, ['#/name must be a string']],
  ['products', { name: '' }, ['#/name must not be empty']],
  ['products', { name: ' \u00a0\t' }, ['#/name must not be blank']],
  ['products', { name: 'x'.repeat(201) }, ['#/name must have at most 200 characters']],
  ['products', { name: 'a', more: 1 }, ['#/more is not a known field']],
  ['products', { name: 'a', metadata: [] }, ['#/metadata must be an object']],
  ['tokens', { name: 't', permissions: 'licenses.read' }, ['#/permissions must be a list']],
  [
    'tokens',
    { name: 't', permissions: [], expiresAt: 'soon' },
    [`#/expiresAt must be a time in ISO 8601 with "Z" or an offset, such as 2027-01-31T00:00:00Z`],
  ],
  ['access-rules', { ...blacklist, kind: 'GREYLIST' }, ['#/kind must be one of BLACKLIST, EXCLUSION, RESTRICTION']],
  [
    'access-rules',
    { ...blacklist, allowSuspendedOrExpired: 'yes' },
    ['#/allowSuspendedOrExpired must be true or false'],
  ],
  ['access-rules', { ...blacklist, scope: 'LICENSE', scopeId: 'x' }, ['#/scopeId must be an id (a UUID)']],
  ['access-rules/import', { rules: [] }, ['#/rules must not be empty']],
  ['access-rules/import', {}, ['#/rules is required']],
  ['customers', { email: 'x' }, ['#/email must be an e-mail address']],
  ...['a@-b.de', 'a@b-.de', '.a@b.de', 'a.@b.de', 'a..a@b.de', `${'x'.repeat(65)}@b.de`, `a@${'b.'.repeat(126)}de`].map(
    (email): [string, object, string[]] => ['customers', { email }, ['#/email must be an e-mail address']],
  ),
  ...[' ABC', 'ABC ', ' '].map((key): [string, object, string[]] => [
    'licenses',
    { productId: someId, customerId: someId, policy: { type: 'PERPETUAL' }, key },
    ['#/key must not begin or end with a blank'],
  ]),
  ['customers', { email: 'a\u200b@example.com' }, ['#/email must not contain invisible characters']],
])('POST %s: describes the errors of %j', async (path, body, expected) => {
  expect(await errorsOf(path, body)).toEqual(expected)
})

test.each([
  'customers?email=',
  'licenses?key=',
  'licenses?email=',
  'machines?machineId=',
  'access-rules?set=',
  'search?q=',
])('GET %s: rejects an empty filter, which would otherwise mean any value', async (path) => {
  const response = await vendor.call('GET', path)
  expect(outcome(response)).toBe('422 INVALID_REQUEST')
  const [name] = path.split('?')[1]?.split('=') ?? []
  expect(problem.parse(response.body).errors?.map(({ pointer }) => pointer)).toEqual([`?${name}`])
})

test('counts characters as code points', async () => {
  const rule = (note: string) =>
    vendor.call('POST', 'access-rules', { body: { ...blacklist, value: '192.0.2.9', note } })
  const note = '😀'.repeat(500)
  expect(expectBody(await rule(note), 201, accessRule).note).toBe(note)
  expect(outcome(await rule(`${note}!`))).toBe('422 INVALID_REQUEST')
  const [name, externalId] = ['𝔸'.repeat(200), '😀'.repeat(200)]
  const email = `${'𝔸'.repeat(64)}@example.com`
  const created = await vendor.call('POST', 'customers', { body: { email, name, externalId } })
  expect(expectBody(created, 201, customerSchema)).toMatchObject({ email, name, externalId })
  for (const longer of [{ name: `${name}x` }, { externalId: `${externalId}x` }, { email: `x${email}` }])
    expect(outcome(await vendor.call('POST', 'customers', { body: { email: 'a@example.com', ...longer } }))).toBe(
      '422 INVALID_REQUEST',
    )
})

test('describes the errors of invalid numbers', async () => {
  const [productId, customerId] = [await vendor.product(), await vendor.customer()]
  const license = (maxMachines: unknown) => ({ productId, customerId, policy: { type: 'PERPETUAL', maxMachines } })
  expect(await errorsOf('licenses', license(0))).toEqual(['#/policy/maxMachines must be at least 1'])
  expect(await errorsOf('licenses', license(1.5))).toEqual(['#/policy/maxMachines must be a whole number'])
  expect(await errorsOf('licenses', license('5'))).toEqual(['#/policy/maxMachines must be a number'])
})

test('lists at most a hundred validation errors and states their number', async () => {
  const many = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`f${i}`, i]))
  const response = await vendor.call('POST', 'products', { body: { name: 'a', ...many } })
  const { errors, detail } = problem.parse(response.body)
  expect(errors).toHaveLength(100)
  expect(detail).toBe('The request has 150 validation errors; the first 100 are listed.')
  const long = await vendor.call('POST', 'products', { body: { name: 'a', ['ü'.repeat(30_000)]: 1 } })
  expect(long.text.length).toBeLessThan(3_000)
})

test('lists the allowed methods, and redirects /docs/ to /docs', async () => {
  const detailOf = async (method: string, path: string) => problem.parse((await vendor.call(method, path)).body).detail
  expect(await detailOf('PUT', 'products')).toBe('Method PUT is not allowed here. Allowed: GET, HEAD, POST.')
  const response = await fetch(`${harness.origin}/docs/`, { redirect: 'manual' })
  expect([response.status, response.headers.get('location')]).toEqual([308, '../docs'])
  expect((await fetch(`${harness.origin}/docs/`)).url).toBe(`${harness.origin}/docs`)
})

test('rejects the name __proto__ anywhere in a body', async () => {
  for (const raw of [
    '{"name":"a","metadata":{"__proto__":1}}',
    '{"name":"a","metadata":{"deep":[{"\\u005f_proto__":{"x":1}}]}}',
    '{"name":"a","__proto__":{}}',
    '{"name":"a","__\\u0070roto__":1}',
    '{"name":"a","metadata":{"__\\u0070roto__":1}}',
    '{"name":"a","metadata":{"deep":[{"__prot\\u006F__":{"x":1}}]}}',
  ])
    expect(outcome(await vendor.call('POST', 'products', { raw }))).toBe('422 INVALID_REQUEST')
  const kept = { constructor: 1, toString: { prototype: null }, text: '__proto__' }
  const response = await vendor.call('POST', 'products', { body: { name: ' a ', metadata: kept } })
  expect(expectBody(response, 201, productSchema)).toMatchObject({ name: ' a ', metadata: kept })
})

test.each([
  ['ada@example.com', true],
  ['jürgen@müller.example', true],
  ['用户@例子.公司', true],
  ["o'hara+x@mail.example.co.uk", true],
  ['a@b', false],
  ['a@@example.com', false],
  ['a b@example.com', false],
  ['@example.com', false],
  ['a@example..com', false],
  ['a@example.com.', false],
  ['a\u0000@example.com', false],
  [`${'a'.repeat(320)}@example.com`, false],
])('the e-mail address %s is accepted: %s', async (email, taken) => {
  const response = await vendor.call('POST', 'customers', { body: { email } })
  expect(outcome(response)).toBe(taken ? '201' : '422 INVALID_REQUEST')
  expect(customerSchema.safeParse(response.body).data?.email).toBe(taken ? email : undefined)
})

/** Tests entitlements of products and licenses (docs/api.md#v13), and API keys that are bound to a product (docs/api.md#v12). */

import { apiKey, importedLicenses, license, page } from '@keyward/contract'
import { auditEntry } from '@keyward/contract/management/audit'
import { product } from '@keyward/contract/management/products'
import { template } from '@keyward/contract/management/templates'
import { parsePayload } from '@keyward/license-file'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarnessWithValidator } from '../support/harness.ts'
import { createVendor, expectBody, outcome, perpetual, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarnessWithValidator()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const createProduct = async (entitlements?: object) =>
  expectBody(await vendor.call('POST', 'products', { body: { name: 'Studio', entitlements } }), 201, product)
/** Returns members with long values, which have about this number of bytes as JSON. */
const longMembers = (bytes: number, prefix: string): object =>
  Object.fromEntries(Array.from({ length: Math.floor(bytes / 128) }, (_, n) => [`${prefix}${10 + n}`, 'v'.repeat(120)]))

describe('entitlements', () => {
  test('entitlements are stored, replaced as a whole and removed', async () => {
    const defaults = { edition: 'pro', seats: 5, 'export.pdf': true, empty: '', least: Number.MIN_SAFE_INTEGER }
    const { id, entitlements } = await createProduct(defaults)
    expect(entitlements).toEqual(defaults)
    const patch = async (body: object) =>
      expectBody(await vendor.call('PATCH', `products/${id}`, { body }), 200, product)
    expect((await patch({ name: 'Other' })).entitlements).toEqual(defaults)
    expect((await patch({ entitlements: { seats: 6 } })).entitlements).toEqual({ seats: 6 })
    const own = { seats: 50, export: null }
    const created = await vendor.license({ productId: id, entitlements: own })
    expect(created.entitlements).toEqual(own)
    const path = `licenses/${created.id}`
    expect(expectBody(await vendor.call('GET', path), 200, license).entitlements).toEqual(own)
    const { updatedAt } = created
    const same = await vendor.call('PATCH', path, { body: { entitlements: { export: null, seats: 50 } } })
    expect(expectBody(same, 200, license).updatedAt).toBe(updatedAt)
    const removed = await vendor.call('PATCH', path, { body: { entitlements: {} } })
    expect(expectBody(removed, 200, license).entitlements).toEqual({})
    expect((await patch({ entitlements: {} })).entitlements).toEqual({})
    const { rows } = await harness.database.pool.query(
      'select p.entitlements as of_product, l.entitlements as of_license from products p join licenses l on l.product_id = p.id where p.id = $1',
      [id],
    )
    expect(rows).toEqual([{ of_product: null, of_license: null }])
  })

  const tooMany = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`n${n}`, true]))
  test.each([
    ['a name with a capital', { Seats: 1 }, '#/entitlements/Seats'],
    ['a name that begins with a digit', { '1a': 1 }, '#/entitlements/1a'],
    ['a name of 65 characters', { ['a'.repeat(65)]: 1 }, `#/entitlements/${'a'.repeat(30)}%E2%80%A6`],
    ['a fraction', { a: 1.5 }, '#/entitlements/a'],
    ['an integer that a double cannot hold', { a: 2 ** 53 }, '#/entitlements/a'],
    ['a list', { a: [1] }, '#/entitlements/a'],
    ['a text of 257 characters', { a: 'x'.repeat(257) }, '#/entitlements/a'],
    ['a text with NUL', { a: '\0' }, '#/entitlements/a'],
    ['65 members', tooMany, '#/entitlements'],
    ['more than 4 KiB', longMembers(4300, 'a'), '#/entitlements'],
    ['no object', [], '#/entitlements'],
  ])('rejects entitlements with %s', async (_, entitlements, pointer) => {
    const body = { name: 'Studio', entitlements }
    const rejected = await vendor.call('POST', 'products', { body })
    expect(outcome(rejected)).toBe('422 INVALID_REQUEST')
    expect(rejected.body).toMatchObject({ errors: [{ pointer }] })
  })

  test('rejects entitlements with an invalid name, and states the rule for names', async () => {
    const rejected = await vendor.call('POST', 'products', { body: { name: 'Studio', entitlements: { Seats: 1 } } })
    const detail = 'is not a valid name: it must match ^[a-z][a-z0-9_.-]{0,63}$'
    expect(rejected.body).toMatchObject({ errors: [{ detail }] })
  })

  test('`false` switches an entitlement of the product off, also from a template, and counts no bytes', async () => {
    const { id: productId } = await createProduct({ sso: true, export: true, beta: false })
    const own = await vendor.license({ productId, entitlements: { sso: false, beta: true } })
    expect(own.entitlements).toEqual({ sso: false, beta: true })
    const shown = async (id: string) => (await vendor.call('GET', `licenses/${id}/entitlements`)).body
    expect(await shown(own.id)).toEqual({
      effective: { export: true, beta: true },
      defaults: { sso: true, export: true, beta: false },
      overrides: { sso: false, beta: true },
    })
    const body = { name: 'Small', policy: { type: 'PERPETUAL' }, entitlements: { export: false } }
    const made = expectBody(await vendor.call('POST', `products/${productId}/templates`, { body }), 201, template)
    const issued = { templateId: made.id, customerId: await vendor.customer() }
    const { id } = expectBody(await vendor.call('POST', 'licenses', { body: issued }), 201, license)
    expect(await shown(id)).toMatchObject({ effective: { sso: true } })
    const off = Object.fromEntries(Object.keys(longMembers(3000, 'p')).map((name) => [name, false]))
    const other = await vendor.license({ productId, entitlements: off })
    const longer = await vendor.call('PATCH', `products/${productId}`, {
      body: { entitlements: longMembers(3900, 'p') },
    })
    expect(outcome(longer)).toBe('200')
    expect(await shown(other.id)).toMatchObject({ overrides: off })
  })

  test('`false` returns VALIDATORS_OUTDATED while a validator would send it to apps', async () => {
    const { id: productId } = await createProduct({ sso: true })
    const outdated = "insert into validators (id, name, details) values (gen_random_uuid(), 'old', '{\"features\":[]}')"
    await harness.database.pool.query(outdated)
    const entitlements = { sso: false }
    const body = { productId, customerId: await vendor.customer(), policy: perpetual, entitlements }
    const attempts = [
      vendor.call('POST', 'licenses', { body }),
      vendor.call('POST', 'licenses/import', { body: { licenses: [body] } }),
      vendor.call('POST', 'products', { body: { name: 'Studio', entitlements } }),
      vendor.call('PATCH', `products/${productId}`, { body: { entitlements } }),
    ]
    const outcomes = (await Promise.all(attempts)).map(outcome)
    await harness.database.pool.query("delete from validators where name = 'old'")
    expect(outcomes).toEqual(attempts.map(() => '409 VALIDATORS_OUTDATED'))
  })

  test('an entitlement can be null only in a license', async () => {
    const body = { name: 'Studio', entitlements: { a: null } }
    expect(outcome(await vendor.call('POST', 'products', { body }))).toBe('422 INVALID_REQUEST')
    expect((await vendor.license({ entitlements: { a: null } })).entitlements).toEqual({ a: null })
  })

  test('the entitlements of a product and its license together have at most 4 KiB', async () => {
    const { id: productId } = await createProduct(longMembers(3000, 'p'))
    const customerId = await vendor.customer()
    const add = (entitlements: object) =>
      vendor.call('POST', 'licenses', { body: { productId, customerId, policy: perpetual, entitlements } })
    const excessive = await add(longMembers(2000, 'l'))
    expect(outcome(excessive)).toBe('422 INVALID_REQUEST')
    expect(excessive.body).toMatchObject({ errors: [{ pointer: '#/entitlements' }] })
    expect(excessive.text).toMatch(/would have \d{4} bytes of entitlements as JSON; at most 4096 are allowed/)
    // Overrides of the product's members add no bytes.
    const { id } = expectBody(await add(longMembers(3000, 'p')), 201, license)
    const other = await createProduct(longMembers(2000, 'o'))
    expect(outcome(await vendor.call('PATCH', `licenses/${id}`, { body: { productId: other.id } }))).toBe(
      '422 INVALID_REQUEST',
    )
    const longer = { body: { entitlements: longMembers(2000, 'q') } }
    const rejected = await vendor.call('PATCH', `products/${productId}`, longer)
    expect(outcome(rejected)).toBe('422 INVALID_REQUEST')
    expect(rejected.text).toContain(`license ${id} would have`)
    expect(outcome(await vendor.call('PATCH', `licenses/${id}`, { body: { entitlements: {} } }))).toBe('200')
    expect(outcome(await vendor.call('PATCH', `products/${productId}`, longer))).toBe('200')
  })

  test('an import stores entitlements, and lists every license whose entitlements are too long', async () => {
    const { id: productId } = await createProduct(longMembers(3000, 'p'))
    const row = { productId, customerId: await vendor.customer(), policy: perpetual }
    const rows = [{ ...row, entitlements: { a: 1 } }, { ...row, entitlements: longMembers(2000, 'l') }, row]
    const rejected = await vendor.call('POST', 'licenses/import', { body: { licenses: rows } })
    expect(rejected.body).toMatchObject({ errors: [{ pointer: '#/licenses/1/entitlements' }] })
    const imported = await vendor.call('POST', 'licenses/import', { body: { licenses: [rows[0], rows[2]] } })
    const [first, second] = expectBody(imported, 200, importedLicenses).licenses
    const shown = async (id = '') => expectBody(await vendor.call('GET', `licenses/${id}`), 200, license).entitlements
    expect([await shown(first?.id), await shown(second?.id)]).toEqual([{ a: 1 }, {}])
  })

  test('concurrent changes of a product and its licenses never exceed the limit of 4 KiB', async () => {
    const { id: productId } = await createProduct()
    const licenses = await Promise.all(Array.from({ length: 6 }, () => vendor.license({ productId })))
    const requests = licenses.flatMap(({ id }, n) => [
      vendor.call('PATCH', `licenses/${id}`, { body: { entitlements: longMembers(2500, `l${n}`) } }),
      vendor.call('PATCH', `products/${productId}`, { body: { entitlements: longMembers(2500, `p${n}`) } }),
    ])
    expect(new Set((await Promise.all(requests)).map(outcome))).toEqual(new Set(['200', '422 INVALID_REQUEST']))
    const { rows } = await harness.database.pool.query(
      `select count(*)::integer as excessive from licenses l join products p on p.id = l.product_id
       where octet_length((coalesce(p.entitlements, '{}') || coalesce(l.entitlements, '{}'))::text) > 4300 and p.id = $1`,
      [productId],
    )
    expect(rows).toEqual([{ excessive: 0 }])
  })

  test('entitlements are the last member of the license file, which omits them when there are none', async () => {
    const { id: productId } = await createProduct({ edition: 'pro', seats: 5 })
    const entitled = await vendor.license({ productId, entitlements: { seats: 9, edition: null, beta: true } })
    const text = (await vendor.call('GET', `licenses/${entitled.id}/file`)).text
    const bytes = Buffer.from(text.split('.')[0] ?? '', 'base64url')
    expect(parsePayload(bytes)).toMatchObject({ productId, entitlements: { seats: 9, beta: true } })
    expect(Object.keys(z.looseObject({}).parse(JSON.parse(bytes.toString())))).toEqual(
      'licenseKey licenseId productId customerEmail policy issuedAt refreshAfter kid entitlements'.split(' '),
    )
    const without = await vendor.license({ productId, entitlements: { seats: null, edition: null } })
    const plain = (await vendor.call('GET', `licenses/${without.id}/file`)).text
    expect(Buffer.from(plain.split('.')[0] ?? '', 'base64url').toString()).not.toContain('entitlements')
  })
})

describe('an API key for a product', () => {
  const bound = createdKey()

  function createdKey() {
    const schema = apiKey.extend({ secret: z.string() })
    return async (productId: string) =>
      expectBody(await vendor.call('POST', 'api-keys', { body: { name: 'app', productId } }), 201, schema)
  }

  test('a bound API key shows its product, and other keys show null', async () => {
    const { id: productId } = await createProduct()
    const { id } = await bound(productId)
    const { data } = expectBody(await vendor.call('GET', 'api-keys?limit=100'), 200, page(apiKey))
    expect(data.filter((key) => key.productId !== null)).toMatchObject([{ id, productId }])
    const unbound = await vendor.call('POST', 'api-keys', { body: { name: 'app', productId: null } })
    expect(unbound.body).toMatchObject({ productId: null })
  })

  test('an API key can be bound only to a product of the organization', async () => {
    const foreign = await createVendor(harness, 'STANDARD', 'Other')
    for (const productId of [await foreign.product(), crypto.randomUUID()]) {
      const rejected = await vendor.call('POST', 'api-keys', { body: { name: 'app', productId } })
      expect(outcome(rejected)).toBe('422 INVALID_REQUEST')
      expect(rejected.body).toMatchObject({ errors: [{ pointer: '#/productId' }] })
    }
  })

  test('a bound API key gets license files of its product only', async () => {
    const { id: productId } = await createProduct()
    const { secret } = await bound(productId)
    const own = await vendor.license({ productId, policy: { type: 'PERPETUAL' } })
    const other = await vendor.license({ policy: { type: 'PERPETUAL' } })
    const fetch = (licenseKey: string, as = secret) => harness.as(as)('POST', 'licenses/file', { body: { licenseKey } })
    expect(outcome(await fetch(own.key))).toBe('200')
    expect(outcome(await fetch(other.key))).toBe('409 NOT_FOUND')
    expect(outcome(await fetch(other.key, vendor.apiKey))).toBe('200')
  })

  test('a bound API key is revoked with its product, and the audit entry contains the id of the key', async () => {
    const { id: productId } = await createProduct()
    const { id, secret } = await bound(productId)
    expect(outcome(await vendor.call('DELETE', `products/${productId}`))).toBe('204')
    expect(outcome(await vendor.call('GET', `api-keys/${id}`))).toBe('404 NOT_FOUND')
    const rejected = await harness.as(secret)('POST', 'licenses/file', { body: { licenseKey: 'any' } })
    expect(outcome(rejected)).toBe('401 UNAUTHENTICATED')
    const { data } = expectBody(await vendor.call('GET', 'audit-log?limit=1'), 200, page(auditEntry))
    expect(data).toMatchObject([{ action: 'product.deleted', changes: { revokedApiKeys: [id] } }])
  })

  test('a bound API key is revoked even if it is created while its product is deleted', async () => {
    for (let round = 0; round < 5; round++) {
      const { id: productId } = await createProduct()
      const keys = Array.from({ length: 4 }, () =>
        vendor.call('POST', 'api-keys', { body: { name: 'app', productId } }),
      )
      await Promise.all([...keys, vendor.call('DELETE', `products/${productId}`)])
    }
    const { rows } = await harness.database.pool.query(
      `select count(*)::integer as orphans from credentials c
       where revoked_at is null and product_id is not null and not exists (select from products p where p.id = c.product_id)`,
    )
    expect(rows).toEqual([{ orphans: 0 }])
  })
})

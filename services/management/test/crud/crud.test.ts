/** Tests products, customers, licenses and the actions on licenses. */

import { customer as customerSchema, license as licenseSchema } from '@keyward/contract'
import { product as productSchema } from '@keyward/contract/management/products'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

const MS_PER_DAY = 86_400_000

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const listOf = <Schema extends z.ZodType>(schema: Schema) =>
  z.object({ data: z.array(schema), nextCursor: z.string().nullable() })

describe('products', () => {
  test('products are created, read, changed, listed and deleted', async () => {
    const { call } = vendor
    const created = await call('POST', 'products', { body: { name: 'Studio', metadata: { a_b: [1, { c_d: null }] } } })
    const { id } = expectBody(created, 201, productSchema)
    expect(created.headers.get('location')).toBe(`/api/v1/products/${id}`)
    const read = expectBody(await call('GET', `products/${id}`), 200, productSchema)
    expect(read).toMatchObject({ name: 'Studio', metadata: { a_b: [1, { c_d: null }] } })
    const changed = expectBody(await call('PATCH', `products/${id}`, { body: { name: 'Suite' } }), 200, productSchema)
    expect(changed).toMatchObject({ name: 'Suite', metadata: { a_b: [1, { c_d: null }] } })
    const list = expectBody(await call('GET', 'products'), 200, listOf(productSchema))
    expect(list.data.map((product) => product.id)).toContain(id)
    expect((await call('DELETE', `products/${id}`)).status).toBe(204)
    expect(outcome(await call('GET', `products/${id}`))).toBe('404 NOT_FOUND')
    expect(outcome(await call('DELETE', `products/${id}`))).toBe('404 NOT_FOUND')
  })
})

describe('customers', () => {
  test('two customers may share an e-mail address but not an external id', async () => {
    const { call } = vendor
    const first = await vendor.customer({ email: 'SHARED@example.com', externalId: 'crm-1', name: 'Ada' })
    const second = await vendor.customer({ email: 'shared@example.com' })
    const body = { email: 'shared@example.com', externalId: 'crm-1' }
    expect(outcome(await call('POST', 'customers', { body }))).toBe('409 EXTERNAL_ID_EXISTS')
    const patch = { body: { externalId: 'crm-1' } }
    expect(outcome(await call('PATCH', `customers/${second}`, patch))).toBe('409 EXTERNAL_ID_EXISTS')
    const byEmail = await call('GET', 'customers?email=SHARED@example.com')
    expect(expectBody(byEmail, 200, listOf(customerSchema)).data.map((one) => one.id)).toEqual([second, first])
    const byId = await call('GET', 'customers?externalId=crm-1')
    expect(expectBody(byId, 200, listOf(customerSchema)).data.map((one) => one.id)).toEqual([first])
  })
})

describe('licenses', () => {
  test('a license gets a key of the documented form, or keeps the given one', async () => {
    const generated = await vendor.license()
    expect(generated.key).toMatch(/^(?:[2-9A-HJ-NP-Z]{4}-){3}[2-9A-HJ-NP-Z]{4}$/)
    expect(generated).toMatchObject({ status: 'active', machines: { used: 0, max: 5 }, suspendedAt: null })
    const given = await vendor.license({ key: 'old key #1 ~' })
    expect(given.key).toBe('old key #1 ~')
    const { productId, customerId } = given
    const body = { productId, customerId, key: given.key, policy: { type: 'PERPETUAL' } }
    expect(outcome(await vendor.call('POST', 'licenses', { body }))).toBe('409 LICENSE_KEY_EXISTS')
  })

  test('actions change the status of a license, and return 409 after a revocation', async () => {
    const { call } = vendor
    const expiresAt = new Date(Date.now() - 1_000).toISOString()
    const { id } = await vendor.license({ policy: { type: 'SUBSCRIPTION', expiresAt } })
    const act = async (action: string, body?: object) =>
      call('POST', `licenses/${id}/${action}`, body === undefined ? {} : { body })
    const read = async () => expectBody(await call('GET', `licenses/${id}`), 200, licenseSchema)
    expect((await read()).status).toBe('expired')
    const later = new Date(Date.now() + 60_000).toISOString()
    expect(expectBody(await act('renew', { expiresAt: later }), 200, licenseSchema).status).toBe('active')
    const suspended = expectBody(await act('suspend'), 200, licenseSchema)
    expect(suspended.status).toBe('suspended')
    expect(expectBody(await act('suspend'), 200, licenseSchema)).toEqual(suspended)
    expect(expectBody(await act('reinstate'), 200, licenseSchema)).toMatchObject({
      status: 'active',
      suspendedAt: null,
    })
    const revoked = expectBody(await act('revoke'), 200, licenseSchema)
    expect(expectBody(await act('revoke'), 200, licenseSchema)).toEqual(revoked)
    for (const action of ['suspend', 'reinstate']) expect(outcome(await act(action))).toBe('409 LICENSE_REVOKED')
    expect(outcome(await act('renew', { expiresAt: later }))).toBe('409 LICENSE_REVOKED')
  })

  test('replacing the key of a license keeps all other fields', async () => {
    const { call } = vendor
    const license = await vendor.license({ metadata: { a: 1 } })
    const other = await vendor.license()
    const replace = (body?: object, headers: Record<string, string> = {}) =>
      call('POST', `licenses/${license.id}/replace-key`, { ...(body === undefined ? {} : { body }), headers })
    const idempotent = { 'idempotency-key': 'replace-once' }
    const generated = expectBody(await replace(undefined, idempotent), 200, licenseSchema)
    expect(generated.key).toMatch(/^(?:[2-9A-HJ-NP-Z]{4}-){3}[2-9A-HJ-NP-Z]{4}$/)
    expect(generated.key).not.toBe(license.key)
    expect(generated).toEqual({ ...license, key: generated.key, updatedAt: generated.updatedAt })
    expect(expectBody(await replace(undefined, idempotent), 200, licenseSchema)).toEqual(generated)
    const given = expectBody(await replace({ key: 'new key' }), 200, licenseSchema)
    expect(given.key).toBe('new key')
    expect(expectBody(await replace({ key: 'new key' }), 200, licenseSchema)).toEqual(given)
    expect(outcome(await replace({ key: other.key }))).toBe('409 LICENSE_KEY_EXISTS')
    expect(outcome(await replace({ key: null }))).toBe('422 INVALID_REQUEST')
    expect(outcome(await replace({ key: 'ü' }))).toBe('422 INVALID_REQUEST')
    await call('POST', `licenses/${license.id}/revoke`)
    expect(outcome(await replace({ key: 'newer key' }))).toBe('409 LICENSE_REVOKED')
    const audited = await call('GET', 'audit-log?limit=10')
    expect(audited.text).toContain(`{"key":"new key","previousKey":"${generated.key}"}`)
  })

  test('a change of one field of the policy keeps the other fields', async () => {
    const { call } = vendor
    const { id } = await vendor.license()
    const patch = (policy: object) => call('PATCH', `licenses/${id}`, { body: { policy } })
    expect(outcome(await patch({ type: 'TRIAL' }))).toBe('422 INVALID_REQUEST')
    const expiresAt = '2031-01-01T00:00:00.000Z'
    const trial = expectBody(await patch({ type: 'TRIAL', expiresAt }), 200, licenseSchema)
    expect(trial.policy).toEqual({
      type: 'TRIAL',
      maxMachines: 5,
      expiresAt,
      durationDays: null,
      maxReleases: null,
      leaseSeconds: null,
      graceDays: 0,
      fileDays: null,
    })
    expect(expectBody(await patch({ maxMachines: null }), 200, licenseSchema).machines).toEqual({ used: 0, max: null })
    expect(outcome(await patch({ expiresAt: null }))).toBe('422 INVALID_REQUEST')
  })

  test('a policy may contain an expiry or durationDays, but not both', async () => {
    const { call } = vendor
    const policy = { type: 'TRIAL', durationDays: 14 }
    const { id, ...license } = await vendor.license({ policy })
    expect(license).toMatchObject({ status: 'active', policy: { ...policy, expiresAt: null } })
    const patch = (given: object) => call('PATCH', `licenses/${id}`, { body: { policy: given } })
    const pointer = async (given: object) => {
      const response = await patch(given)
      return `${outcome(response)} ${/"pointer":"(.*?)"/.exec(response.text)?.[1]}`
    }
    expect(await pointer({ durationDays: null })).toBe('422 INVALID_REQUEST #/policy/expiresAt')
    expect(await pointer({ type: 'PERPETUAL' })).toBe('422 INVALID_REQUEST #/policy/durationDays')
    expect(await pointer({ durationDays: 0 })).toBe('422 INVALID_REQUEST #/policy/durationDays')
    expect(await pointer({ durationDays: 36_501 })).toBe('422 INVALID_REQUEST #/policy/durationDays')
    expect(expectBody(await patch({ durationDays: 7 }), 200, licenseSchema).policy.durationDays).toBe(7)
    expect(outcome(await call('GET', `licenses/${id}/file`))).toBe('409 NOT_STARTED')
    const expiresAt = '2031-01-01T00:00:00.000Z'
    const started = expectBody(await call('POST', `licenses/${id}/renew`, { body: { expiresAt } }), 200, licenseSchema)
    expect(started.policy).toMatchObject({ durationDays: 7, expiresAt })
    expect(await pointer({ durationDays: 8 })).toBe('422 INVALID_REQUEST #/policy/durationDays')
    const again = expectBody(await patch({ durationDays: 8, expiresAt: null }), 200, licenseSchema)
    expect(again.policy).toMatchObject({ durationDays: 8, expiresAt: null })
    expect(expectBody(await patch({ maxReleases: 0 }), 200, licenseSchema).policy.maxReleases).toBe(0)
    expect(await pointer({ maxReleases: 1_001 })).toBe('422 INVALID_REQUEST #/policy/maxReleases')
    for (const leaseSeconds of [59, 31_622_401])
      expect(await pointer({ leaseSeconds })).toBe('422 INVALID_REQUEST #/policy/leaseSeconds')
    expect(expectBody(await patch({ leaseSeconds: 60 }), 200, licenseSchema).policy.leaseSeconds).toBe(60)
    const both = { productId: license.productId, customerId: license.customerId, policy: { ...policy, expiresAt } }
    expect(outcome(await call('POST', 'licenses', { body: both }))).toBe('422 INVALID_REQUEST')
    const validator = `insert into validators (id, name, ready, details) values (gen_random_uuid(), 'old', true, '{}')`
    await harness.database.pool.query(validator)
    expect(outcome(await patch({ durationDays: 9 }))).toBe('409 VALIDATORS_OUTDATED')
    expect(outcome(await patch({ expiresAt }))).toBe('200')
    expect(outcome(await patch({ maxMachines: 5 }))).toBe('409 VALIDATORS_OUTDATED')
    await harness.database.pool.query('delete from validators')
  })

  test('a renewal into the past is refused, and a change of the policy can end a license', async () => {
    const { call } = vendor
    const expiresAt = '2031-01-01T00:00:00.000Z'
    const { id } = await vendor.license({ policy: { type: 'SUBSCRIPTION', expiresAt } })
    const past = { expiresAt: '2020-01-01T00:00:00.000Z' }
    const refused = await call('POST', `licenses/${id}/renew`, { body: past })
    expect(outcome(refused)).toBe('422 INVALID_REQUEST')
    expect(refused.text).toContain('"#/expiresAt"')
    const asked = await call('POST', `licenses/${id}/renew`, { body: { ...past, allowEarlier: true } })
    expect(asked.text).toContain('must be in the future')
    expect(expectBody(await call('GET', `licenses/${id}`), 200, licenseSchema).policy.expiresAt).toBe(expiresAt)
    expect(outcome(await call('PATCH', `licenses/${id}`, { body: { policy: past } }))).toBe('200')
    expect(outcome(await call('POST', `licenses/${id}/renew`, { body: past }))).toBe('200')
  })

  test('an external id is unique in the organization, and finds its license', async () => {
    const { call } = vendor
    const license = await vendor.license({ externalId: 'shop-1' })
    const { productId, customerId } = license
    const other = await vendor.license({ productId, customerId })
    const found = await call('GET', 'licenses?externalId=shop-1')
    expect(expectBody(found, 200, listOf(licenseSchema)).data).toEqual([license])
    const body = { productId, customerId, policy: { type: 'PERPETUAL' }, externalId: 'shop-1' }
    expect(outcome(await call('POST', 'licenses', { body }))).toBe('409 EXTERNAL_ID_EXISTS')
    const change = (externalId: string | null) => call('PATCH', `licenses/${other.id}`, { body: { externalId } })
    expect(outcome(await change('shop-1'))).toBe('409 EXTERNAL_ID_EXISTS')
    const taken = await call('POST', 'licenses/import', { body: { licenses: [body] } })
    expect(outcome(taken)).toBe('422 INVALID_REQUEST')
    expect(taken.text).toContain('"#/licenses/0/externalId"')
    expect(expectBody(await change('shop-2'), 200, licenseSchema).externalId).toBe('shop-2')
    expect(expectBody(await change(null), 200, licenseSchema).externalId).toBeNull()
  })

  test('a renewal moves an expiry back only on request, and an extension adds days to the end', async () => {
    const { call } = vendor
    const expiresAt = '2031-01-01T00:00:00.000Z'
    const { id } = await vendor.license({ policy: { type: 'SUBSCRIPTION', expiresAt } })
    const renew = (body: object) => call('POST', `licenses/${id}/renew`, { body })
    const extend = (days: number) => call('POST', `licenses/${id}/extend`, { body: { days } })
    const expiry = async (response: ReturnType<typeof call>) =>
      expectBody(await response, 200, licenseSchema).policy.expiresAt
    const earlier = { expiresAt: '2030-12-31T23:59:59.999Z' }
    const refused = await renew(earlier)
    expect(outcome(refused)).toBe('422 INVALID_REQUEST')
    expect(refused.text).toContain(`must not be earlier than the current expiry ${expiresAt}`)
    expect(await expiry(renew({ ...earlier, allowEarlier: true }))).toBe(earlier.expiresAt)
    expect(await expiry(extend(31))).toBe('2031-01-31T23:59:59.999Z')
    expect(outcome(await extend(0))).toBe('422 INVALID_REQUEST')
    await renew({ expiresAt: '9999-06-01T00:00:00Z' })
    expect((await extend(36_500)).text).toContain('must not move the expiry beyond the year 9999')

    const ended = await vendor.license({ policy: { type: 'TRIAL', expiresAt: '2020-01-01T00:00:00Z', graceDays: 90 } })
    const beforeMs = Date.now()
    const late = await expiry(call('POST', `licenses/${ended.id}/extend`, { body: { days: 1 } }))
    expect(Date.parse(late ?? '')).toBeGreaterThanOrEqual(beforeMs + MS_PER_DAY)
    expect(Date.parse(late ?? '')).toBeLessThanOrEqual(Date.now() + MS_PER_DAY)

    const unstarted = await vendor.license({ policy: { type: 'TRIAL', durationDays: 36_499 } })
    const longer = await call('POST', `licenses/${unstarted.id}/extend`, { body: { days: 1 } })
    expect(expectBody(longer, 200, licenseSchema).policy).toMatchObject({ durationDays: 36_500, expiresAt: null })
    const tooLong = await call('POST', `licenses/${unstarted.id}/extend`, { body: { days: 1 } })
    expect(tooLong.text).toContain('must not make the term longer than 36500 days')

    const perpetual = await vendor.license({ policy: { type: 'PERPETUAL' } })
    const never = await call('POST', `licenses/${perpetual.id}/extend`, { body: { days: 1 } })
    expect(outcome(never)).toBe('422 INVALID_REQUEST')
    await call('POST', `licenses/${id}/revoke`)
    expect(outcome(await extend(1))).toBe('409 LICENSE_REVOKED')
  })

  test('a license is in its grace period from the expiry to graceEndsAt, and has this status in lists', async () => {
    const { call } = vendor
    const ago = (days: number) => new Date(Date.now() - days * MS_PER_DAY).toISOString()
    const productId = await vendor.product()
    const add = (expiresAt: string, graceDays: number) =>
      vendor.license({ productId, policy: { type: 'SUBSCRIPTION', expiresAt, graceDays } })
    const expiresAt = ago(2)
    const inGrace = await add(expiresAt, 3)
    const ended = await add(expiresAt, 1)
    const none = await add(expiresAt, 0)
    const active = await add(ago(-2), 3)
    const graceEndsAt = new Date(Date.parse(expiresAt) + 3 * MS_PER_DAY).toISOString()
    expect(inGrace).toMatchObject({ status: 'grace', graceEndsAt })
    expect(ended).toMatchObject({ status: 'expired' })
    expect(none).toMatchObject({ status: 'expired', graceEndsAt: null })
    expect(active).toMatchObject({ status: 'active' })
    const ids = async (status: string) =>
      expectBody(
        await call('GET', `licenses?productId=${productId}&status=${status}`),
        200,
        listOf(licenseSchema),
      ).data.map((one) => one.id)
    expect(await ids('grace')).toEqual([inGrace.id])
    expect(await ids('expired')).toEqual([none.id, ended.id])
    expect(await ids('active')).toEqual([active.id])
    // The days that a customer has used in the grace period belong to the next term.
    const extended = await call('POST', `licenses/${inGrace.id}/extend`, { body: { days: 30 } })
    expect(expectBody(extended, 200, licenseSchema).policy.expiresAt).toBe(
      new Date(Date.parse(expiresAt) + 30 * MS_PER_DAY).toISOString(),
    )
    const validator = `insert into validators (id, name, ready, details) values (gen_random_uuid(), 'old', true, '{"features":["terms","leases"]}')`
    await harness.database.pool.query(validator)
    const change = (graceDays: number) => call('PATCH', `licenses/${none.id}`, { body: { policy: { graceDays } } })
    expect(outcome(await change(1))).toBe('409 VALIDATORS_OUTDATED')
    await harness.database.pool.query('delete from validators')
    expect(outcome(await change(1))).toBe('200')
    expect(outcome(await change(91))).toBe('422 INVALID_REQUEST')
  })

  test('lists licenses by product, customer, status and key', async () => {
    const { call } = vendor
    const license = await vendor.license()
    const other = await vendor.license({ productId: license.productId, customerId: license.customerId })
    await call('POST', `licenses/${other.id}/suspend`)
    const ids = async (query: string) =>
      expectBody(await call('GET', `licenses?${query}`), 200, listOf(licenseSchema)).data.map((one) => one.id)
    expect(await ids(`productId=${license.productId}`)).toEqual([other.id, license.id])
    expect(await ids(`customerId=${license.customerId}&status=suspended`)).toEqual([other.id])
    expect(await ids(`customerId=${license.customerId}&status=active`)).toEqual([license.id])
    expect(await ids(`key=${encodeURIComponent(license.key)}`)).toEqual([license.id])
    expect(await ids(`key=${encodeURIComponent(license.key.toLowerCase())}`)).toEqual([])
    const prefix = encodeURIComponent(` ${license.key.slice(0, 7).toLowerCase()}`)
    expect(await ids(`keyPrefix=${prefix}`)).toEqual([license.id])
    expect(await ids(`keyPrefix=${prefix}&status=suspended`)).toEqual([])
    expect(await ids('keyPrefix=%25')).toEqual([])
    expect(outcome(await call('GET', 'licenses?keyPrefix='))).toBe('422 INVALID_REQUEST')
  })

  test('a product or customer with licenses cannot be deleted', async () => {
    const { call } = vendor
    const { id, productId, customerId } = await vendor.license()
    expect(outcome(await call('DELETE', `products/${productId}`))).toBe('409 IN_USE')
    expect(outcome(await call('DELETE', `customers/${customerId}`))).toBe('409 IN_USE')
    expect(outcome(await harness.call('DELETE', `organizations/${vendor.id}`))).toBe('409 IN_USE')
    expect((await call('DELETE', `licenses/${id}`)).status).toBe(204)
    expect((await call('DELETE', `products/${productId}`)).status).toBe(204)
    expect((await call('DELETE', `customers/${customerId}`)).status).toBe(204)
  })
})

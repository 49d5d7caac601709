/** Tests the links and the sessions of the portal (docs/api.md#u3), as a vendor's backend and the page of a customer use them. */

import { createdApiKey, createdToken } from '@keyward/contract'
import { portal } from '@keyward/contract/management/portal'
import { insertMachine } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { type ApiResponse, type CallOptions, type Harness, operatorToken, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor
let customerId: string

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
  customerId = await vendor.customer()
})
afterAll(() => harness.close())

type Page = (method: string, path: string, options?: CallOptions) => Promise<ApiResponse>
const linkSchema = z.object({ url: z.string(), expiresAt: z.string() })
const both = ['release', 'files']

async function link(fields: object = {}): Promise<string> {
  const body = { customerId, actions: both, ...fields }
  const { url } = expectBody(await vendor.call('POST', 'portal-sessions', { body }), 201, linkSchema)
  expect(url).toMatch(new RegExp(`^${harness.origin}/portal#kwl_\\w{36}$`))
  return url.split('#')[1] ?? ''
}

const exchange = (code: string, headers: Record<string, string> = {}) =>
  harness.call('POST', 'portal/session', { token: null, body: { code }, headers })

/** Opens a link and returns a caller that behaves like the page. */
async function open(fields: object = {}): Promise<Page> {
  const response = await exchange(await link(fields))
  expectBody(response, 200, portal.openPortalSession.returns)
  const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? ''
  return (method, path, options = {}) =>
    harness.call(method, `portal/${path}`, {
      ...options,
      token: null,
      headers: { cookie, origin: harness.origin, ...options.headers },
    })
}

const license = (policy: object = {}, owner = customerId) =>
  vendor.license({ customerId: owner, policy: { type: 'PERPETUAL', maxMachines: 2, maxReleases: 1, ...policy } })
const machineOf = (licenseId: string, machineId = 'SECRET-1') =>
  insertMachine(harness.database.pool, { licenseId, machineId, hostname: 'old laptop' })
const list = async (page: Page) =>
  expectBody(await page('GET', 'licenses?limit=100'), 200, portal.listPortalLicenses.returns).data

describe('a link', () => {
  test('opens one session, of two requests at once too', async () => {
    const code = await link({ returnUrl: 'https://example.com/account' })
    expect((await harness.call('GET', `/portal?${code}`, { token: null })).status).not.toBe(201)
    expect(outcome(await harness.call('GET', 'portal/session', { token: null }))).toBe('401 UNAUTHENTICATED')
    const responses = await Promise.all(Array.from({ length: 4 }, () => exchange(code)))
    expect(responses.map(outcome).toSorted()).toEqual([
      '200',
      ...Array.from({ length: 3 }, () => '401 UNAUTHENTICATED'),
    ])
    const opened = responses.find(({ status }) => status === 200)
    expect(opened?.body).toMatchObject({
      vendor: { name: 'Acme', accentColor: null },
      email: 'ada@example.com',
      actions: both,
      preview: false,
      returnUrl: 'https://example.com/account',
    })
    const cookie = opened?.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^keyward_portal=kwc_\w{36}; Path=\/api\/v1; Expires=[^;]+; HttpOnly; SameSite=Strict$/)
    expect(opened?.text).not.toContain('kwc_')
    const { rows } = await harness.database.pool.query<{ stored: string }>(
      'select portal_sessions::text as stored from portal_sessions',
    )
    expect(rows.some(({ stored }) => stored.includes(code))).toBe(false)
  })

  test('expires after 15 minutes, and is not opened from a page of another site', async () => {
    const code = await link()
    expect(outcome(await exchange(code, { origin: 'https://evil.example' }))).toBe('403 FORBIDDEN')
    await harness.database.pool.query(`update portal_sessions set expires_at = now() where opened_at is null`)
    expect(outcome(await exchange(code))).toBe('401 UNAUTHENTICATED')
    for (const wrong of ['', 'kwl_x', `${code}x`]) expect(outcome(await exchange(wrong))).toBe('401 UNAUTHENTICATED')
  })

  test('is created only with permission to read and write licenses and to read customers, for a customer of the organization', async () => {
    const body = { customerId, actions: both }
    const tokenWith = async (permissions: string[]) => {
      const created = await vendor.call('POST', 'tokens', { body: { name: 't', permissions } })
      return expectBody(created, 201, createdToken.required({ secret: true })).secret
    }
    const key = expectBody(
      await vendor.call('POST', 'api-keys', { body: { name: 'k' } }),
      201,
      createdApiKey.required({ secret: true }),
    )
    for (const token of [
      key.secret,
      operatorToken,
      await tokenWith(['licenses.read']),
      await tokenWith(['licenses.write']),
      await tokenWith(['licenses.read', 'licenses.write']),
    ])
      expect(outcome(await harness.call('POST', 'portal-sessions', { token, body }))).toBe('403 FORBIDDEN')
    const stranger = await createVendor(harness)
    const foreign = await stranger.call('POST', 'portal-sessions', { body })
    expect(outcome(foreign)).toBe('422 INVALID_REQUEST')
    expect(foreign.text).toContain('#/customerId')
    for (const wrong of [
      { actions: ['delete'] },
      { actions: undefined },
      { returnUrl: 'javascript:alert(1)' },
      { returnUrl: 'http://example.com/' },
      { returnUrl: '' },
    ])
      expect(outcome(await vendor.call('POST', 'portal-sessions', { body: { ...body, ...wrong } }))).toBe(
        '422 INVALID_REQUEST',
      )
  })

  test('ends the oldest of more than 20 links and sessions of a customer', async () => {
    const own = await vendor.customer()
    const first = await open({ customerId: own })
    for (let i = 0; i < 19; i++) await link({ customerId: own })
    expect((await first('GET', 'session')).status).toBe(200)
    await link({ customerId: own })
    expect(outcome(await first('GET', 'session'))).toBe('401 UNAUTHENTICATED')
    const ended = await vendor.call('GET', `audit-log?action=portal.ended&resourceId=${own}`)
    expect(ended.body).toMatchObject({ data: [{ changes: { excess: 1 } }] })
  })
})

describe('a session', () => {
  test('shows licenses without keys, and a key on request', async () => {
    const { id, key } = await license()
    const ref = await machineOf(id)
    const page = await open()
    const one = (await list(page)).find((each) => each.id === id)
    expect(one).toMatchObject({
      productName: 'Studio',
      status: 'active',
      used: 1,
      max: 2,
      releasesLeft: 1,
      canRelease: true,
    })
    expect(one?.machines).toMatchObject([{ ref, hostname: 'old laptop', fileEndsAt: null }])
    const { text } = await page('GET', 'licenses')
    for (const secret of [key, 'SECRET', vendor.id]) expect(text).not.toContain(secret)
    expect((await page('GET', `licenses/${id}/key`)).body).toEqual({ key })
  })

  test('frees a slot as the customer, as often as the license allows', async () => {
    const { id } = await license()
    const [first, second] = [await machineOf(id), await machineOf(id, 'SECRET-2')]
    const page = await open()
    const free = (ref: string) => page('POST', `licenses/${id}/release`, { body: { ref } })
    expect((await free(first)).body).toEqual({ released: true })
    expect(outcome(await free(first))).toBe('404 NOT_FOUND')
    expect((await free(second)).body).toEqual({ released: false })
    expect(await list(page)).toContainEqual(
      expect.objectContaining({ id, used: 1, releasesLeft: 0, canRelease: false }),
    )
    const actor = { type: 'CUSTOMER', id: customerId }
    const entries = await vendor.call('GET', `audit-log?resourceId=${first}`)
    expect(entries.body).toMatchObject({ data: [{ action: 'machine.released', actor }] })
    const events = z.object({ data: z.array(z.object({ data: z.looseObject({ licenseId: z.string() }) })) })
    const released = expectBody(await vendor.call('GET', 'events?type=machine.released'), 200, events)
    expect(released.data.map(({ data }) => data).filter(({ licenseId }) => licenseId === id)).toMatchObject([
      { resource: { id: first }, reason: 'CUSTOMER', actor },
    ])
    const activity = await vendor.call('GET', `licenses/${id}/activity?limit=2`)
    expect(activity.body).toMatchObject({
      data: [{ type: 'RELEASE_LIMIT_REACHED' }, { type: 'MACHINE_RELEASED', actor }],
    })
  })

  test('frees no slot of a license without a limit of releases or leases', async () => {
    const { id } = await license({ maxReleases: null })
    const ref = await machineOf(id)
    const page = await open()
    expect(outcome(await page('POST', `licenses/${id}/release`, { body: { ref } }))).toBe('403 NOT_ENABLED')
    expect((await list(page)).find((one) => one.id === id)?.canRelease).toBe(false)
  })

  test('issues the file of a machine, which then keeps its slot', async () => {
    const { id } = await license()
    const page = await open()
    const file = await page('POST', `licenses/${id}/file`, { body: { machineId: 'plant', hostname: 'Plant 3' } })
    expect(file.text).toMatch(/^[\w-]+\.[\w-]+$/)
    const machine = (await list(page)).find((one) => one.id === id)?.machines[0]
    expect(machine?.fileEndsAt).not.toBeNull()
    expect((await page('POST', `licenses/${id}/release`, { body: { ref: machine?.ref } })).body).toEqual({
      released: false,
    })
    const log = await vendor.call('GET', `audit-log?resourceId=${id}&action=license.file_issued`)
    expect(log.body).toMatchObject({ data: [{ actor: { type: 'CUSTOMER', id: customerId } }] })
  })

  test('takes only the actions of its link, and none in a preview', async () => {
    const { id } = await license()
    const ref = await machineOf(id)
    const file = { body: { machineId: 'm' } }
    const cases: [object, string, string][] = [
      [{ actions: ['release'] }, '200', '403 FORBIDDEN'],
      [{ actions: ['files'] }, '403 FORBIDDEN', '200'],
      [{ actions: [] }, '403 FORBIDDEN', '403 FORBIDDEN'],
      [{ actions: both, preview: true }, '403 FORBIDDEN', '403 FORBIDDEN'],
    ]
    for (const [fields, released, issued] of cases) {
      const page = await open(fields)
      const release = await page('POST', `licenses/${id}/release`, { body: { ref } })
      expect([outcome(release), outcome(await page('POST', `licenses/${id}/file`, file))]).toEqual([released, issued])
      expect((await page('GET', `licenses/${id}/key`)).status).toBe(200)
    }
  })

  test('returns 404 for licenses and machines of other customers and organizations', async () => {
    const page = await open()
    const own = await license()
    const other = await license({}, await vendor.customer())
    const stranger = await (await createVendor(harness)).license({ policy: { type: 'PERPETUAL', maxReleases: 3 } })
    for (const { id } of [other, stranger]) {
      const ref = await machineOf(id)
      const requests = [
        page('GET', `licenses/${id}/key`),
        page('POST', `licenses/${id}/release`, { body: { ref } }),
        page('POST', `licenses/${own.id}/release`, { body: { ref } }),
        page('POST', `licenses/${id}/file`, { body: { machineId: 'm' } }),
      ]
      for (const response of await Promise.all(requests)) expect(outcome(response)).toBe('404 NOT_FOUND')
    }
    const { text } = await page('GET', 'licenses?limit=100')
    for (const { id } of [other, stranger]) expect(text).not.toContain(id)
    const { rows } = await harness.database.pool.query<{ count: string }>(
      'select count(*) from machines where license_id = any ($1)',
      [[other.id, stranger.id]],
    )
    expect(rows[0]?.count).toBe('2')
    const cursor = expectBody(
      await vendor.call('GET', 'licenses?limit=1'),
      200,
      z.object({ nextCursor: z.string() }),
    ).nextCursor
    expect(outcome(await page('GET', `licenses?cursor=${cursor}`))).toBe('422 INVALID_REQUEST')
  })

  test('lists 500 licenses in pages', async () => {
    const owner = await vendor.customer()
    const ids = { productId: await vendor.product(), customerId: owner }
    const licenses = Array.from({ length: 500 }, () => ({ ...ids, policy: { type: 'PERPETUAL' } }))
    expect((await vendor.call('POST', 'licenses/import', { body: { licenses } })).status).toBe(200)
    const page = await open({ customerId: owner })
    const found = new Set<string>()
    let cursor: string | null = ''
    for (let pages = 0; cursor !== null && pages < 50; pages++) {
      const path: string = `licenses?limit=20${cursor === '' ? '' : `&cursor=${cursor}`}`
      const { data, nextCursor } = expectBody(await page('GET', path), 200, portal.listPortalLicenses.returns)
      for (const { id } of data) found.add(id)
      cursor = nextCursor
    }
    expect(found.size).toBe(500)
  })

  test('changes nothing for a page of another site, and nothing of the vendor', async () => {
    const { id } = await license()
    const ref = await machineOf(id)
    const page = await open()
    for (const origin of ['https://evil.example', 'null'])
      expect(outcome(await page('POST', `licenses/${id}/release`, { body: { ref }, headers: { origin } }))).toBe(
        '403 FORBIDDEN',
      )
    for (const path of ['../licenses', '../me', '../organization'])
      expect(outcome(await page('GET', path))).toBe('401 UNAUTHENTICATED')
    const authorization = `Bearer ${vendor.managementToken}`
    const withToken = await harness.call('GET', 'portal/session', { token: null, headers: { authorization } })
    expect(outcome(withToken)).toBe('401 UNAUTHENTICATED')
  })

  test('makes a limited number of changes', async () => {
    const { id } = await license()
    const page = await open()
    await harness.database.pool.query('update portal_sessions set acts = 199 where opened_at is not null')
    const file = () => page('POST', `licenses/${id}/file`, { body: { machineId: 'm' } })
    expect([outcome(await file()), outcome(await file())]).toEqual(['200', '429 RATE_LIMITED'])
  })

  test('ends when the customer leaves, and when the vendor ends all sessions', async () => {
    const page = await open()
    const left = await page('DELETE', 'session')
    expect(left.headers.get('set-cookie')).toContain('keyward_portal=; ')
    expect(outcome(await page('GET', 'session'))).toBe('401 UNAUTHENTICATED')
    const [other, code] = [await open(), await link()]
    expect((await vendor.call('DELETE', `customers/${customerId}/portal-sessions`)).status).toBe(204)
    expect(outcome(await other('GET', 'licenses'))).toBe('401 UNAUTHENTICATED')
    expect(outcome(await exchange(code))).toBe('401 UNAUTHENTICATED')
  })

  test('ends with its customer, after 24 hours, and when the organization is suspended', async () => {
    const [deleted, merged] = [await vendor.customer(), await vendor.customer()]
    const pages = [await open({ customerId: deleted }), await open({ customerId: merged })]
    await vendor.call('DELETE', `customers/${deleted}`)
    await vendor.call('POST', `customers/${merged}/merge`, { body: { into: customerId } })
    const late = await open()
    await harness.database.pool.query('update portal_sessions set expires_at = now() where opened_at is not null')
    for (const page of [...pages, late]) expect(outcome(await page('GET', 'session'))).toBe('401 UNAUTHENTICATED')
    const [open1, code] = [await open(), await link()]
    await harness.call('POST', `organizations/${vendor.id}/suspend`)
    expect(outcome(await open1('GET', 'session'))).toBe('401 UNAUTHENTICATED')
    expect(outcome(await exchange(code))).toBe('401 UNAUTHENTICATED')
    await harness.call('POST', `organizations/${vendor.id}/reinstate`)
    expect(outcome(await open1('GET', 'session'))).toBe('401 UNAUTHENTICATED')
  })
})

test('the vendor chooses the color of the portal', async () => {
  const change = (accentColor: unknown) => vendor.call('PATCH', 'organization', { body: { accentColor } })
  expect((await change('#1D4ED8')).body).toMatchObject({ accentColor: '#1d4ed8' })
  expect((await (await open())('GET', 'session')).body).toMatchObject({ vendor: { accentColor: '#1d4ed8' } })
  for (const wrong of ['blue', '#fff', '#12345g', '']) expect(outcome(await change(wrong))).toBe('422 INVALID_REQUEST')
  expect((await change(null)).body).toMatchObject({ accentColor: null })
})

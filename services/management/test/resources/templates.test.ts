import { importedLicenses, license as licenseSchema, ownOrganization, page } from '@keyward/contract'
import { event } from '@keyward/contract/management/events'
import {
  type Template,
  templates as operations,
  template as templateSchema,
} from '@keyward/contract/management/templates'
import { random } from '@keyward/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
})
beforeEach(async () => {
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const applied = operations.applyTemplate.returns
const read = async (id: string) => expectBody(await vendor.call('GET', `licenses/${id}`), 200, licenseSchema)
const change = (id: string, policy: object) => vendor.call('PATCH', `templates/${id}`, { body: { policy } })
const apply = (id: string, dryRun = false) => vendor.call('POST', `templates/${id}/apply`, { body: { dryRun } })

/** Applies the template and waits until the job has ended. Returns the numbers that the request announced. */
async function applyAll(id: string): Promise<{ changed: number; kept: number }> {
  const { changed, kept, total } = expectBody(await apply(id), 200, applied)
  let application: Template['application'] = null
  while ((application?.endedAt ?? null) === null)
    ({ application } = expectBody(await vendor.call('GET', `templates/${id}`), 200, templateSchema))
  expect(application).toMatchObject({ changed, total, done: total })
  return { changed, kept }
}

test('a license copies the values of its template, except those of the request', async () => {
  const policy = { type: 'SUBSCRIPTION', durationDays: 365, maxMachines: 3, graceDays: 7, fileDays: 5 }
  const { id, productId } = await vendor.template({ policy, entitlements: { edition: 'pro' }, metadata: { plan: 'y' } })
  const customerId = await vendor.customer()
  const add = async (fields: object) => {
    const body = { templateId: id, customerId, ...fields }
    return expectBody(await vendor.call('POST', 'licenses', { body }), 201, licenseSchema)
  }
  const plain = await add({})
  expect(plain).toMatchObject({
    productId,
    templateId: id,
    policy,
    entitlements: { edition: 'pro' },
    metadata: { plan: 'y' },
  })
  const expiresAt = '2031-01-01T00:00:00.000Z'
  const other = await add({ policy: { expiresAt, maxMachines: null }, entitlements: {}, metadata: { own: true } })
  expect(other.policy).toMatchObject({ durationDays: null, expiresAt, maxMachines: null, graceDays: 7 })
  expect(other).toMatchObject({ entitlements: {}, metadata: { own: true } })
  expect((await add({ policy: { type: 'PERPETUAL' } })).policy).toMatchObject({ durationDays: null, expiresAt: null })
  const licenses = [
    { templateId: id, customerId },
    { productId, customerId, policy: { type: 'PERPETUAL' } },
  ]
  const imported = await vendor.call('POST', 'licenses/import', { body: { licenses } })
  const [first, second] = expectBody(imported, 200, importedLicenses).licenses
  expect(await read(first!.id)).toMatchObject({ templateId: id, policy })
  expect(await read(second!.id)).toMatchObject({ templateId: null })
})

test('a request names every reference and policy that does not fit a template', async () => {
  const { id, productId } = await vendor.template({ policy: { type: 'TRIAL' } })
  const other = await createVendor(harness)
  const customerId = await vendor.customer()
  const errors = async (body: object) => (await vendor.call('POST', 'licenses', { body })).text
  expect(await errors({ templateId: id, customerId })).toContain('"#/policy/expiresAt"')
  expect(await errors({ templateId: id, productId: await vendor.product(), customerId })).toContain('"#/templateId"')
  expect(await errors({ templateId: (await other.template()).id, customerId })).toContain('"#/templateId"')
  expect(await errors({ customerId })).toMatch(/"#\/productId".*"#\/policy"/)
  expect(await errors({ productId, customerId, policy: {} })).toContain('"#/policy/type"')
  const create = (policy: object) =>
    vendor.call('POST', `products/${productId}/templates`, { body: { name: 't', policy } })
  expect((await create({ type: 'PERPETUAL', durationDays: 5 })).text).toContain('"#/policy/durationDays"')
  expect(
    outcome(await vendor.call('POST', `products/${id}/templates`, { body: { name: 't', policy: { type: 'TRIAL' } } })),
  ).toBe('404 NOT_FOUND')
})

test('a template is changed and deleted, but not deleted while licenses have it', async () => {
  const { id, productId } = await vendor.template()
  const license = await vendor.license({ productId, templateId: id, policy: undefined })
  expect(outcome(await vendor.call('DELETE', `templates/${id}`))).toBe('409 IN_USE')
  const changed = expectBody(await change(id, { maxMachines: 9, durationDays: 365 }), 200, templateSchema)
  expect(changed).toMatchObject({ policy: { maxMachines: 9 }, unapplied: ['maxMachines'] })
  expect(outcome(await change(id, { type: 'PERPETUAL' }))).toBe('422 INVALID_REQUEST')
  expect((await read(license.id)).policy.maxMachines).toBeNull()
  const detach = { body: { templateId: null } }
  expectBody(await vendor.call('PATCH', `licenses/${license.id}`, detach), 200, licenseSchema)
  expect((await vendor.call('DELETE', `templates/${id}`)).status).toBe(204)
  const list = await vendor.call('GET', `products/${productId}/templates`)
  expect(expectBody(list, 200, page(templateSchema)).data).toEqual([])
})

test('an application changes the fields that still have a value of the template, and announces it', async () => {
  const { id, productId } = await vendor.template({ policy: { type: 'TRIAL', durationDays: 14, maxMachines: 3 } })
  const add = (policy?: object) => vendor.license({ productId, templateId: id, policy })
  const plain = await add()
  const own = await add({ maxMachines: 4 })
  const started = await add({ expiresAt: '2031-01-01T00:00:00.000Z' })
  await vendor.license({ productId })
  await change(id, { maxMachines: 5, durationDays: 30 })
  const between = await add()
  await change(id, { maxMachines: 6 })
  const seen = expectBody(await apply(id, true), 200, applied)
  expect(seen).toMatchObject({ total: 4, changed: 4, kept: 2, application: null })
  expect(seen.examples.kept).toContainEqual({ id: own.id, key: own.key, fields: ['maxMachines'] })
  expect(seen.examples.kept).toContainEqual({ id: started.id, key: started.key, fields: ['term'] })
  expect((await read(plain.id)).updatedAt).toBe(plain.updatedAt)
  expect(await applyAll(id)).toEqual({ changed: 4, kept: 2 })
  expect((await read(plain.id)).policy).toMatchObject({ maxMachines: 6, durationDays: 30 })
  expect((await read(between.id)).policy).toMatchObject({ maxMachines: 6, durationDays: 30 })
  expect((await read(own.id)).policy).toMatchObject({ maxMachines: 4, durationDays: 30 })
  expect((await read(started.id)).policy).toMatchObject({
    maxMachines: 6,
    durationDays: null,
    expiresAt: '2031-01-01T00:00:00.000Z',
  })
  const events = await vendor.call('GET', 'events?type=license.updated')
  expect(expectBody(events, 200, page(event)).data.map(({ data }) => data)).toContainEqual(
    expect.objectContaining({
      previous: { policy: expect.objectContaining({ maxMachines: 3 }) as unknown, machines: { used: 0, max: 3 } },
    }),
  )
  const again = expectBody(await apply(id, true), 200, applied)
  expect(again).toMatchObject({ total: 4, changed: 0, kept: 0 })
})

test('a move to another template changes the fields that still have a value of the former one', async () => {
  const studio = await vendor.template({ policy: { type: 'TRIAL', durationDays: 14, maxMachines: 3, fileDays: 5 } })
  const policy = { type: 'SUBSCRIPTION', durationDays: 365, maxMachines: 10, fileDays: 5, graceDays: 7 }
  const suite = await vendor.template({ policy }, studio.productId)
  const move = async (id: string, body: object) => {
    const response = await vendor.call('PATCH', `licenses/${id}`, { body: { templateId: suite.id, ...body } })
    return expectBody(response, 200, licenseSchema).policy
  }
  const add = (given?: object) => vendor.license({ productId: studio.productId, templateId: studio.id, policy: given })
  expect(await move((await add()).id, {})).toMatchObject(policy)
  expect(await move((await add({ maxMachines: 4 })).id, {})).toMatchObject({ ...policy, maxMachines: 4 })
  const expiresAt = '2031-01-01T00:00:00.000Z'
  const started = await add({ expiresAt })
  expect(await move(started.id, {})).toMatchObject({ type: 'TRIAL', expiresAt, maxMachines: 10 })
  expect(await move((await add()).id, { policy: { maxMachines: 1 } })).toMatchObject({ ...policy, maxMachines: 1 })
  const without = await vendor.license({ productId: studio.productId })
  expect(await move(without.id, {})).toMatchObject({ type: 'PERPETUAL', maxMachines: 5 })
  const elsewhere = (await vendor.template()).id
  expect(outcome(await vendor.call('PATCH', `licenses/${without.id}`, { body: { templateId: elsewhere } }))).toBe(
    '422 INVALID_REQUEST',
  )
  const gone = await vendor.call('PATCH', `licenses/${without.id}`, { body: { productId: await vendor.product() } })
  expect(expectBody(gone, 200, licenseSchema).templateId).toBeNull()
})

test('an application and a move follow the same rule over random licenses', async () => {
  const { next } = random(23)
  const pick = <Value>(values: readonly Value[]) => values[Math.floor(next() * values.length)]!
  const draw = () => ({
    ...pick([
      { type: 'PERPETUAL', durationDays: null },
      { type: 'TRIAL', durationDays: 14 },
      { type: 'TRIAL', durationDays: 30 },
    ]),
    maxMachines: pick([null, 1, 2]),
    graceDays: pick([0, 3]),
  })
  const values = () => ({
    policy: draw(),
    entitlements: pick([{}, { a: true }]),
    metadata: pick([{}, { a: 1 }, { a: 1, b: [] }]),
  })
  for (let round = 0; round < 4; round++) {
    const before = values()
    const after = values()
    const template = await vendor.template(before)
    const target = await vendor.template(after, template.productId)
    const given = Array.from({ length: 12 }, () => ({ templateId: template.id, ...pick([values(), {}]) }))
    const customerId = await vendor.customer()
    const licenses = given.flatMap((row) => [
      { ...row, customerId },
      { ...row, customerId },
    ])
    const imported = await vendor.call('POST', 'licenses/import', { body: { licenses } })
    const ids = expectBody(imported, 200, importedLicenses).licenses.map(({ id }) => id)
    // Each license of a pair is moved, and the other one stays with the template, which gets the values of the target.
    for (const id of ids.filter((_, i) => i % 2 === 0))
      expectBody(await vendor.call('PATCH', `licenses/${id}`, { body: { templateId: target.id } }), 200, licenseSchema)
    expectBody(await vendor.call('PATCH', `templates/${template.id}`, { body: after }), 200, templateSchema)
    await applyAll(template.id)
    for (let i = 0; i < ids.length; i += 2) {
      const [moved, kept] = [await read(ids[i]!), await read(ids[i + 1]!)]
      const shown = ({ policy, entitlements, metadata }: typeof moved) => ({ policy, entitlements, metadata })
      expect(shown(moved), JSON.stringify({ before, after, given: given[i / 2] })).toEqual(shown(kept))
    }
  }
})

/** Imports licenses of a template. */
async function importLicenses(of: Vendor, templateId: string, count: number): Promise<void> {
  const customerId = await of.customer()
  const licenses = Array.from({ length: count }, () => ({ templateId, customerId }))
  expectBody(await of.call('POST', 'licenses/import', { body: { licenses } }), 200, importedLicenses)
}

/** Starts the applications of templates in one transaction. The job cannot read a broken one. */
async function startTogether(applications: readonly { id: string; total: number; isBroken?: boolean }[]) {
  const started = applications.map(({ id, total, isBroken }) => {
    const fields = { startedAt: new Date().toISOString(), endedAt: null, total, done: 0, changed: 0, after: null }
    return { id, application: { ...fields, actor: { type: isBroken === true ? 'NOBODY' : 'SYSTEM' } } }
  })
  await harness.database.pool.query(
    `update license_templates t set application = s.application
     from jsonb_to_recordset($1) as s (id uuid, application jsonb) where t.id = s.id`,
    [JSON.stringify(started)],
  )
}

async function untilApplied(of: Vendor, id: string): Promise<NonNullable<Template['application']>> {
  for (;;) {
    const { application } = expectBody(await of.call('GET', `templates/${id}`), 200, templateSchema)
    if (typeof application?.endedAt === 'string') return application
  }
}

test('applications of organizations take turns, and one that fails delays no other', async () => {
  const { id } = await vendor.template({ policy: { type: 'PERPETUAL' } })
  await importLicenses(vendor, id, 1_000)
  const failing = await createVendor(harness)
  const broken = await failing.template({ policy: { type: 'PERPETUAL' } })
  const other = await createVendor(harness)
  const small = await other.template({ policy: { type: 'PERPETUAL' } })
  await startTogether([
    { id: broken.id, total: 0, isBroken: true },
    { id, total: 1_000 },
    { id: small.id, total: 0 },
  ])
  const [large, quick] = [await untilApplied(vendor, id), await untilApplied(other, small.id)]
  expect(large.done).toBe(1_000)
  expect(Date.parse(quick.endedAt ?? '')).toBeLessThan(Date.parse(large.endedAt ?? ''))
  await harness.database.pool.query('update license_templates set application = null where id = $1', [broken.id])
})

test('an application ends when a quota of bytes is reached, and a later one continues', async () => {
  const { id } = await vendor.template({ policy: { type: 'PERPETUAL', maxMachines: 1 } })
  await importLicenses(vendor, id, 450)
  await change(id, { maxMachines: 2 })
  const setQuota = (bytesPerDay: number | null) =>
    harness.call('PATCH', `organizations/${vendor.id}`, { body: { quotas: { bytesPerDay } } })
  const { used } = expectBody(await vendor.call('GET', 'organization'), 200, ownOrganization).quotas.bytesPerDay
  await setQuota((used ?? 0) + 30_000)
  expectBody(await apply(id), 200, applied)
  expect(await untilApplied(vendor, id)).toMatchObject({ total: 450, done: 200, changed: 200 })
  await setQuota(null)
  expect(await applyAll(id)).toEqual({ changed: 250, kept: 0 })
})

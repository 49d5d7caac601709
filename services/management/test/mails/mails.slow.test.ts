/** Tests mails to customers (docs/api.md#e1) with a real mail server. */

import { createdToken, page } from '@keyward/contract'
import { mail as mailSchema } from '@keyward/contract/management/mails'
import { createPool } from '@keyward/database'
import { createDatabase } from '@keyward/database/kysely'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'

import { environment } from '../../src/config.ts'
import { firstIdAt } from '../../src/http/pagination.ts'
import { writeDueEvents } from '../../src/jobs/expiries.ts'
import { startManagement } from '../../src/server.ts'
import { type Harness, masterKey, operatorToken, startHarness } from '../support/harness.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

const DAY_MS = 86_400_000
const POLL = { timeout: 15_000, interval: 20 }
let server: MailServer
let harness: Harness
let vendor: Vendor
let env: Record<string, string>
let orders = 0

beforeAll(async () => {
  server = await startMailServer()
  env = {
    SMTP_URL: `smtp://127.0.0.1:${server.port}`,
    MAIL_FROM: 'mail@keyward.example',
    MAIL_PORTAL_URL: 'https://portal.example/',
  }
  harness = await startHarness(env)
})
beforeEach(async () => {
  server.respond = () => null
  server.received.length = 0
  vendor = await createVendor(harness)
})
/** Deletes the mails of a test, so that none is sent in the next one. */
afterEach(async () => {
  const { pool } = harness.database
  await vi.waitFor(async () => {
    await pool.query('delete from mails where worker is null')
    const { rowCount } = await pool.query('select from mails')
    if (rowCount !== 0) throw new Error('A mail is being sent.')
  }, POLL)
})
afterAll(async () => {
  await harness.close()
  await server.close()
})

const settings = (body: object, of = vendor) => of.call('PATCH', 'organization', { body })
const list = async (of = vendor) => expectBody(await of.call('GET', 'mails'), 200, page(mailSchema)).data
const states = async (of = vendor) => (await list(of)).map(({ status }) => status)
const sendKey = (licenseId: string, of = vendor) => of.call('POST', 'mails', { body: { template: 'key', licenseId } })

const messageIds = () => new Set(server.received.map(({ headers }) => /^Message-ID: .*$/m.exec(headers)?.[0]))

/** Makes the next attempts due at once. */
const hurry = () =>
  harness.database.pool.query(`update mails set next_attempt_at = now() where status = 'PENDING' and worker is null`)

async function order(templateId: string, quantity = 1, of = vendor): Promise<string[]> {
  const body = { templateId, quantity, state: 'paid', customer: { email: 'ada@example.com', name: 'Ada' } }
  const response = await of.call('PUT', `orders/shop/${++orders}/1`, { body })
  expect(response.status).toBe(200)
  const { rows } = await harness.database.pool.query<{ key: string }>(
    'select key from licenses where organization_id = $1 order by id',
    [of.id],
  )
  return rows.map(({ key }) => key)
}

/** Adds mails without a request, each with a license of its own customer. `#` in the address is the number of the customer. */
async function flood(of: Vendor, count: number, email = 'flood-#@example.com'): Promise<void> {
  await harness.database.pool.query(
    `with people as (
       insert into customers (id, organization_id, email)
       select new_id(), $1, replace($3, '#', n::text) from generate_series(1, $4::integer) n returning id, email
     ), owned as (
       insert into licenses (id, organization_id, product_id, customer_id, key, policy_type)
       select new_id(), $1, $2, id, id::text, 'PERPETUAL' from people returning id, customer_id
     )
     insert into mails (id, organization_id, template, customer_id, recipient, license_ids)
     select new_id(), $1, 'key', p.id, p.email, array[o.id] from people p join owned o on o.customer_id = p.id`,
    [of.id, await of.product(), email, count],
  )
}

test('an order sends its keys to the customer when the vendor has switched it on', async () => {
  const { id: templateId } = await vendor.template({ orders: { quantity: 'licenses' } })
  await order(templateId)
  expect(await list()).toEqual([])
  await settings({ mailKeys: true, mailSenderName: 'Acme, Inc', mailReplyTo: 'help@acme.example' })
  const [, ...keys] = await order(templateId, 2)
  await expect.poll(() => states(), POLL).toEqual(['SUCCEEDED'])
  const [sent] = server.received
  expect(sent).toMatchObject({ to: ['ada@example.com'], from: 'mail@keyward.example' })
  const [{ id } = { id: '' }] = await list()
  for (const header of [
    'From: "Acme, Inc" <mail@keyward.example>',
    'To: ada@example.com',
    'Reply-To: help@acme.example',
    'Subject: Your license keys for Studio',
    'Auto-Submitted: auto-generated',
    `Message-ID: <${id}@keyward.example>`,
  ])
    expect(sent!.headers.split('\r\n')).toContain(header)
  expect(sent!.raw).toContain('text/plain')
  expect(sent!.raw).toContain('text/html')
  expect(sent!.raw).not.toMatch(/<img|<a |https?:/)
  for (const key of keys) expect(sent!.raw.split(key)).toHaveLength(3)
  const stored = await harness.database.pool.query('select m::text as mail from mails m where organization_id = $1', [
    vendor.id,
  ])
  for (const key of keys) expect(JSON.stringify(stored.rows)).not.toContain(key)
  // The shop repeats its event.
  await vendor.call('PUT', `orders/shop/${orders}/1`, { body: { templateId, quantity: 2, state: 'paid' } })
  expect(await list()).toHaveLength(1)
})

test('a rolled back order sends nothing, and another organization sees no mails', async () => {
  await settings({ mailKeys: true })
  const { id: templateId } = await vendor.template()
  const body = { templateId, state: 'paid', customer: { email: 'not an address' } }
  expect((await vendor.call('PUT', 'orders/shop/bad/1', { body })).status).toBe(422)
  await order(templateId)
  const stranger = await createVendor(harness)
  expect(await list(stranger)).toEqual([])
  expect(await list()).toHaveLength(1)
})

test('a mail is attempted again after a response of 4xx, and ends with a response of 5xx until it is tried again', async () => {
  const { id } = await vendor.license()
  server.respond = () => 451
  await sendKey(id)
  await expect.poll(async () => (await list())[0]?.error ?? '', POLL).toContain('451')
  expect(await list()).toMatchObject([{ status: 'PENDING', attempts: 1 }])
  server.respond = () => 550
  await hurry()
  await expect.poll(() => states(), POLL).toEqual(['FAILED'])
  const [failed] = await list()
  expect(failed).toMatchObject({ attempts: 2, nextAttemptAt: null })
  expect(failed?.error).toContain('550')
  const retry = () => vendor.call('POST', `mails/${failed!.id}/retry`)
  expect(outcome(await retry())).toBe('429 RATE_LIMITED')
  await harness.database.pool.query(`update mails set attempted_at = now() - interval '2 minutes' where id = $1`, [
    failed!.id,
  ])
  server.respond = () => null
  expect(expectBody(await retry(), 200, mailSchema)).toMatchObject({ status: 'PENDING', attempts: 0 })
  await expect.poll(() => states(), POLL).toEqual(['SUCCEEDED'])
  expect(expectBody(await retry(), 200, mailSchema)).toMatchObject({ status: 'SUCCEEDED' })
  expect(server.received).toHaveLength(1)
})

test('mails wait while the mail server is down', async () => {
  const { port } = server
  await server.close()
  await sendKey((await vendor.license()).id)
  await expect.poll(async () => (await list())[0]?.error ?? '', POLL).toContain('The mail server could not be used.')
  server = await startMailServer({}, port)
  await hurry()
  await expect.poll(() => states(), POLL).toEqual(['SUCCEEDED'])
})

test('a mail is sent again, with the same Message-ID, when its worker ended before it stored the outcome', async () => {
  await sendKey((await vendor.license()).id)
  await expect.poll(() => states(), POLL).toEqual(['SUCCEEDED'])
  await harness.database.pool.query(
    `update mails set status = 'PENDING', worker = gen_random_uuid(), next_attempt_at = now() where organization_id = $1`,
    [vendor.id],
  )
  await expect.poll(() => server.received.length, POLL).toBe(2)
  expect(messageIds().size).toBe(1)
})

test('two processes send each mail once', async () => {
  const config = environment.parse({
    ...env,
    DATABASE_URL: harness.database.managementUrl,
    MANAGEMENT_PORT: '0',
    MANAGEMENT_ADMIN_PORT: '0',
    OPERATOR_TOKEN: operatorToken,
    MASTER_KEY: masterKey,
    LOG_LEVEL: 'fatal',
  })
  const second = await startManagement({ ...config, drainMs: 0 })
  await flood(vendor, 60)
  await expect.poll(() => server.received.length, POLL).toBe(60)
  await second.close()
  expect(messageIds().size).toBe(60)
  await expect.poll(async () => new Set(await states()), POLL).toEqual(new Set(['SUCCEEDED']))
})

test('many mails of an organization do not delay those of another', async () => {
  await flood(vendor, 2_000)
  await expect.poll(() => server.received.length, POLL).toBeGreaterThan(10)
  const other = await createVendor(harness, 'STANDARD', 'Other')
  await sendKey((await other.license()).id, other)
  await expect.poll(() => states(other), POLL).toEqual(['SUCCEEDED'])
  expect(server.received.length).toBeLessThan(1_000)
})

test('an organization sends at most MAIL_DAILY_LIMIT mails in 24 hours, and a suspended one sends none', async () => {
  const limited = await startHarness({ ...env, MAIL_DAILY_LIMIT: '3' })
  const { pool } = limited.database
  const of = await createVendor(limited)
  const { id, customerId } = await of.license({ customerId: await of.customer({ email: 'limited@example.com' }) })
  await pool.query(
    `insert into mails (id, organization_id, template, customer_id, recipient, license_ids)
     select new_id(), $1, 'key', $2, 'limited@example.com', array[$3::uuid] from generate_series(1, 9)`,
    [of.id, customerId, id],
  )
  const sent = async () => (await states(of)).filter((status) => status === 'SUCCEEDED').length
  await expect.poll(sent, POLL).toBe(3)
  await limited.call('POST', `organizations/${of.id}/suspend`)
  await pool.query(`update mails set attempted_at = now() - interval '25 hours' where attempted_at is not null`)
  const other = await createVendor(limited)
  await sendKey((await other.license()).id, other)
  await expect.poll(() => states(other), POLL).toEqual(['SUCCEEDED'])
  await limited.call('POST', `organizations/${of.id}/reinstate`)
  await expect.poll(sent, POLL).toBe(6)
  expect(server.received.filter(({ to }) => to[0] === 'limited@example.com')).toHaveLength(6)
  await limited.close()
})

test('an address gets at most 20 mails of an organization in 24 hours, the next ones wait, and others are sent', async () => {
  await flood(vendor, 12, 'Victim@example.com')
  await flood(vendor, 13, 'victim@example.com')
  await flood(vendor, 1)
  const postponed = async () =>
    (await list()).filter(({ status, error }) => status === 'PENDING' && error?.includes('20 mails') === true)
  await expect.poll(async () => (await postponed()).length, POLL).toBe(5)
  await expect.poll(() => server.received.length, POLL).toBe(21)
  for (const { attempts, attemptedAt, nextAttemptAt } of await postponed()) {
    expect({ attempts, attemptedAt }).toEqual({ attempts: 0, attemptedAt: null })
    expect(Date.parse(nextAttemptAt ?? '')).toBeGreaterThan(Date.now() + 3_500_000)
  }
  const other = await createVendor(harness)
  await flood(other, 1, 'victim@example.com')
  await expect.poll(() => states(other), POLL).toEqual(['SUCCEEDED'])
  const { pool } = harness.database
  await pool.query(`update mails set attempted_at = now() - interval '25 hours' where attempted_at is not null`)
  await hurry()
  await expect.poll(async () => new Set(await states()), POLL).toEqual(new Set(['SUCCEEDED']))
})

test('a mail that waits for the limit of its address ends three days after its creation', async () => {
  await flood(vendor, 21, 'victim@example.com')
  await expect.poll(async () => (await list()).filter(({ error }) => error !== null).length, POLL).toBe(1)
  await expect.poll(() => server.received.length, POLL).toBe(20)
  const { pool } = harness.database
  await pool.query(`update mails set id = $2 where organization_id = $1 and status = 'PENDING'`, [
    vendor.id,
    firstIdAt(Date.now() - 3 * DAY_MS - 60_000).replace('-0000-0000-', '-7000-8000-'),
  ])
  await hurry()
  await expect
    .poll(async () => (await list()).at(-1), POLL)
    .toMatchObject({
      status: 'FAILED',
      error: 'The mail could not be sent within 3 days.',
    })
})

test('failed attempts do not count toward the limit of an address', async () => {
  server.respond = () => 451
  await flood(vendor, 22, 'victim@example.com')
  const attempted = async () => (await list()).filter(({ attempts }) => attempts > 0).length
  await expect.poll(attempted, POLL).toBe(22)
  server.respond = () => null
  await hurry()
  await expect.poll(async () => (await states()).filter((status) => status === 'SUCCEEDED').length, POLL).toBe(20)
})

test('no text of a vendor or customer adds a header or a recipient', async () => {
  for (const mailSenderName of ['Acme\r\nBcc: eve@example.com', 'Acme <eve@example.com>', 'a"b', ''])
    expect(outcome(await settings({ mailSenderName }))).toBe('422 INVALID_REQUEST')
  for (const mailReplyTo of [
    'a@example.com\r\nBcc: eve@example.com',
    'a@example.com, eve@example.com',
    'Acme <a@example.com>',
  ])
    expect(outcome(await settings({ mailReplyTo }))).toBe('422 INVALID_REQUEST')
  const { id } = await vendor.license()
  await harness.database.pool.query(
    `with named as (
       update organizations set name = E'Acme\\r\\nBcc: eve@example.com', mail_reply_to = E'a@example.com\\r\\nBcc: eve@example.com' where id = $1)
     update products set name = E'Studio\\r\\nBcc: eve@example.com\\r\\n\\r\\n<script>' where organization_id = $1`,
    [vendor.id],
  )
  await sendKey(id)
  await expect.poll(() => states(), POLL).toEqual(['SUCCEEDED'])
  const [sent] = server.received
  expect(sent!.to).toEqual(['ada@example.com'])
  expect(sent!.headers).not.toMatch(/^Bcc/im)
  expect(sent!.raw).toContain('&lt;script&gt;')
})

test('a customer with 5 mails of the last 24 hours gets none by request', async () => {
  const license = await vendor.license()
  for (let i = 0; i < 5; i++) expect((await sendKey(license.id)).status).toBe(201)
  expect(outcome(await sendKey(license.id))).toBe('429 RATE_LIMITED')
  expect((await sendKey((await vendor.license()).id)).status).toBe(201)
})

test('a customer is reminded once of each end of a license, if the vendor has switched it on', async () => {
  await settings({ mailEndingDays: 7, mailReplyTo: 'help@acme.example' })
  await vendor.call('PATCH', 'organization', { body: { timeZone: 'Europe/Zurich' } })
  const expiresAt = '2040-06-30T22:00:00.000Z' // midnight in Zurich
  const policy = { type: 'SUBSCRIPTION', expiresAt }
  const licenses = await Promise.all([1, 2, 3].map(() => vendor.license({ policy })))
  const silent = await createVendor(harness)
  await silent.license({ policy })
  await vendor.call('POST', `licenses/${licenses[1]!.id}/suspend`)
  const pool = createPool(harness.database.managementUrl, { name: 'scheduler', max: 1 })
  const runAt = (days: number) => writeDueEvents(createDatabase(pool), new Date(Date.parse(expiresAt) + days * DAY_MS))
  await runAt(-31)
  await runAt(-8)
  expect(await list()).toEqual([])
  // The customer renews one license before the mail is sent.
  await vendor.call('POST', `licenses/${licenses[2]!.id}/renew`, { body: { expiresAt: '2041-06-30T22:00:00.000Z' } })
  await runAt(-6.5)
  await runAt(-6.4)
  await pool.end()
  await expect.poll(() => states(), POLL).toEqual(['SUCCEEDED'])
  expect(await list(silent)).toEqual([])
  const [sent] = server.received
  expect(sent!.headers).toContain('Subject: Your license for Studio ends on 30 June 2040')
  expect(sent!.raw).not.toContain(licenses[0]!.key)
  expect(sent!.raw).toContain(`ends with ${licenses[0]!.key.slice(-4)}`)
})

test('a mail that is no longer true is not sent', async () => {
  const { id, customerId } = await vendor.license()
  await vendor.call('POST', `licenses/${id}/revoke`)
  await harness.database.pool.query(
    `insert into mails (id, organization_id, template, customer_id, recipient, license_ids, ends_at, next_attempt_at) values
       (new_id(), $1, 'key', $2, 'a@example.com', array[$3::uuid], null, now()),
       (new_id(), $1, 'ending', $2, 'a@example.com', array[$3::uuid], now(), now()),
       (new_id(), $1, 'key', $2, 'a@example.com', array[$3::uuid], null, now() - interval '4 days')`,
    [vendor.id, customerId, id],
  )
  await expect.poll(() => states(), POLL).toEqual(['FAILED', 'FAILED', 'FAILED'])
  expect((await list()).map(({ error }) => error)).toEqual([
    'The mail could not be sent within 3 days.',
    'The license no longer ends at this time.',
    'The license has been deleted, revoked or moved.',
  ])
  expect(server.received).toEqual([])
})

test('a merge keeps the mails of the customer, and a deletion removes the customer from them', async () => {
  server.respond = () => 451
  const { id, customerId } = await vendor.license()
  await sendKey(id)
  const into = await vendor.customer({ email: 'remaining@example.com' })
  expect((await vendor.call('POST', `customers/${customerId}/merge`, { body: { into } })).status).toBe(200)
  expect(await list()).toMatchObject([{ customerId: into, recipient: 'ada@example.com' }])
  await vendor.call('DELETE', `licenses/${id}`)
  expect((await vendor.call('DELETE', `customers/${into}`)).status).toBe(204)
  expect(await list()).toMatchObject([{ customerId: null, recipient: null, licenseIds: [], status: 'FAILED' }])
})

test('a mail goes to the present address, without a license that now belongs to another customer', async () => {
  server.respond = () => 451
  const kept = await vendor.license()
  const moved = await vendor.license({ customerId: await vendor.customer({ email: 'other@example.com' }) })
  await sendKey(kept.id)
  await sendKey(moved.id)
  await expect.poll(async () => (await list()).map(({ attempts }) => attempts), POLL).toEqual([1, 1])
  const changed = await vendor.call('PATCH', `customers/${kept.customerId}`, { body: { email: 'new@example.com' } })
  expect(changed.status).toBe(200)
  const to = { customerId: kept.customerId }
  expect((await vendor.call('PATCH', `licenses/${moved.id}`, { body: to })).status).toBe(200)
  server.respond = () => null
  await harness.database.pool.query('update mails set next_attempt_at = now() where organization_id = $1', [vendor.id])
  await expect.poll(async () => (await states()).toSorted(), POLL).toEqual(['FAILED', 'SUCCEEDED'])
  expect(server.received.map(({ to: recipients }) => recipients)).toEqual([['new@example.com']])
})

test('sending a key requires the permission to read licenses', async () => {
  const { id } = await vendor.license()
  const permissions = ['customers.read', 'customers.write']
  const created = await vendor.call('POST', 'tokens', { body: { name: 'crm', permissions } })
  const { secret: token } = expectBody(created, 201, createdToken.required({ secret: true }))
  const body = { template: 'key', licenseId: id }
  expect(outcome(await harness.call('POST', 'mails', { token, body }))).toBe('403 FORBIDDEN')
  const foreign = await sendKey(id, await createVendor(harness))
  expect(outcome(foreign)).toBe('422 INVALID_REQUEST')
  expect(foreign.text).toContain('#/licenseId')
})

test('without a mail server, no mail can be requested or switched on', async () => {
  const without = await startHarness()
  const of = await createVendor(without)
  expect(outcome(await sendKey((await of.license()).id, of))).toBe('403 NOT_ENABLED')
  expect(outcome(await settings({ mailKeys: true }, of))).toBe('403 NOT_ENABLED')
  expect(outcome(await settings({ mailEndingDays: 7 }, of))).toBe('403 NOT_ENABLED')
  expect(outcome(await settings({ mailPortal: true }, of))).toBe('403 NOT_ENABLED')
  expect((await settings({ mailKeys: false, mailEndingDays: null }, of)).status).toBe(200)
  await without.close()
})

const requestLink = (email: string, of = vendor, at = harness) =>
  at.call('POST', 'portal/links', { token: null, body: { organizationId: of.id, email } })
const open = (code: string) => harness.call('POST', 'portal/session', { token: null, body: { code } })

test('a customer requests a link by mail, and it opens the portal once', async () => {
  await settings({ mailPortal: true })
  const customerId = await vendor.customer({ email: 'Link@example.com' })
  expect((await requestLink('link@EXAMPLE.com')).status).toBe(204)
  await expect.poll(() => states(), POLL).toEqual(['SUCCEEDED'])
  expect(await list()).toMatchObject([{ template: 'portal', customerId, recipient: 'link@EXAMPLE.com' }])
  const [sent] = server.received
  expect(sent?.to).toEqual(['Link@example.com'])
  const text = sent!.raw.replaceAll(/=\r?\n/g, '').replaceAll('=3D', '=')
  const [, url = ''] = /href="([^"]+)"/.exec(text) ?? []
  const [address, code = ''] = url.split('#confirm.')
  expect(address).toBe(`https://portal.example/portal?organization=${vendor.id}`)
  expect(text.split(code)).toHaveLength(4) // in the text, in the address and in its text
  expect((await open(code)).body).toMatchObject({ email: 'Link@example.com', actions: ['release', 'files'] })
  expect(outcome(await open(code))).toBe('401 UNAUTHENTICATED')
  const { body } = await vendor.call('GET', `audit-log?action=portal.linked&resourceId=${customerId}`)
  expect(body).toMatchObject({ data: [{ actor: { type: 'SYSTEM' } }] })
})

test('a request for a link has the same response for an unknown address, which gets no mail', async () => {
  const other = await createVendor(harness)
  await other.customer({ email: 'other@example.com' })
  await vendor.customer({ email: 'known@example.com' })
  await requestLink('known@example.com')
  expect(await list()).toEqual([])
  await settings({ mailPortal: true })
  const responses = [
    await requestLink('known@example.com'),
    await requestLink('nobody@example.com'),
    await requestLink('other@example.com'),
    await requestLink('known@example.com', { ...vendor, id: '01a2042f-a039-7028-8465-570518c9f627' }),
  ].map(({ status, text, headers }) => [status, text, [...headers.keys()].toSorted()])
  expect(new Set(responses.map((one) => JSON.stringify(one))).size).toBe(1)
  expect(responses[0]?.[0]).toBe(204)
  // Only the mail to the known address remains.
  await expect.poll(() => states(), POLL).toEqual(['SUCCEEDED'])
  expect(server.received.map(({ to }) => to)).toEqual([['known@example.com']])
  expect(await list(other)).toEqual([])
})

test('an address gets 3 links in an hour, and a network requests 20', async () => {
  const limited = await startHarness(env)
  const of = await createVendor(limited)
  await settings({ mailPortal: true }, of)
  await of.customer({ email: 'often@example.com' })
  for (let i = 0; i < 5; i++) expect((await requestLink('often@example.com', of, limited)).status).toBe(204)
  for (let i = 5; i < 20; i++) expect((await requestLink(`${i}@example.com`, of, limited)).status).toBe(204)
  expect(outcome(await requestLink('late@example.com', of, limited))).toBe('429 RATE_LIMITED')
  await expect.poll(() => states(of), POLL).toEqual(['SUCCEEDED', 'SUCCEEDED', 'SUCCEEDED'])
  await limited.close()
})

test('a link is not sent an hour after its request', async () => {
  await settings({ mailPortal: true })
  await vendor.customer({ email: 'late@example.com' })
  await harness.database.pool.query(
    `insert into mails (id, organization_id, template, recipient, license_ids) values ($2, $1, 'portal', 'late@example.com', '{}')`,
    [vendor.id, firstIdAt(Date.now() - 3_700_000).replace('-0000-0000-', '-7000-8000-')],
  )
  await expect.poll(() => states(), POLL).toEqual(['FAILED'])
  const sessions = await harness.database.pool.query('select from portal_sessions where organization_id = $1', [
    vendor.id,
  ])
  expect(sessions.rowCount).toBe(0)
})

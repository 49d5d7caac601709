import { importedLicenses, license as licenseSchema, ownOrganization, page } from '@keyward/contract'
import { auditEntry } from '@keyward/contract/management/audit'
import { event } from '@keyward/contract/management/events'
import {
  type LicenseJob,
  licenseJob as jobSchema,
  licenseJobs as operations,
} from '@keyward/contract/management/license-jobs'
import { createPool } from '@keyward/database'
import { createDatabase } from '@keyward/database/kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { runJobs } from '../../src/crud/paged-jobs.ts'
import { runningJobs } from '../../src/resources/license-jobs/run.ts'
import { applyRetention } from '../../src/retention/retention.ts'
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

const EXPIRY = '2031-01-01T00:00:00.000Z'
const DAY_MS = 86_400_000
const subscription = { type: 'SUBSCRIPTION', expiresAt: EXPIRY }
const read = async (id: string) => expectBody(await vendor.call('GET', `licenses/${id}`), 200, licenseSchema)
const list = async (query: string, of = vendor) =>
  expectBody(await of.call('GET', `licenses?${query}`), 200, page(licenseSchema).loose())
const start = async (body: object, of = vendor) =>
  expectBody(await of.call('POST', 'license-jobs', { body }), 202, jobSchema)
const dryRun = async (body: object) =>
  expectBody(await vendor.call('POST', 'license-jobs/dry-run', { body }), 200, operations.dryRunLicenseJob.returns)
const readJob = async (id: string) => expectBody(await vendor.call('GET', `license-jobs/${id}`), 200, jobSchema)
const act = async (id: string, verb: 'cancel' | 'undo') =>
  expectBody(await vendor.call('POST', `license-jobs/${id}/${verb}`), 200, jobSchema)

async function until(id: string, isReached = (job: LicenseJob) => job.endedAt !== null): Promise<LicenseJob> {
  for (;;) {
    const job = await readJob(id)
    if (isReached(job)) return job
  }
}
const finish = async (body: object) => until((await start(body)).id)
const undo = async (id: string) => until((await act(id, 'undo')).id)

/** Imports licenses with the policy, and returns their ids in ascending order. */
async function importMany(count: number, policy: object = subscription, of = vendor): Promise<string[]> {
  const [customerId, productId] = [await of.customer(), await of.product()]
  const licenses = Array.from({ length: count }, () => ({ productId, customerId, policy }))
  const imported = await of.call('POST', 'licenses/import', { body: { licenses } })
  return expectBody(imported, 200, importedLicenses)
    .licenses.map(({ id }) => id)
    .toSorted()
}

async function countsOf(column: 'expires_at' | 'status', organizationId = vendor.id): Promise<Record<string, number>> {
  const { rows } = await harness.database.pool.query<{ value: unknown; count: number }>(
    `select ${column} as value, count(*)::integer as count from licenses where organization_id = $1 group by 1`,
    [organizationId],
  )
  const text = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value))
  return Object.fromEntries(rows.map(({ value, count }) => [text(value), count]))
}

async function countEvents(type: string): Promise<number> {
  const { rows } = await harness.database.pool.query<{ count: number }>(
    'select count(*)::integer as count from events where organization_id = $1 and type = $2',
    [vendor.id, type],
  )
  return rows[0]?.count ?? 0
}

/** Runs the test while no process handles the pages of the vendor's jobs. `release` ends this state. */
async function holdPages(id: string): Promise<{ release: () => Promise<void> }> {
  const client = await harness.database.pool.connect()
  await client.query('begin')
  await client.query('select from license_jobs where id = $1 for share', [id])
  return {
    release: async () => {
      await client.query('commit')
      client.release()
    },
  }
}

test('a job changes the licenses that match, and names the others with the reason', async () => {
  const suspended = await vendor.license()
  await vendor.call('POST', `licenses/${suspended.id}/suspend`)
  const revoked = await vendor.license()
  await vendor.call('POST', `licenses/${revoked.id}/revoke`)
  const plain = await vendor.license({ policy: subscription })
  const action = { type: 'suspend', reason: 'chargeback' }
  const effect = await dryRun({ action, all: true })
  expect(effect).toMatchObject({ total: 3, changed: 1, skipped: 1, failed: 1 })
  expect(effect.reasons).toHaveLength(2)
  expect(effect.reasons).toContainEqual({ reason: 'REVOKED', count: 1 })
  expect(effect.examples.changed).toEqual([{ id: plain.id, key: plain.key }])
  expect(effect.examples.others).toContainEqual({ id: suspended.id, key: suspended.key, reason: 'IN_EFFECT' })
  expect((await read(plain.id)).status).toBe('active')
  const ended = await finish({ action, all: true })
  expect(ended).toMatchObject({ state: 'completed', total: 3, done: 3, changed: 1, skipped: 1, failed: 1, action })
  expect(ended.errors).toEqual([{ id: revoked.id, key: revoked.key, reason: 'REVOKED' }])
  expect(await read(plain.id)).toMatchObject({ status: 'suspended' })
  const { data } = expectBody(await vendor.call('GET', 'events?type=license.suspended'), 200, page(event))
  expect(data[0]?.data).toMatchObject({
    reason: 'chargeback',
    previous: { status: 'active' },
    resource: { id: plain.id },
  })
  const shown = await vendor.call('GET', `licenses/${plain.id}/activity`)
  expect(shown.text).toContain('LICENSE_SUSPENDED')
  const entries = expectBody(await vendor.call('GET', 'audit-log'), 200, page(auditEntry)).data
  expect(entries.filter((entry) => entry.resourceId === ended.id)).toMatchObject([
    { action: 'license_job.started', changes: { action, all: true, total: 3 } },
  ])
  expect(entries.filter((entry) => entry.resourceId === plain.id && entry.action === 'license.suspended')).toEqual([])
})

test.each([
  [{ type: 'reinstate' }, { status: 'active' }],
  [{ type: 'revoke' }, { status: 'revoked' }],
  [{ type: 'renew', expiresAt: '2032-01-01T00:00:00.000Z' }, { policy: { expiresAt: '2032-01-01T00:00:00.000Z' } }],
  [{ type: 'extend', days: 10 }, { policy: { expiresAt: new Date(Date.parse(EXPIRY) + 10 * DAY_MS).toISOString() } }],
])('an undo of %j restores the licenses', async (action, expected) => {
  const { id } = await vendor.license({ policy: subscription })
  await vendor.call('POST', `licenses/${id}/suspend`)
  const before = await read(id)
  const job = await finish({ action, ids: [id] })
  expect(job).toMatchObject({ changed: 1, undoableUntil: expect.any(String) as unknown })
  expect(await read(id)).toMatchObject(expected)
  expect(await undo(job.id)).toMatchObject({ state: 'undone', restored: 1, kept: 0, undoableUntil: null })
  const { updatedAt, ...restored } = await read(id)
  expect({ ...restored, updatedAt: before.updatedAt }).toEqual(before)
  expect(updatedAt).not.toBe(before.updatedAt)
  expect(await act(job.id, 'undo')).toMatchObject({ state: 'undone' })
})

test('an undo leaves a license that has changed since the job, and names it', async () => {
  const [first, second, third] = await importMany(3)
  const job = await finish({ action: { type: 'suspend' }, filter: { status: 'active' } })
  expect(job.changed).toBe(3)
  await vendor.call('PATCH', `licenses/${second}`, { body: { metadata: { edited: true } } })
  await vendor.call('DELETE', `licenses/${third}`)
  const undone = await undo(job.id)
  expect(undone).toMatchObject({ restored: 1, kept: 2 })
  expect(undone.errors.map(({ id, reason }) => [id, reason])).toEqual([
    [second, 'CHANGED'],
    [third, 'DELETED'],
  ])
  expect((await read(first!)).status).toBe('active')
  expect((await read(second!)).status).toBe('suspended')
  expect(await countEvents('license.reinstated')).toBe(1)
})

test('a job deletes licenses with their events, and a deletion cannot be undone', async () => {
  const ids = await importMany(120)
  const job = await finish({ action: { type: 'delete' }, ids: ids.slice(1) })
  expect(job).toMatchObject({ changed: 119, undoableUntil: null })
  expect((await list('')).data.map(({ id }) => id)).toEqual([ids[0]])
  expect(await countEvents('license.deleted')).toBe(119)
  expect(outcome(await vendor.call('POST', `license-jobs/${job.id}/undo`))).toBe('409 NOT_UNDOABLE')
})

test('a page of deletions is bounded by the machines and rules of its licenses', async () => {
  const ids = await importMany(4)
  await harness.database.pool.query(
    `insert into machines (id, organization_id, license_id, machine_id)
     select new_id(), $1, id, convert_to('machine-' || n, 'UTF8') from unnest($2::uuid[]) id, generate_series(1, 1500) n`,
    [vendor.id, ids.slice(0, 3)],
  )
  expect(await finish({ action: { type: 'delete' }, ids })).toMatchObject({ state: 'completed', done: 4, changed: 4 })
  const { rows } = await harness.database.pool.query(
    `select distinct xmin::text from events where organization_id = $1 and type = 'license.deleted'`,
    [vendor.id],
  )
  expect(rows).toHaveLength(3)
})

test('a job whose page fails shows the problem until a page succeeds', async () => {
  const [id] = await importMany(1)
  const job = await finish({ action: { type: 'suspend' }, ids: [id] })
  const store = (status: string) =>
    harness.database.pool.query(
      `update license_job_rows set before = before || jsonb_build_object('status', $2::text) where job_id = $1`,
      [job.id, status],
    )
  await store('unknown')
  await act(job.id, 'undo')
  const failing = await until(job.id, ({ problem }) => problem !== null)
  expect(failing).toMatchObject({ state: 'undoing', problem: expect.stringContaining('failed') as unknown })
  await store('active')
  expect(await until(job.id)).toMatchObject({ state: 'undone', restored: 1, problem: null })
})

test('a job whose page failed once continues beside an older job whose pages always fail', async () => {
  const [first, second] = await importMany(2)
  const older = await finish({ action: { type: 'suspend' }, ids: [first] })
  const later = await finish({ action: { type: 'suspend' }, ids: [second] })
  const store = (id: string, status: string) =>
    harness.database.pool.query(
      `update license_job_rows set before = before || jsonb_build_object('status', $2::text) where job_id = $1`,
      [id, status],
    )
  for (const { id } of [older, later]) {
    await store(id, 'unknown')
    await act(id, 'undo')
    await until(id, ({ problem }) => problem !== null)
  }
  await store(later.id, 'active')
  expect(await until(later.id)).toMatchObject({ state: 'undone', restored: 1, problem: null })
  expect(await readJob(older.id)).toMatchObject({ state: 'undoing', restored: 0 })
  await act(older.id, 'cancel')
})

test.each([
  { type: 'ROBOT', id: 'r2' },
  { type: 'MEMBER', issuedBy: { type: 'ROBOT' } },
])('a job of an actor that only a later version knows is listed and left to that version: %j', async (actor) => {
  const { id } = await vendor.license({ policy: subscription })
  const { rows } = await harness.database.pool.query<{ id: string }>(
    `with job as (
       insert into license_jobs (id, organization_id, action, actor, total) values (new_id(), $1, '{"type":"suspend"}', $2, 1) returning id
     ), of_job as (insert into license_job_rows (job_id, license_id) select id, $3 from job)
     select id from job`,
    [vendor.id, JSON.stringify(actor), id],
  )
  // Later jobs of the organization run.
  expect(await finish({ action: { type: 'suspend' }, ids: [id] })).toMatchObject({ state: 'completed', changed: 1 })
  expect((await vendor.call('GET', 'license-jobs')).body).toMatchObject({
    data: [{}, { id: rows[0]?.id, actor: { type: 'SYSTEM', name: 'an actor of a later version' } }],
  })
  expect(await readJob(rows[0]?.id ?? '')).toMatchObject({ state: 'running', done: 0, problem: null })
})

test('an undo locks the organization before the job, as a start does', async () => {
  const [id] = await importMany(1)
  const job = await finish({ action: { type: 'suspend' }, ids: [id] })
  const client = await harness.database.pool.connect()
  await client.query('begin')
  await client.query('select from organizations where id = $1 for no key update', [vendor.id])
  const undone = act(job.id, 'undo')
  const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%organizations%' and datname = current_database()`
  while ((await harness.database.pool.query(waiting)).rowCount === 0)
    await new Promise((resolve) => setTimeout(resolve, 5))
  await client.query('select from license_jobs where id = $1 for update nowait', [job.id])
  await client.query('commit')
  client.release()
  expect((await undone).state).toBe('undoing')
})

test('the start of a job selects its licenses, so later ones do not enter', async () => {
  const { id } = await vendor.license({ policy: subscription })
  const job = await start({ action: { type: 'suspend' }, all: true })
  const held = await holdPages(job.id)
  const later = await vendor.license({ policy: subscription })
  await held.release()
  expect(await until(job.id)).toMatchObject({ total: 1, done: 1 })
  expect((await read(id)).status).toBe('suspended')
  expect((await read(later.id)).status).toBe('active')
})

test('a job starts only with as many licenses as the dry run returned, if the request states the number', async () => {
  await importMany(2)
  const body = { action: { type: 'delete' }, filter: { status: 'active' } }
  const { total } = await dryRun(body)
  await importMany(1)
  const refused = await vendor.call('POST', 'license-jobs', { body: { ...body, expectedTotal: total } })
  expect(outcome(refused)).toBe('422 INVALID_REQUEST')
  expect(refused.text).toContain('must be 3, the number of licenses that are selected now')
  expect((await list('')).data).toHaveLength(3)
  expect(await finish({ ...body, expectedTotal: 3 })).toMatchObject({ total: 3, changed: 3 })
})

test('a canceled job keeps what it has changed, and is undone whole', async () => {
  await importMany(900)
  const { id } = await start({ action: { type: 'suspend' }, filter: { status: 'active' } })
  await until(id, ({ done }) => done > 0)
  const canceled = await act(id, 'cancel')
  expect(canceled.endedAt).not.toBeNull()
  const { suspended } = await countsOf('status')
  expect(suspended).toBe(canceled.changed)
  expect(await act(id, 'cancel')).toEqual(canceled)
  expect(await undo(id)).toMatchObject({ state: 'undone', restored: canceled.changed, kept: 0 })
  expect(await countsOf('status')).toEqual({ active: 900 })
})

test('processes and a crash between pages neither lose nor repeat a license', async () => {
  await importMany(950)
  const pools = [0, 1].map(() =>
    createPool(harness.database.managementUrl, { name: 'another process', max: 2, onError: () => undefined }),
  )
  const job = await start({ action: { type: 'extend', days: 1 }, all: true })
  const ending = new AbortController()
  const crashes = (async () => {
    for (let count = 0; !ending.signal.aborted && count < 40; count++) {
      await harness.database.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name in ('another process', 'keyward-management-jobs')`,
      )
      await new Promise((resolve) => setTimeout(resolve, 15))
    }
  })()
  const others = pools.map(async (pool) => {
    while (!ending.signal.aborted) await runJobs(createDatabase(pool), runningJobs).catch(() => undefined)
  })
  const ended = await until(job.id)
  ending.abort()
  await Promise.all([...others, crashes])
  await Promise.all(pools.map((pool) => pool.end()))
  expect(ended).toMatchObject({ total: 950, done: 950, changed: 950 })
  expect(await countsOf('expires_at')).toEqual({ [new Date(Date.parse(EXPIRY) + DAY_MS).toISOString()]: 950 })
  expect(await countEvents('license.renewed')).toBe(950)
})

test('a job waits while the organization has reached a quota of bytes, and continues', async () => {
  const ids = await importMany(450)
  const setQuota = (bytesPerDay: number | null) =>
    harness.call('PATCH', `organizations/${vendor.id}`, { body: { quotas: { bytesPerDay } } })
  const { used } = expectBody(await vendor.call('GET', 'organization'), 200, ownOrganization).quotas.bytesPerDay
  await setQuota((used ?? 0) + 30_000)
  const { id } = await start({ action: { type: 'extend', days: 1 }, all: true })
  const waiting = await until(id, ({ problem }) => problem !== null)
  expect(waiting).toMatchObject({ state: 'running', done: 200 })
  expect(waiting.problem).toContain('bytesPerDay')
  await setQuota(null)
  expect(await until(id)).toMatchObject({ state: 'completed', changed: 450, problem: null })
  expect((await read(ids[0]!)).policy.expiresAt).toBe(new Date(Date.parse(EXPIRY) + DAY_MS).toISOString())
})

test('a job suspends, revokes and deletes licenses although the organization stores as many bytes as it may', async () => {
  const ids = await importMany(3)
  const setQuota = (storedBytes: number | null) =>
    harness.call('PATCH', `organizations/${vendor.id}`, { body: { quotas: { storedBytes } } })
  await setQuota(1)
  const run = (type: string, id?: string) => finish({ action: { type }, ids: [id] })
  for (const [n, type] of ['suspend', 'revoke', 'delete'].entries())
    expect(await run(type, ids[n])).toMatchObject({ state: 'completed', changed: 1 })
  const refused = await vendor.call('POST', 'license-jobs', { body: { action: { type: 'reinstate' }, ids: [ids[0]] } })
  expect(outcome(refused)).toBe('403 QUOTA_EXCEEDED')
  await setQuota(null)
})

test('a request names each id of another organization, and selects nothing of it', async () => {
  const other = await createVendor(harness)
  const [foreign] = await importMany(1, subscription, other)
  const [own] = await importMany(1)
  const action = { type: 'suspend' }
  for (const path of ['license-jobs', 'license-jobs/dry-run']) {
    const rejected = await vendor.call('POST', path, { body: { action, ids: [own, foreign] } })
    expect(outcome(rejected)).toBe('422 INVALID_REQUEST')
    expect(rejected.text).toContain('#/ids/1')
    expect(rejected.text).not.toContain('#/ids/0')
  }
  const job = await finish({ action, all: true })
  expect(job.total).toBe(1)
  expect(await countsOf('status', other.id)).toEqual({ active: 1 })
  for (const verb of ['cancel', 'undo'])
    expect(outcome(await other.call('POST', `license-jobs/${job.id}/${verb}`))).toBe('404 NOT_FOUND')
  expect(expectBody(await other.call('GET', 'license-jobs'), 200, page(jobSchema)).data).toEqual([])
})

test.each([
  { action: { type: 'suspend' } },
  { action: { type: 'suspend' }, filter: {} },
  { action: { type: 'suspend' }, filter: { keyPrefix: '' } },
  { action: { type: 'suspend' }, filter: { keyPrefix: ' ' } },
  { action: { type: 'suspend' }, all: false },
  { action: { type: 'suspend' }, ids: [] },
  { action: { type: 'suspend' }, all: true, filter: { status: 'active' } },
  { action: { type: 'suspend', days: 3 }, all: true },
  { action: { type: 'renew' }, all: true },
  { action: { type: 'renew', expiresAt: '2020-01-01T00:00:00Z' }, all: true },
  { action: { type: 'extend', days: 0 }, all: true },
  { action: { type: 'forget' }, all: true },
])('the request %j is not valid', async (body) => {
  expect(outcome(await vendor.call('POST', 'license-jobs', { body }))).toBe('422 INVALID_REQUEST')
})

test('an organization runs at most 10 jobs, and keeps at most 100', async () => {
  const [id] = await importMany(1)
  const body = { action: { type: 'suspend' }, ids: [id] }
  const jobs: LicenseJob[] = []
  // Their actor is not valid, so that no page of them succeeds.
  await harness.database.pool.query(
    `insert into license_jobs (id, organization_id, action, actor, total)
     select new_id(), $1, '{"type":"suspend"}', '{"type":"NOBODY"}', 0 from generate_series(1, 10)`,
    [vendor.id],
  )
  expect(outcome(await vendor.call('POST', 'license-jobs', { body }))).toBe('403 QUOTA_EXCEEDED')
  await harness.database.pool.query(
    `update license_jobs set actor = '{"type":"SYSTEM"}', ended_at = now(), state = 'canceled' where organization_id = $1`,
    [vendor.id],
  )
  await harness.database.pool.query(
    `insert into license_jobs (id, organization_id, action, actor, total, ended_at)
     select new_id(), $1, '{"type":"suspend"}', '{"type":"SYSTEM"}', 0, now() from generate_series(1, 120)`,
    [vendor.id],
  )
  jobs.push(await start(body))
  const { rows } = await harness.database.pool.query('select id from license_jobs where organization_id = $1', [
    vendor.id,
  ])
  expect(rows).toHaveLength(100)
  expect(await until(jobs[0]!.id)).toMatchObject({ changed: 1 })
})

test('a job is deleted with its rows after a week', async () => {
  const [id] = await importMany(1)
  const job = await finish({ action: { type: 'suspend' }, ids: [id] })
  const pool = createPool(harness.database.managementUrl, { name: 'retention', max: 2, onError: () => undefined })
  const days = { expiredRules: 30, revokedCredentials: 30, acknowledgedAlerts: 30, audit: 400, mergedCustomers: 400 }
  const sweep = () => applyRetention(createDatabase(pool), { days })
  await harness.database.pool.query(`update license_jobs set ended_at = now() - interval '7 days' where id = $1`, [
    job.id,
  ])
  expect(outcome(await vendor.call('POST', `license-jobs/${job.id}/undo`))).toBe('409 NOT_UNDOABLE')
  await sweep()
  await readJob(job.id)
  await harness.database.pool.query(`update license_jobs set ended_at = now() - interval '8 days' where id = $1`, [
    job.id,
  ])
  expect(await sweep()).toMatchObject({ licensesOfJobs: 1, licenseJobs: 1 })
  await pool.end()
  expect(outcome(await vendor.call('GET', `license-jobs/${job.id}`))).toBe('404 NOT_FOUND')
})

/** Tests that retention (docs/api.md#d6) deletes only old rows, in batches, in one process at a time. */

import { createDatabase } from '@keyward/database/kysely'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { applyRetention, type RetentionDays } from '../../src/retention/retention.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor } from '../support/vendor.ts'

const days: RetentionDays = {
  expiredRules: 30,
  revokedCredentials: 30,
  acknowledgedAlerts: 90,
  audit: 400,
  mergedCustomers: 400,
}
let harness: Harness
let pool: pg.Pool

beforeAll(async () => {
  harness = await startHarness()
  pool = new pg.Pool({ connectionString: harness.database.managementUrl })
})
afterAll(async () => {
  await pool.end()
  await harness.close()
})

const query = (text: string, values: unknown[] = []) => harness.database.pool.query(text, values)
async function count(text: string, values: unknown[] = []): Promise<number> {
  const counted = `select count(*)::integer as count from ${text}`
  const { rows } = await harness.database.pool.query<{ count: number }>(counted, values)
  return rows[0]?.count ?? 0
}

/** Applies retention with the login of the service, whose grants must suffice. */
const apply = (batchRows: number) => applyRetention(createDatabase(pool), { days, batchRows })

/** Waits while the service applies retention, which it does at its start. */
async function untilIdle(): Promise<void> {
  await query(`select pg_advisory_xact_lock(hashtext('keyward retention'))`)
}

test('deletes only rows past their retention, in batches', async () => {
  const vendor = await createVendor(harness)
  const license = await vendor.license()
  await query(
    `insert into access_rules (id, organization_id, kind, type, value, scope, created_by, expires_at)
     select gen_random_uuid(), $1, 'BLACKLIST', 'HWID', int4send(i), 'ORGANIZATION', '{"type":"SYSTEM"}',
       now() - i * interval '1 day' from generate_series(21, 40) i`,
    [vendor.id],
  )
  await query(
    `insert into credentials (id, organization_id, kind, name, prefix, secret_hash, revoked_at)
     select gen_random_uuid(), $1, 'API_KEY', 'k', 'kwk_', sha256(int4send(i)), now() - i * interval '1 day' from generate_series(21, 40) i`,
    [vendor.id],
  )
  await query(
    `insert into alerts (id, organization_id, license_id, count, first_at, last_at, acknowledged_at)
     select gen_random_uuid(), $1, $2, 1, now(), now(), now() - i * interval '1 day' from generate_series(86, 95) i`,
    [vendor.id, license.id],
  )
  await query(
    `insert into merged_customers (id, organization_id, merged_into, merged_at)
     select gen_random_uuid(), $1, $1, now() - i * interval '1 day' from generate_series(396, 405) i`,
    [vendor.id],
  )
  await query(
    `insert into audit_log (id, organization_id, actor, action, resource_type)
     select (lpad(to_hex((extract(epoch from now() - i * interval '1 day' - interval '1 minute') * 1000)::bigint), 12, '0') || '70008' || left(md5(random()::text), 15))::uuid,
       $1, '{"type":"SYSTEM"}', 'old', 'test' from generate_series(396, 405) i`,
    [vendor.id],
  )
  await query(
    `insert into idempotency_keys (owner, key, request_hash, created_at)
     select 'o', i::text, '', now() - i * interval '1 hour' from generate_series(164, 173) i`,
  )
  await query(
    `insert into daily_entries
     select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008' || left(md5(random()::text), 15))::uuid, at
     from (select now() - i * interval '1 day' + interval '1 hour' as at from generate_series(0, 4) i) days`,
  )
  await query(
    `insert into monitored_matches select gen_random_uuid(), now() - i * interval '1 day' + interval '1 hour', 1 from generate_series(0, 4) i`,
  )
  await untilIdle()
  expect(await apply(3)).toEqual({
    expiredRules: 11,
    revokedCredentials: 11,
    acknowledgedAlerts: 6,
    auditEntries: 6,
    mergedCustomers: 6,
    dailyEntries: 2,
    monitoredMatches: 2,
    storedResponses: 6,
  })
  expect(await apply(3)).toEqual({})
  expect(await count('access_rules where organization_id = $1', [vendor.id])).toBe(9)
  expect(await count(`audit_log where organization_id = $1 and action = 'old'`, [vendor.id])).toBe(4)
  const { rows } = await query(
    `select sum((changes ->> 'deleted')::integer)::integer as deleted from audit_log where action = 'access_rule.expired' and organization_id = $1`,
    [vendor.id],
  )
  expect(rows).toEqual([{ deleted: 11 }])
})

test('deletes nothing while another process applies retention', async () => {
  const vendor = await createVendor(harness)
  await query(
    `insert into merged_customers (id, organization_id, merged_into, merged_at) values (gen_random_uuid(), $1, $1, now() - interval '500 days')`,
    [vendor.id],
  )
  await untilIdle()
  const other = new pg.Client({ connectionString: harness.database.managementUrl })
  await other.connect()
  await other.query(`begin; select pg_advisory_xact_lock(hashtext('keyward retention'))`)
  expect(await apply(10)).toEqual({})
  await other.query('rollback')
  await other.end()
  expect(await apply(10)).toEqual({ mergedCustomers: 1 })
})

test('deletes all rows of a deleted organization except audit entries of the operator', async () => {
  const [vendor, kept] = [await createVendor(harness), await createVendor(harness)]
  for (const { id, call } of [vendor, kept]) {
    await call('POST', 'products', { body: { name: 'p' } })
    await query(
      `insert into activity (at, id, organization_id, license_id, type, first_at, last_at)
       select now(), gen_random_uuid(), $1, $1, 'LICENSE_CHANGED', now(), now() from generate_series(1, 7)`,
      [id],
    )
    await query(
      `insert into check_counts (hour, organization_id, product_id, code, count) values (date_trunc('hour', now()), $1, null, 'VALID', 1)`,
      [id],
    )
  }
  expect((await harness.call('DELETE', `organizations/${vendor.id}`)).status).toBe(204)
  await apply(3)
  for (const table of ['activity where', 'check_counts where', `audit_log where actor ->> 'type' <> 'OPERATOR' and`]) {
    const condition = `${table} organization_id = $1`
    expect(await count(condition, [vendor.id]), table).toBe(0)
    expect(await count(condition, [kept.id]), table).toBeGreaterThan(0)
  }
  expect(await count(`audit_log where organization_id = $1`, [vendor.id])).toBeGreaterThan(2)
  expect(await count('deleted_organizations')).toBe(0)
  expect(await count('organization_usage where organization_id = $1', [vendor.id])).toBe(0)
})

test('frees nearly used up bytes: the oldest events first, then audit entries older than 30 days', async () => {
  const [full, other] = [await createVendor(harness), await createVendor(harness)]
  const insert = (table: string, columns: string, values: string, hours: number) =>
    query(
      `insert into ${table} (id, organization_id, bytes, ${columns})
       select (lpad(to_hex((extract(epoch from now() - (i * ${hours} - 1) * interval '1 hour') * 1000)::bigint), 12, '0') || '70008' || left(md5(random()::text), 15))::uuid,
         o, 1000, ${values} from generate_series(1, 60) i, unnest($1::uuid[]) o`,
      [[full.id, other.id]],
    )
  const limit = async (storedBytes: number) => {
    const response = await harness.call('PATCH', `organizations/${full.id}`, { body: { quotas: { storedBytes } } })
    expect(response.status).toBe(200)
  }
  await insert('events', 'type, data', `'license.created', '{"actor":{"type":"SYSTEM"}}'`, 11)
  await insert('audit_log', 'actor, action, resource_type', `'{"type":"SYSTEM"}', 'old', 'test'`, 24)
  const events = ({ id }: { id: string }) =>
    count(`events where organization_id = $1 and type = 'license.created'`, [id])
  const entries = ({ id }: { id: string }) => count(`audit_log where organization_id = $1 and action = 'old'`, [id])
  // 80 % of this limit requires that 20 to 25 of the events are deleted.
  await limit(125_000)
  await apply(3)
  // An event about the quota may take the place of another one.
  expect(await events(full)).toBeGreaterThanOrEqual(31)
  expect(await events(full)).toBeLessThanOrEqual(40)
  expect(await entries(full)).toBe(60)
  await limit(1)
  await apply(3)
  expect(await events(full)).toBe(0)
  expect(await entries(full)).toBe(30)
  expect([await events(other), await entries(other)]).toEqual([60, 60])
})

test('deletes the oldest activity of an organization with too many entries', async () => {
  const [full, other] = [await createVendor(harness), await createVendor(harness)]
  const insert = ({ id }: { id: string }, entries: number) =>
    query(
      `insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at)
       select at, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008' || left(md5(random()::text), 15))::uuid,
         $1, $1, 'MACHINE_RELEASED', int4send(i), at, at
       from (select i, now() - i * interval '1 minute' as at from generate_series(1, $2::integer) i) entries`,
      [id, entries],
    )
  const newest = async ({ id }: { id: string }) => {
    const { rows } = await query(
      `select count(*)::integer as count, max(encode(machine_id, 'hex')) as last from activity where organization_id = $1`,
      [id],
    )
    return rows[0] as unknown
  }
  await query(`select ensure_partition('activity', now() - days * interval '1 day') from generate_series(0, 1) days`)
  await insert(full, 50)
  await insert(other, 20)
  const most = { FREE: 20, LITE: 20, STANDARD: 30 }
  await untilIdle()
  const trim = () => applyRetention(createDatabase(pool), { days, batchRows: 7, maxActivity: most })
  expect(await trim()).toMatchObject({ excessActivity: 20 })
  expect(await newest(full)).toEqual({ count: 30, last: '0000001e' })
  expect(await newest(other)).toEqual({ count: 20, last: '00000014' })
  expect(await trim()).toEqual({})
})

/** Tests that retention (docs/api.md#d6) deletes only old rows, in batches, in one process at a time. */

import { createDatabase } from '@keyward/database/kysely'
import {
  createTestDatabase,
  insertLicense,
  insertOrganization,
  insertProduct,
  type TestDatabase,
} from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { applyRetention, type RetentionDays } from '../../src/retention/retention.ts'

const days: RetentionDays = {
  expiredRules: 30,
  revokedCredentials: 30,
  acknowledgedAlerts: 90,
  audit: 400,
  mergedCustomers: 400,
}
// No service runs on this database, so only the tests apply retention.
let database: TestDatabase
let pool: pg.Pool

beforeAll(async () => {
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.managementUrl })
})
afterAll(async () => {
  await pool.end()
  await database.drop()
})

const query = (text: string, values: unknown[] = []) => database.pool.query(text, values)
const organization = () => insertOrganization(database.pool)
async function count(text: string, values: unknown[] = []): Promise<number> {
  const counted = `select count(*)::integer as count from ${text}`
  const { rows } = await database.pool.query<{ count: number }>(counted, values)
  return rows[0]?.count ?? 0
}

/** Applies retention with the login of the service, whose grants must suffice. */
const apply = (batchRows: number) => applyRetention(createDatabase(pool), { days, batchRows })

test('deletes only rows past their retention, in batches', async () => {
  const organizationId = await organization()
  const license = await insertLicense(database.pool, { organizationId })
  await query(
    `insert into access_rules (id, organization_id, kind, type, value, scope, created_by, expires_at)
     select gen_random_uuid(), $1, 'BLACKLIST', 'HWID', int4send(i), 'ORGANIZATION', '{"type":"SYSTEM"}',
       now() - i * interval '1 day' from generate_series(21, 40) i`,
    [organizationId],
  )
  await query(
    `insert into credentials (id, organization_id, kind, name, prefix, secret_hash, revoked_at)
     select gen_random_uuid(), $1, 'API_KEY', 'k', 'kwk_', sha256(int4send(i)), now() - i * interval '1 day' from generate_series(21, 40) i`,
    [organizationId],
  )
  await query(
    `insert into alerts (id, organization_id, license_id, count, first_at, last_at, acknowledged_at)
     select gen_random_uuid(), $1, $2, 1, now(), now(), now() - i * interval '1 day' from generate_series(86, 95) i`,
    [organizationId, license.id],
  )
  await query(
    `insert into merged_customers (id, organization_id, merged_into, merged_at)
     select gen_random_uuid(), $1, $1, now() - i * interval '1 day' from generate_series(396, 405) i`,
    [organizationId],
  )
  await query(
    `insert into audit_log (id, organization_id, actor, action, resource_type)
     select (lpad(to_hex((extract(epoch from now() - i * interval '1 day' - interval '1 minute') * 1000)::bigint), 12, '0') || '70008' || left(md5(random()::text), 15))::uuid,
       $1, '{"type":"SYSTEM"}', 'old', 'test' from generate_series(396, 405) i`,
    [organizationId],
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
  expect(await count('access_rules where organization_id = $1', [organizationId])).toBe(9)
  expect(await count(`audit_log where organization_id = $1 and action = 'old'`, [organizationId])).toBe(4)
  const { rows } = await query(
    `select sum((changes ->> 'deleted')::integer)::integer as deleted from audit_log where action = 'access_rule.expired' and organization_id = $1`,
    [organizationId],
  )
  expect(rows).toEqual([{ deleted: 11 }])
})

test('deletes nothing while another process applies retention', async () => {
  await query(
    `insert into merged_customers (id, organization_id, merged_into, merged_at) values (gen_random_uuid(), $1, $1, now() - interval '500 days')`,
    [await organization()],
  )
  const other = new pg.Client({ connectionString: database.managementUrl })
  await other.connect()
  await other.query(`begin; select pg_advisory_xact_lock(hashtext('keyward retention'))`)
  expect(await apply(10)).toEqual({})
  await other.query('rollback')
  await other.end()
  expect(await apply(10)).toEqual({ mergedCustomers: 1 })
})

test('deletes all rows of a deleted organization except audit entries of the operator', async () => {
  const [deleted, kept] = [await organization(), await organization()]
  for (const organizationId of [deleted, kept]) {
    await insertProduct(database.pool, { organizationId })
    await query(
      `insert into activity (at, id, organization_id, license_id, type, first_at, last_at)
       select now(), gen_random_uuid(), $1, $1, 'LICENSE_CHANGED', now(), now() from generate_series(1, 7)`,
      [organizationId],
    )
    await query(
      `insert into check_counts (hour, organization_id, product_id, code, count) values (date_trunc('hour', now()), $1, null, 'VALID', 1)`,
      [organizationId],
    )
    await query(
      `insert into audit_log (id, organization_id, actor, action, resource_type, bytes)
       select gen_random_uuid(), $1, jsonb_build_object('type', type), 'done', 'test', 100
       from unnest(array['SYSTEM', 'SYSTEM', 'SYSTEM', 'SYSTEM', 'OPERATOR']) type`,
      [organizationId],
    )
    await query(
      `insert into events (id, organization_id, type, data) values (gen_random_uuid(), $1, 'license.created', '{}')`,
      [organizationId],
    )
  }
  await query('delete from organizations where id = $1', [deleted])
  await apply(3)
  const entries = `audit_log where actor ->> 'type' <> 'OPERATOR' and`
  for (const table of ['activity where', 'check_counts where', 'events where', entries]) {
    const condition = `${table} organization_id = $1`
    expect(await count(condition, [deleted]), table).toBe(0)
    expect(await count(condition, [kept]), table).toBeGreaterThan(0)
  }
  expect(await count(`audit_log where organization_id = $1`, [deleted])).toBe(1)
  expect(await count('deleted_organizations')).toBe(0)
  expect(await count('organization_usage where organization_id = $1', [deleted])).toBe(0)
})

test('frees nearly used up bytes: the oldest events first, then audit entries older than 30 days', async () => {
  const [full, other] = [await organization(), await organization()]
  const insert = (table: string, columns: string, values: string, hours: number) =>
    query(
      `insert into ${table} (id, organization_id, bytes, ${columns})
       select (lpad(to_hex((extract(epoch from now() - (i * ${hours} - 1) * interval '1 hour') * 1000)::bigint), 12, '0') || '70008' || left(md5(random()::text), 15))::uuid,
         o, 1000, ${values} from generate_series(1, 60) i, unnest($1::uuid[]) o`,
      [[full, other]],
    )
  const limit = (storedBytes: number) =>
    query('update organizations set quotas = $2 where id = $1', [full, { storedBytes }])
  await insert('events', 'type, data', `'license.created', '{"actor":{"type":"SYSTEM"}}'`, 11)
  await insert('audit_log', 'actor, action, resource_type', `'{"type":"SYSTEM"}', 'old', 'test'`, 24)
  const events = (id: string) => count(`events where organization_id = $1`, [id])
  const entries = (id: string) => count(`audit_log where organization_id = $1`, [id])
  await limit(125_000)
  await apply(3)
  // 80 % of the limit leaves 100 of the rows, and each batch deletes three.
  expect(await events(full)).toBe(39)
  expect(await entries(full)).toBe(60)
  await limit(1)
  await apply(3)
  expect(await events(full)).toBe(0)
  expect(await entries(full)).toBe(30)
  expect([await events(other), await entries(other)]).toEqual([60, 60])
})

test('deletes the oldest activity of an organization with too many entries', async () => {
  const [full, other] = [await organization(), await organization()]
  const insert = (id: string, entries: number) =>
    query(
      `insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at)
       select at, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008' || left(md5(random()::text), 15))::uuid,
         $1, $1, 'MACHINE_RELEASED', int4send(i), at, at
       from (select i, now() - i * interval '1 minute' as at from generate_series(1, $2::integer) i) entries`,
      [id, entries],
    )
  const newest = async (id: string) => {
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
  const trim = () => applyRetention(createDatabase(pool), { days, batchRows: 7, maxActivity: most })
  expect(await trim()).toMatchObject({ excessActivity: 20 })
  expect(await newest(full)).toEqual({ count: 30, last: '0000001e' })
  expect(await newest(other)).toEqual({ count: 20, last: '00000014' })
  expect(await trim()).toEqual({})
})

test('deletes the oldest mails beyond the maximum, except those that count toward limits of 24 hours', async () => {
  const organizationId = await organization()
  await query(
    `insert into mails (id, organization_id, template, license_ids, attempted_at, worker)
     select new_id(), $1, 'key', '{}',
       case when n <= 2 then now() - interval '23 hours' when n <= 4 then now() - interval '25 hours' end,
       case when n = 3 then gen_random_uuid() end
     from generate_series(1, 10) n`,
    [organizationId],
  )
  const options = { days, batchRows: 100, maxEvents: 5 }
  expect(await applyRetention(createDatabase(pool), options)).toMatchObject({ excessMails: 2 })
  const counted = `mails where organization_id = '${organizationId}' and (attempted_at is not null or worker is not null)`
  expect(await count(counted)).toBe(3)
})

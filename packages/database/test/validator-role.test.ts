import { readFile, rm, writeFile } from 'node:fs/promises'

import {
  createTestDatabase,
  insertApiKey,
  insertLicense,
  insertOrganization,
  insertRule,
  insertSigningKey,
  onServer,
  SERVER_VARIABLE,
  type TestDatabase,
  withDatabase,
} from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { forgetValidator, noteValidator, openChangeLog, pruneFeed, uuidv7 } from '../src/index.ts'
import { migrate } from '../src/migrate.ts'
import { copySchema } from './support/copy-schema.ts'

let database: TestDatabase
let validator: pg.Pool

beforeAll(async () => {
  database = await createTestDatabase()
  validator = new pg.Pool({ connectionString: database.validatorUrl })
  const organizationId = await insertOrganization(database.pool)
  await insertLicense(database.pool, { organizationId })
  await insertRule(database.pool, { organizationId, value: '1.2.3.4' })
  await insertApiKey(database.pool, { organizationId })
  await insertSigningKey(database.pool, { organizationId })
})

afterAll(async () => {
  await validator.end()
  await database.drop()
})

describe('the role of validators', () => {
  test.each([
    `update licenses set status = 'active'`,
    `insert into licenses (id) values (gen_random_uuid())`,
    'delete from licenses',
    'truncate licenses cascade',
    `update access_rules set expires_at = now()`,
    'delete from access_rules',
    `update access_rule_counters set match_count = 0`,
    'select from folded_rules',
    'delete from folded_rules',
    `insert into credentials (id) values (gen_random_uuid())`,
    'update credentials set revoked_at = null',
    'delete from credentials',
    'update organizations set name = name',
    'update license_slots set used = 0',
    'delete from machines',
    'delete from change_log',
    'update feed_state set server = server',
    'select private_key_encrypted from signing_keys',
    'select * from signing_keys',
    'select * from licenses',
    'select name, prefix from credentials',
    'select from audit_log',
    'select from members',
    'select from activity',
    'select from idempotency_keys',
    'select void_change_log()',
    `select drop_old_partitions(0, 0)`,
    `select record_activity(gen_random_uuid(), '{}', 'x', null, null)`,
    `select write_rule_counts('[]')`,
    'create table mine (id integer)',
    "select pg_read_file('/etc/hostname')",
  ])('a validator may not run: %s', async (statement) => {
    await expect(validator.query(statement)).rejects.toMatchObject({ code: '42501' })
  })

  test('a validator may read the columns that verdicts need, and write its heartbeat', async () => {
    expect((await validator.query('select secret_hash from credentials')).rows).toHaveLength(1)
    expect((await validator.query('select public_key from signing_keys')).rows).toHaveLength(1)
    const note = { id: uuidv7(), name: 'v1', applied: '7:9:8', ready: true, details: { workers: 2 } }
    await noteValidator(validator, { ...note, applied: null, ready: false })
    await noteValidator(validator, note)
    const { rows } = await database.pool.query('select id, name, applied, ready, details from validators')
    expect(rows).toEqual([note])
    await noteValidator(validator, { ...note, details: { server: 'another/1' } })
    const { rows: foreign } = await database.pool.query<{ applied: string }>('select applied from validators')
    expect(foreign).toEqual([{ applied: '1:1:' }])
    await noteValidator(validator, { ...note, details: { server: await openChangeLog(validator) } })
    const { rows: own } = await database.pool.query<{ applied: string }>('select applied from validators')
    expect(own).toEqual([{ applied: note.applied }])
    await forgetValidator(validator, note.id)
    expect((await database.pool.query('select from validators')).rows).toEqual([])
    expect(await pruneFeed(validator, 60_000)).toBe(0)
  })
})

test.each([
  [{ others: { except: [], snapshot: 'bogus' } }, '22P02'],
  [{ others: { except: 'all', snapshot: '5:5:' } }, '22023'],
  [{ features: 'all' }, '22023'],
  [[], '22023'],
  [{ note: 'x'.repeat(70_000) }, '22023'],
])('a heartbeat with malformed details is rejected', async (details, code) => {
  const note = { id: uuidv7(), name: 'v1', applied: '7:9:8', ready: true, details }
  await expect(noteValidator(validator, note)).rejects.toMatchObject({ code })
})

test('new validators are rejected while 200 others are live, and these continue', async () => {
  const note = { id: uuidv7(), name: 'own', applied: '7:9:8', ready: true, details: {} }
  await noteValidator(validator, note)
  await validator.query(
    `select note_validator(gen_random_uuid(), 'invented', null, true, '{}') from generate_series(1, 199)`,
  )
  await expect(noteValidator(validator, { ...note, id: uuidv7() })).rejects.toMatchObject({ code: '53400' })
  await noteValidator(validator, note)
  await database.pool.query('delete from validators')
})

test('a session of a validator that holds locks delays no claim and no change of a vendor', async () => {
  const holder = await validator.connect()
  try {
    await holder.query(`select pg_advisory_lock(hashtext('ensure_partition'), hashtext(parent))
      from unnest(array['activity', 'check_counts']) parent`)
    await expect(
      holder.query('do $$ begin lock table activity in share update exclusive mode; end $$'),
    ).rejects.toMatchObject({
      code: '42501',
    })
    const client = await database.pool.connect()
    await client.query(`set lock_timeout = '2s'`)
    await client.query(
      `select ensure_partition('activity', now()), ensure_partition('activity', now() + interval '90 days')`,
    )
    client.release()
  } finally {
    holder.release(true)
  }
})

test('concurrent sessions create a partition once and insert into it at once', async () => {
  for (let months = 3; months < 9; months++) {
    const add = async () => {
      await database.pool.query(`select ensure_partition('activity', now() + make_interval(months => $1))`, [months])
      await database.pool.query(
        `insert into activity (at, id, organization_id, license_id, type, first_at, last_at)
         select now() + make_interval(months => $1), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'LATE', now(), now()`,
        [months],
      )
    }
    await Promise.all(Array.from({ length: 12 }, add))
  }
  const { rows } = await database.pool.query(
    `select count(*)::integer as added, count(distinct tableoid)::integer as partitions from activity where type = 'LATE'`,
  )
  expect(rows).toEqual([{ added: 72, partitions: 6 }])
})

test('warns which roles are missing when the migrating user cannot create roles', async () => {
  const server = process.env[SERVER_VARIABLE] ?? ''
  const name = `keyward_plain_${process.pid}`
  const url = new URL(withDatabase(server, name))
  await onServer(server, async (client) => {
    await client.query(`create role ${name} login password 'plain'`)
    await client.query(`create database ${name} owner ${name}`)
  })
  url.username = name
  url.password = 'plain'
  expect((await migrate(url.href)).warnings).toEqual([])
  // Both roles exist on this server, so the grants are changed to find neither.
  const schema = await copySchema()
  const grants = new URL('grants.sql', schema)
  await writeFile(grants, (await readFile(grants, 'utf8')).replace('rolname = group_role', `rolname = 'nobody_at_all'`))
  const { warnings } = await migrate(url.href, schema)
  expect(warnings).toEqual([
    expect.stringMatching(/create role keyward_validator nologin/),
    expect.stringMatching(/create role keyward_management nologin/),
  ])
  await rm(schema, { recursive: true })
  await onServer(server, async (client) => {
    await client.query(`drop database ${name} with (force)`)
    await client.query(`drop role ${name}`)
  })
})

test('a validator cannot prune entries of the change log that are younger than a minute', async () => {
  await pruneFeed(database.pool, 0)
  const { rows: before } = await database.pool.query('select count(*) from change_log')
  await database.pool.query(`insert into feed_marks select clock_timestamp(), pg_current_snapshot()`)
  await validator.query(`select prune_change_log(interval '-1 day', 1000000)`)
  expect((await database.pool.query('select count(*) from change_log')).rows).toEqual(before)
})

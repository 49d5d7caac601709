import { migrate } from '@keyward/database/migrate'
import {
  insertApiKey,
  insertLicense,
  insertOrganization,
  insertRule,
  onServer,
  VALIDATOR_LOGIN,
  withDatabase,
} from '@keyward/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { endChildren, metric, startManagement, startValidator, until, untilReady } from './support/children.ts'
import { check, says } from './support/client.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

/** Tests concurrent migrations, and programs on a schema of another version. */

let postgres: TestPostgres

beforeAll(async () => {
  postgres = await createPostgres()
})
afterEach(endChildren)
afterAll(() => postgres.remove())

async function emptyDatabase(name: string): Promise<string> {
  const url = withDatabase(postgres.url, name)
  await onServer(postgres.url, (client) => client.query(`create database ${name}`))
  return url
}

test('concurrent migrations succeed and apply each step once', async () => {
  const url = await emptyDatabase('at_once')
  const reports = await Promise.all(Array.from({ length: 4 }, () => migrate(url)))
  const applied = reports.flatMap((report) => report.applied)
  expect(applied.length).toBeGreaterThan(0)
  expect(new Set(applied).size).toBe(applied.length)
  expect((await migrate(url)).applied).toEqual([])
})

test('a running validator continues, and a new validator starts, on a newer schema', async () => {
  const pool = openPool(postgres.url)
  const organizationId = await insertOrganization(pool)
  const { secret } = await insertApiKey(pool, { organizationId })
  const license = await insertLicense(pool, { organizationId, maxMachines: 2 })
  const old = await startValidator(postgres.validatorUrl)
  await untilReady(old)
  await until(() => says(old.port, secret, { license: license.key, fingerprint: 'a' }, 'VALID'))

  // Makes changes of a later version: columns, tables, unknown types of rules, and unknown entries of the change log.
  await pool.query(`
    alter table licenses add column seats integer not null default 1;
    alter table access_rules add column priority integer not null default 0;
    alter table machines add column model text;
    create table bundles (id uuid primary key);
    alter table access_rules drop constraint access_rules_type_check;
    insert into change_log (entity, id) values ('B', gen_random_uuid());
    insert into migrations (name) values ('9999_later')`)
  const { rows } = await pool.query<{ id: string }>(
    `insert into access_rules (id, organization_id, kind, type, value, scope, created_by)
     values (gen_random_uuid(), $1, 'BLACKLIST', 'ASN', '64496', 'ORGANIZATION', '{}') returning id`,
    [organizationId],
  )
  await insertRule(pool, { organizationId, type: 'HWID', value: 'bad' })
  // This license has no machine limit. On the other license, a check before the rule is applied would take a slot.
  const unlimited = await insertLicense(pool, { organizationId, maxMachines: null })
  await until(() => says(old.port, secret, { license: unlimited.key, fingerprint: 'bad' }, 'BLACKLISTED'))
  expect((await check(old.port, secret, { license: license.key, fingerprint: 'b' })).code).toBe('VALID')
  expect((await check(old.port, secret, { license: license.key, fingerprint: 'c' })).code).toBe('TOO_MANY_MACHINES')
  expect(await metric(old, 'keyward_feed_skipped_rows_total')).toBeGreaterThan(0)
  expect(old.output()).toContain(rows[0]?.id.replaceAll('-', '') ?? 'no id')

  const another = await startValidator(postgres.validatorUrl)
  await untilReady(another)
  expect((await check(another.port, secret, { license: license.key, fingerprint: 'bad' })).code).toBe('BLACKLISTED')
  await Promise.all([old.stop(), another.stop()])
  await pool.end()
})

test('the migration of an older version fails on a newer schema, and names the reason', async () => {
  const url = await emptyDatabase('newer')
  await migrate(url)
  await onServer(url, (client) => client.query(`insert into migrations (name) values ('9999_later')`))
  await expect(migrate(url)).rejects.toThrow(/newer version of Keyward \(9999_later\)/)
})

test('management rejects a database that is not migrated, and a validator waits for the migration', async () => {
  const url = await emptyDatabase('unmigrated')
  await expect(startManagement(url)).rejects.toThrow(/migrat/)
  const validatorUrl = new URL(url)
  validatorUrl.username = VALIDATOR_LOGIN.user
  validatorUrl.password = VALIDATOR_LOGIN.password
  const early = await startValidator(validatorUrl.href)
  await until(() => /migrat/.test(early.output()))
  expect((await check(early.port, 'kwk_', { license: 'x' })).status).toBe(503)
  // The validator waits and loads after the migration.
  await migrate(url)
  await untilReady(early)
  await early.stop()
})

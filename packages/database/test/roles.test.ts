/**
 * Compares the permissions of both services' roles in the database with complete lists, so that every added grant fails a test. Each login
 * also runs statements that must fail, such as the creation of a temporary table.
 */

import { createTestDatabase, insertOrganization, insertSigningKey, type TestDatabase } from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { migrate } from '../src/migrate.ts'

const ROLES = { validator: 'keyward_validator', management: 'keyward_management' } as const

let database: TestDatabase
let logins: Readonly<Record<keyof typeof ROLES, pg.Pool>>

beforeAll(async () => {
  database = await createTestDatabase()
  // A copy of a database has the default privileges again. Each run of the migrations revokes them.
  await migrate(database.url)
  await insertSigningKey(database.pool, { organizationId: await insertOrganization(database.pool) })
  logins = {
    validator: new pg.Pool({ connectionString: database.validatorUrl }),
    management: new pg.Pool({ connectionString: database.managementUrl }),
  }
})

afterAll(async () => {
  await Promise.all([logins.validator.end(), logins.management.end()])
  await database.drop()
})

/** Returns the column `name` of a statement's rows. */
async function names(statement: string, values: unknown[]): Promise<string[]> {
  const { rows } = await database.pool.query<{ name: string }>(statement, values)
  return rows.map(({ name }) => name)
}

/** Returns the functions that a role may execute. Omits the functions of extensions, because they access no tables. */
const executable = (role: string) =>
  names(
    `select p.proname as name from pg_proc p where p.pronamespace = 'public'::regnamespace
       and has_function_privilege($1, p.oid, 'execute')
       and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e') order by 1`,
    [role],
  )

/** Returns the privileges of a role as `table privilege`, for whole tables and for single columns. */
const granted = (role: string, privileges: readonly string[]) =>
  names(
    `select c.relname || ' ' || lower(p) as name from pg_class c, unnest($2::text[]) p
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S') and not c.relispartition
       and case when c.relkind = 'S' then has_sequence_privilege($1, c.oid, 'usage')
         else has_table_privilege($1, c.oid, p) or (p in ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
           and has_any_column_privilege($1, c.oid, p)) end
     order by 1`,
    [role, privileges],
  )

describe('the validator role', () => {
  test('the validator role may execute only the listed functions', async () => {
    expect(await executable(ROLES.validator)).toEqual([
      'changes_after',
      'claim_slots',
      'forget_validator',
      'landmark_of',
      'note_validator',
      'open_change_log_with',
      'prune_change_log',
      'release_slots',
      'snap_covers',
      'write_usage',
    ])
  })

  test('the validator role may write no table', async () => {
    const writing = ['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'REFERENCES']
    expect(await granted(ROLES.validator, writing)).toEqual([])
  })

  test('the validator role may read only the columns that a verdict needs', async () => {
    const readable = await names(
      `select a.attrelid::regclass || '.' || a.attname as name from pg_attribute a join pg_class c on c.oid = a.attrelid
       where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
         and has_column_privilege($1, a.attrelid, a.attnum, 'SELECT') order by 1`,
      [ROLES.validator],
    )
    expect(readable).toMatchInlineSnapshot(`
      [
        "access_rules.allow_suspended_or_expired",
        "access_rules.customer_id",
        "access_rules.expires_at",
        "access_rules.id",
        "access_rules.kind",
        "access_rules.license_id",
        "access_rules.mode",
        "access_rules.organization_id",
        "access_rules.product_id",
        "access_rules.scope",
        "access_rules.scope_id",
        "access_rules.type",
        "access_rules.value",
        "change_log.entity",
        "change_log.id",
        "change_log.machine_id",
        "change_log.organization_id",
        "change_log.xid",
        "credentials.expires_at",
        "credentials.id",
        "credentials.kind",
        "credentials.organization_id",
        "credentials.product_id",
        "credentials.revoked_at",
        "credentials.secret_hash",
        "customers.id",
        "customers.organization_id",
        "feed_state.gone",
        "feed_state.pruned",
        "feed_state.reloads",
        "feed_state.server",
        "feed_state.single",
        "internal_keys.purpose",
        "internal_keys.secret",
        "license_slots.license_id",
        "license_slots.used",
        "licenses.customer_id",
        "licenses.duration_days",
        "licenses.entitlements",
        "licenses.expires_at",
        "licenses.grace_days",
        "licenses.id",
        "licenses.key",
        "licenses.lease_seconds",
        "licenses.max_machines",
        "licenses.max_releases",
        "licenses.organization_id",
        "licenses.product_id",
        "licenses.status",
        "machines.id",
        "machines.license_id",
        "machines.machine_id",
        "migrations.applied_at",
        "migrations.name",
        "organizations.id",
        "products.entitlements",
        "products.id",
        "products.organization_id",
        "signing_keys.created_at",
        "signing_keys.delegations",
        "signing_keys.id",
        "signing_keys.key_id",
        "signing_keys.organization_id",
        "signing_keys.prepared_at",
        "signing_keys.public_key",
        "signing_keys.retired_at",
        "signing_keys.withdrawn_at",
      ]
    `)
  })
})

describe('the management role', () => {
  test('the management role may execute only the listed functions', async () => {
    expect(await executable(ROLES.management)).toEqual([
      'are_entitlements',
      'claim_slots',
      'customer_text',
      'drop_old_partitions',
      'ensure_partition',
      'fold_usage',
      'new_id',
      'record_activity',
      'record_file_issued',
      'release_slots',
      'snap_covers',
      'utc_day',
    ])
  })

  test('the management role owns nothing and may not change the schema', async () => {
    expect(await granted(ROLES.management, ['TRUNCATE', 'TRIGGER', 'REFERENCES'])).toEqual([])
    const owned = await names('select relname as name from pg_class where relowner = $1::regrole', [ROLES.management])
    expect(owned).toEqual([])
  })

  test('the management role may not write the change log directly', async () => {
    const written = await granted(ROLES.management, ['INSERT', 'UPDATE', 'DELETE'])
    expect(
      written.filter((name) => /^(?:change_log|feed_|server_run|validators|flushes|migrations)/.test(name)),
    ).toEqual([])
  })
})

describe.each(['validator', 'management'] as const)('as the %s login', (login) => {
  test.each([
    'create temporary table mine (id uuid)',
    'create table mine (id uuid)',
    'create schema mine',
    `create function mine() returns integer language sql as 'select 1'`,
    'create trigger mine after insert on licenses for each statement execute function log_truncate()',
    'alter table licenses disable trigger all',
    'drop trigger licenses_updated on licenses',
    'truncate change_log',
    'update feed_state set server = server',
    `update internal_keys set secret = default`,
    'delete from internal_keys',
    'select void_change_log()',
    'select log_place()',
    'select recount_usage()',
    `select log_changes_of('licenses', 'L', 'id')`,
    `copy (select 1) to program 'true'`,
    `copy licenses from program 'true'`,
    "select pg_read_file('/etc/hostname')",
    `select lo_import('/etc/hostname')`,
    'create role mine',
    `alter role keyward_validator login`,
    `set session authorization default; set role postgres`,
    'create extension if not exists dblink',
    "load 'auto_explain'",
  ])('a login may not run: %s', async (statement) => {
    const refused = await logins[login]
      .query(statement)
      .catch((error: unknown) => (error instanceof pg.DatabaseError ? error.code : error))
    expect(['42501', '22023']).toContain(refused)
  })

  test('a login may not assume another role', async () => {
    // A migration with the address of an administrator grants management these permissions, on the whole server.
    const byTool = login === 'management' ? ['pg_signal_backend', 'pg_read_all_stats'] : []
    const self = (await logins[login].query<{ name: string }>('select current_user as name')).rows[0]?.name
    const roles = await names('select rolname as name from pg_roles where rolname <> all ($1)', [
      [ROLES[login], self, ...byTool],
    ])
    for (const role of roles) {
      const error = await logins[login]
        .query(`set role ${pg.escapeIdentifier(role)}`)
        .catch((reason: unknown) => reason)
      // Other test files drop their roles meanwhile.
      expect(['42501', '22023']).toContain(error instanceof pg.DatabaseError ? error.code : error)
    }
  })
})

test('a trigger function fails for a table outside of the schema', async () => {
  const client = await database.pool.connect()
  const attempts = [
    ['log_changes_of_licenses', 'id uuid', 'referencing new table as new_rows'],
    ['add_license_slots', 'id uuid', 'referencing new table as new_rows'],
    ['add_rule_counters', 'id uuid, organization_id uuid', 'referencing new table as new_rows'],
    ['log_machines', 'license_id uuid, machine_id bytea', 'referencing new table as changed'],
  ] as const
  for (const [name, columns, transition] of attempts) {
    // This test runs as the owner, because only the owner may create a trigger with the function.
    await client.query(`create temporary table victim (${columns})`)
    await client.query(
      `create trigger attached after insert on victim ${transition} for each statement execute function ${name}()`,
    )
    await expect(client.query('insert into victim default values'), name).rejects.toMatchObject({ code: '42501' })
    await client.query('drop table victim')
  }
  client.release(true)
})

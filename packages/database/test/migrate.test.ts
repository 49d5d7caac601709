import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'

import {
  insertApiKey,
  insertLicense,
  insertMachine,
  insertOrganization,
  insertRule,
  onServer,
  SERVER_VARIABLE,
  withDatabase,
} from '@keyward/testkit'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { loadFeed } from '../src/index.ts'
import { migrate } from '../src/migrate.ts'
import { listMigrations } from '../src/migrations.ts'

const server = process.env[SERVER_VARIABLE] ?? ''
const name = `keyward_migrate_${randomBytes(4).toString('hex')}`
const url = withDatabase(server, name)

beforeAll(() => onServer(server, (client) => client.query(`create database ${name}`)))
afterAll(() => onServer(server, (client) => client.query(`drop database ${name} with (force)`)))

test('migrates once when several processes migrate at the same time, and a repeat changes nothing', async () => {
  const reports = await Promise.all([migrate(url), migrate(url), migrate(url)])
  expect(reports.flatMap((report) => report.warnings)).toEqual([])
  expect(reports.filter((report) => report.applied.length > 0)).toHaveLength(1)
  expect((await migrate(url)).applied).toEqual([])
})

test('fills in machines of earlier versions, also those that claims have locked, and repairs an interrupted index', async () => {
  await onServer(url, async (client) => {
    const organizationId = await insertOrganization(client)
    const license = await insertLicense(client, { organizationId, maxMachines: null })
    await client.query(
      `insert into machines (id, license_id, machine_id)
       select gen_random_uuid(), $1, convert_to('m' || i, 'UTF8') from generate_series(1, 4500) i`,
      [license.id],
    )
    await client.query('update machines set organization_id = null')
    // What an interrupted creation leaves.
    await client.query(`update pg_index set indisvalid = false where indexrelid = 'machines_by_machine_id'::regclass`)
    await client.query('begin')
    await client.query(`select from machines where machine_id in ('m1', 'm3000') for no key update`)
    const migrating = migrate(url)
    const missing = async (): Promise<number> =>
      onServer(url, async (other) => {
        const select = 'select count(*)::integer as n from machines where organization_id is null'
        return (await other.query<{ n: number }>(select)).rows[0]?.n ?? 0
      })
    await expect.poll(missing).toBeLessThan(4_500)
    await client.query('commit')
    expect((await migrating).applied).toEqual([])
    expect(await missing()).toBe(0)
    const { rows } = await client.query(
      `select indisvalid from pg_index where indexrelid = 'machines_by_machine_id'::regclass`,
    )
    expect(rows).toEqual([{ indisvalid: true }])
  })
})

test('rejects a database of a newer version and names its migration', async () => {
  await onServer(url, (client) => client.query(`insert into kysely_migration values ('9999_future', now()::text)`))
  await expect(migrate(url)).rejects.toThrow(/newer version of Keyward \(9999_future\)/)
})

test('upgrades a database with rows from each schema since 0011', async () => {
  const names = (await listMigrations()).map((migration) => migration.name)
  for (const last of names.slice(names.indexOf('0011_folded_rules'))) {
    const old = `${name}_old`
    await onServer(server, (client) => client.query(`create database ${old}`))
    try {
      const rows = await onServer(withDatabase(server, old), (client) => fillOldSchema(client, last))
      const { applied } = await migrate(withDatabase(server, old))
      expect(applied).toEqual(names.slice(names.indexOf(last) + 1))
      const loaded: string[] = []
      await loadFeed(withDatabase(server, old), {
        onBatch: (changes) => void loaded.push(...changes.map(({ entity }) => entity)),
      })
      expect(loaded.toSorted()).toEqual(rows)
      const { rows: machines } = await onServer(withDatabase(server, old), (client) =>
        client.query('select organization_id is not null as is_filled from machines'),
      )
      expect(machines).toEqual([{ is_filled: true }])
    } finally {
      await onServer(server, (client) => client.query(`drop database ${old} with (force)`))
    }
  }
})

/**
 * Applies the migrations up to and including `last`, and records them as kysely does. Inserts a row of several
 * entities.
 */
async function fillOldSchema(client: pg.Client, last: string): Promise<string[]> {
  await client.query(`
    create table kysely_migration (name varchar(255) primary key, timestamp varchar(255) not null);
    create table kysely_migration_lock (id varchar(255) primary key, is_locked integer not null default 0);
    insert into kysely_migration_lock (id) values ('migration_lock')`)
  for (const migration of await listMigrations()) {
    await client.query(await readFile(migration.file, 'utf8'))
    await client.query('insert into kysely_migration values ($1, now()::text)', [migration.name])
    if (migration.name === last) break
  }
  const organizationId = await insertOrganization(client)
  const license = await insertLicense(client, { organizationId })
  await insertMachine(client, { licenseId: license.id, machineId: 'm' })
  await insertRule(client, { organizationId, value: '10.0.0.0/8' })
  await insertApiKey(client, { organizationId })
  return ['credential', 'customer', 'license', 'machine', 'organization', 'product', 'rule']
}

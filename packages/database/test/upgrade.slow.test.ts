/** Tests the upgrade of a database with rows from each schema since 0011_folded_rules. */

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
import { expect, test } from 'vitest'

import { loadFeed } from '../src/index.ts'
import { migrate } from '../src/migrate.ts'
import { listMigrations } from '../src/migrations.ts'

const server = process.env[SERVER_VARIABLE] ?? ''
const OLDEST = '0011_folded_rules'
const names = (await listMigrations()).map(({ name }) => name)

test.concurrent.each(names.slice(names.indexOf(OLDEST)))(
  'upgrades the schema of %s with rows',
  { timeout: 120_000 },
  async (last) => {
    const old = `keyward_upgrade_${randomBytes(4).toString('hex')}`
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
  },
)

test('a migration waits for a transaction that uses its table, while reads continue', { timeout: 60_000 }, async () => {
  const old = `keyward_upgrade_${randomBytes(4).toString('hex')}`
  const url = withDatabase(server, old)
  await onServer(server, (client) => client.query(`create database ${old}`))
  try {
    await onServer(url, (client) => fillOldSchema(client, '0033_activity_of_an_organization'))
    await onServer(url, async (holder) => {
      await holder.query('begin')
      await holder.query('lock table machines in row exclusive mode')
      const migrating = migrate(url)
      await onServer(url, async (other) => {
        await other.query(`set statement_timeout = '5s'`)
        const endMs = performance.now() + 3_000
        while (performance.now() < endMs) await other.query('select from machines limit 1')
      })
      await holder.query('commit')
      expect((await migrating).applied).toContain('0036_find_machines')
    })
  } finally {
    await onServer(server, (client) => client.query(`drop database ${old} with (force)`))
  }
})

/**
 * Applies the migrations up to and including `last`, and records them as kysely does. Then inserts one row of each entity in
 * the returned list.
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

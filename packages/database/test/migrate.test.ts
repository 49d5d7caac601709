import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import {
  copyPreviousSchema,
  insertApiKey,
  insertLicense,
  insertMachine,
  insertOrganization,
  insertRule,
  onServer,
  SERVER_VARIABLE,
  withDatabase,
} from '@keyward/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { loadFeed } from '../src/index.ts'
import { migrate } from '../src/migrate.ts'
import { indexStep, runOnlineSteps } from '../src/online-steps.ts'
import { copySchema } from './support/copy-schema.ts'

const server = process.env[SERVER_VARIABLE] ?? ''
let name: string
let url: string

beforeEach(async () => {
  name = `keyward_migrate_${randomBytes(4).toString('hex')}`
  url = withDatabase(server, name)
  await onServer(server, (client) => client.query(`create database ${name}`))
})
afterEach(() => onServer(server, (client) => client.query(`drop database ${name} with (force)`)))

test('migrates once when several processes migrate at the same time, and a repeat changes nothing', async () => {
  const reports = await Promise.all([migrate(url), migrate(url), migrate(url)])
  expect(reports.flatMap((report) => report.warnings)).toEqual([])
  expect(reports.filter((report) => report.applied.length > 0)).toHaveLength(1)
  expect((await migrate(url)).applied).toEqual([])
})

test('a repeat replaces functions and grants that were changed by hand', async () => {
  await migrate(url)
  await onServer(url, async (client) => {
    const body = async () =>
      (await client.query<{ body: string }>(`select prosrc as body from pg_proc where proname = 'new_id'`)).rows
    const before = await body()
    await client.query(`create or replace function new_id() returns uuid language sql as 'select gen_random_uuid()'`)
    await client.query('revoke select on validators from keyward_management')
    await migrate(url)
    expect(await body()).toEqual(before)
    const { rows } = await client.query(
      `select has_table_privilege('keyward_management', 'validators', 'select') as granted`,
    )
    expect(rows).toEqual([{ granted: true }])
  })
})

test('upgrades a database of the previous version with rows', async (context) => {
  const previous = copyPreviousSchema()
  if (previous === undefined) {
    context.skip('git has no previous version')
    return
  }
  await migrate(url, previous)
  await rm(previous, { recursive: true })
  await onServer(url, async (client) => {
    const organizationId = await insertOrganization(client)
    const license = await insertLicense(client, { organizationId })
    await insertMachine(client, { licenseId: license.id, machineId: 'm' })
    await insertRule(client, { organizationId, value: '10.0.0.0/8' })
    await insertApiKey(client, { organizationId })
  })
  await migrate(url)
  const loaded: string[] = []
  await loadFeed(url, { onBatch: (changes) => void loaded.push(...changes.map(({ entity }) => entity)) })
  expect(loaded.toSorted()).toEqual(['credential', 'customer', 'license', 'machine', 'organization', 'product', 'rule'])
})

/** Returns a copy of the schema folder with one more migration. */
async function laterSchema(migration: string): Promise<URL> {
  const schema = await copySchema()
  await writeFile(new URL('migrations/9999_later.sql', schema), migration)
  return schema
}

test('a migration waits for a transaction that uses its table, while reads continue', async () => {
  await migrate(url)
  const later = await laterSchema(`alter table machines add column model text; create index on licenses (key)`)
  await onServer(url, async (holder) => {
    await holder.query('begin')
    await holder.query('lock table machines in row exclusive mode')
    const migrating = migrate(url, later)
    await onServer(url, async (other) => {
      await other.query(`set statement_timeout = '5s'`)
      const endMs = performance.now() + 1_500
      while (performance.now() < endMs) await other.query('select from machines limit 1')
    })
    await holder.query('commit')
    expect((await migrating).applied).toEqual(['9999_later'])
  })
  await expect(migrate(url)).rejects.toThrow(/newer version of Keyward \(9999_later\)/)
  await rm(later, { recursive: true })
})

test('a migration that fails changes nothing, also no function', async () => {
  await migrate(url)
  const later = await laterSchema('alter table machines add column model text; select 1 / 0')
  await writeFile(
    new URL('functions/new_id.sql', later),
    `create or replace function new_id() returns uuid language sql as 'select gen_random_uuid()'`,
  )
  await expect(migrate(url, later)).rejects.toThrow(
    'The database could not be migrated, 9999_later.sql failed: division by zero',
  )
  await onServer(url, async (client) => {
    const { rows } = await client.query(
      `select (select count(*)::integer from pg_attribute where attrelid = 'machines'::regclass and attname = 'model') as columns,
         (select prosrc from pg_proc where proname = 'new_id') = 'select gen_random_uuid()' as replaced`,
    )
    expect(rows).toEqual([{ columns: 0, replaced: false }])
  })
  await rm(later, { recursive: true })
})

test('an online step creates an index beside writers, and repairs an interrupted one', async () => {
  await migrate(url)
  await onServer(url, async (client) => {
    await insertOrganization(client)
    const steps = new Map([indexStep('organizations_name', 'organizations (name)')])
    await runOnlineSteps(client, steps)
    // Creates the state that an interrupted run leaves.
    await client.query(`delete from online_steps where name = 'index organizations_name'`)
    await client.query(`update pg_index set indisvalid = false where indexrelid = 'organizations_name'::regclass`)
    await client.query('alter table organizations add constraint named check (length(name) > 0) not valid')
    await runOnlineSteps(client, steps)
    await runOnlineSteps(client, steps)
    const { rows } = await client.query(
      `select indisvalid, (select convalidated from pg_constraint where conname = 'named') from pg_index
       where indexrelid = 'organizations_name'::regclass`,
    )
    expect(rows).toEqual([{ indisvalid: true, convalidated: true }])
  })
})

test('the former default of fileDays is removed from licenses with leases, whose files then end with the lease', async () => {
  await migrate(url)
  await onServer(url, async (client) => {
    const organizationId = await insertOrganization(client)
    const license = (leaseSeconds: number | null) =>
      insertLicense(client, { organizationId, maxMachines: 1, leaseSeconds })
    const [leased, chosen, plain] = [await license(60), await license(60), await license(null)]
    await client.query(`update licenses set file_days = case when id = $1 then 31 else 30 end`, [chosen.id])
    await client.query('delete from online_steps')
    await runOnlineSteps(client)
    const { rows } = await client.query<{ id: string; days: number | null }>(
      'select id, file_days as days from licenses',
    )
    expect(Object.fromEntries(rows.map(({ id, days }) => [id, days]))).toEqual({
      [leased.id]: null,
      [chosen.id]: 31,
      [plain.id]: 30,
    })
  })
})

test('counts stored bytes exactly although other transactions commit meanwhile', async () => {
  await migrate(url)
  await onServer(url, async (client) => {
    const organizationId = await insertOrganization(client)
    const add = () =>
      client.query(
        `insert into products (id, organization_id, name, metadata) values (gen_random_uuid(), $1, 'p', '{"a": 1}')`,
        [organizationId],
      )
    await add()
    // The count waits after it has deleted the counters, and before it reads the last table.
    await onServer(url, async (holder) => {
      await holder.query('begin; lock table webhook_endpoints in access exclusive mode')
      const counted = onServer(url, async (step) => {
        await step.query('delete from online_steps')
        await runOnlineSteps(step)
      })
      const waits = `select from pg_locks where relation = 'webhook_endpoints'::regclass and not granted`
      while ((await client.query(waits)).rowCount === 0) await sleep(10)
      await add()
      await holder.query('rollback')
      await counted
    })
    const { rows } = await client.query<{ counted: number; stored: number }>(
      `select (select sum(used)::integer from organization_usage where quota = 'storedBytes') as counted,
         (select sum(octet_length(metadata::text))::integer from products) as stored`,
    )
    expect(rows).toEqual([{ counted: 16, stored: 16 }])
  })
})

test('rejects a database of the history before the baseline, and names the way out', async () => {
  await migrate(url)
  await onServer(url, (client) => client.query('alter table migrations rename to kysely_migration'))
  await expect(migrate(url)).rejects.toThrow(/from before 0001_baseline.*CHANGELOG\.md/)
})

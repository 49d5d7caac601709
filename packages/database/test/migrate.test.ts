import { randomBytes } from 'node:crypto'

import { insertLicense, insertOrganization, onServer, SERVER_VARIABLE, withDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { migrate } from '../src/migrate.ts'

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

test('fills in the organization of old machines, even locked ones, and repairs an interrupted index', async () => {
  await onServer(url, async (client) => {
    const organizationId = await insertOrganization(client)
    const license = await insertLicense(client, { organizationId, maxMachines: null })
    // Disables the triggers, which would write an entry of the change log for each machine.
    await client.query('set session_replication_role = replica')
    await client.query(
      `insert into machines (id, license_id, machine_id)
       select gen_random_uuid(), $1, convert_to('m' || i, 'UTF8') from generate_series(1, 4500) i`,
      [license.id],
    )
    await client.query('reset session_replication_role')
    // Creates the state that an interrupted run leaves.
    await client.query(`delete from online_steps where name in ('fill machines', 'index machines_by_machine_id')`)
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

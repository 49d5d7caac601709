/** Tests management while the synchronous standby is missing, and while its connections lead to a standby. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { migrate } from '@keyward/database/migrate'
import { type RunningPostgres, startPostgres } from '@keyward/embedded-postgres'
import { onServer } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Harness, startHarness } from './support/harness.ts'
import { createVendor, outcome } from './support/vendor.ts'

let folder: string
let postgres: RunningPostgres
let harness: Harness

const start = async (port?: number) => {
  postgres = await startPostgres({
    dataFolder: join(folder, 'data'),
    settings: { fsync: 'off' },
    ...(port !== undefined && { port }),
  })
}
const setStandbys = (names: string) =>
  onServer(postgres.url, async (client) => {
    await client.query(`alter system set synchronous_standby_names = '${names}'`)
    await client.query('select pg_reload_conf()')
  })
const readiness = async () => (await fetch(`${harness.adminOrigin}/readyz`)).json()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keyward-replication-'))
  await start()
  await migrate(postgres.url)
  harness = await startHarness({ DATABASE_URL: postgres.url })
}, 240_000)
afterAll(async () => {
  await setStandbys('')
  await harness.close()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
})

test('reads succeed while commits wait for a missing standby', async () => {
  const vendor = await createVendor(harness)
  expect(outcome(await vendor.call('GET', 'products'))).toBe('200')
  await setStandbys('nobody')
  const write = vendor.call('POST', 'products', { body: { name: 'waits' } })
  const waiting = () =>
    onServer(postgres.url, async (client) => {
      const { rows } = await client.query<{ query: string }>(
        `select query from pg_stat_activity where wait_event = 'SyncRep'`,
      )
      return rows.map(({ query }) => query)
    })
  await expect.poll(waiting).toContainEqual(expect.stringMatching(/; commit$/))
  expect(outcome(await vendor.call('GET', 'products'))).toBe('200')
  expect(await readiness()).toMatchObject({ ready: true, reasons: [] })
  await setStandbys('')
  expect(outcome(await write)).toBe('201')
})

test('management is not ready while its connections lead to a standby', { timeout: 30_000 }, async () => {
  const { port } = postgres
  await postgres.stop()
  const signal = join(folder, 'data', 'standby.signal')
  await writeFile(signal, '')
  await start(port)
  await expect
    .poll(readiness, { timeout: 10_000 })
    .toMatchObject({ ready: false, reasons: ['Postgres is a standby, which accepts no changes'] })
  await postgres.stop()
  await rm(signal)
  await start(port)
  await expect.poll(readiness, { timeout: 10_000 }).toMatchObject({ ready: true, reasons: [] })
})

import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { insertApiKey, insertLicense, insertOrganization, insertRule } from '@keyward/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { endChildren, type Service, startValidator, until, untilReady } from './support/children.ts'
import { check, deactivate } from './support/client.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

/** Tests that a validator with an index file forgets no acknowledged change when it restarts without Postgres (docs/api.md#p6). */

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let folder: string

beforeAll(async () => {
  postgres = await createPostgres()
  pool = openPool(postgres.url)
  folder = await mkdtemp(join(tmpdir(), 'keyward-restart-'))
})
afterEach(endChildren)
afterAll(async () => {
  await pool.end()
  await postgres.remove()
  await rm(folder, { recursive: true, force: true })
})

/** Starts a validator that writes its index file only when it stops. */
const start = (): Promise<Service> =>
  startValidator(postgres.validatorUrl, { INDEX_FILE: join(folder, 'index'), INDEX_FILE_INTERVAL: '1h' })

/** Waits until the validator has acknowledged every committed change, as `Prefer: wait` does. */
async function untilAcknowledged({ pid }: Service): Promise<void> {
  const { rows } = await pool.query<{ now: string }>('select pg_current_snapshot()::text as now')
  await until(async () => {
    const { rowCount } = await pool.query(
      `select from validators where name like $1 and snap_covers(applied::pg_snapshot, $2::pg_snapshot)`,
      [`%:${pid}`, rows[0]?.now],
    )
    return rowCount === 1
  })
}

async function createVendor() {
  const organizationId = await insertOrganization(pool)
  const key = await insertApiKey(pool, { organizationId })
  const license = (): ReturnType<typeof insertLicense> => insertLicense(pool, { organizationId, maxMachines: null })
  return { organizationId, key, secret: key.secret, license }
}

test('enforces every acknowledged change after a kill of the validator and of Postgres', async () => {
  const vendor = await createVendor()
  const [usual, revoked] = [await vendor.license(), await vendor.license()]
  const revokedKey = await insertApiKey(pool, { organizationId: vendor.organizationId })
  const first = await start()
  await untilReady(first)
  await first.stop()

  const second = await start()
  await untilReady(second)
  await pool.query(`update licenses set status = 'revoked' where id = $1`, [revoked.id])
  await insertRule(pool, { organizationId: vendor.organizationId, type: 'HWID', value: 'pirate' })
  await pool.query('delete from credentials where id = $1', [revokedKey.id])
  const added = await vendor.license()
  const other = await createVendor()
  const theirs = await other.license()
  await untilAcknowledged(second)
  second.signal('SIGKILL')
  await second.exit
  await postgres.stop('immediate')

  const third = await start()
  const codeOf = async (secret: string, license: string, fingerprint = 'm'): Promise<string> =>
    (await check(third.port, secret, { license, fingerprint })).code
  await until(async () => (await codeOf(vendor.secret, usual.key)) === 'VALID')
  const codes = async (): Promise<string[]> => [
    await codeOf(vendor.secret, revoked.key),
    await codeOf(vendor.secret, usual.key, 'pirate'),
    await codeOf(vendor.secret, added.key),
    await codeOf(other.secret, theirs.key),
    await codeOf(revokedKey.secret, usual.key),
    await codeOf(vendor.secret, 'a license of tomorrow'),
    await codeOf('kwk_malformed', usual.key),
    (await deactivate(third.port, vendor.secret, 'a license of tomorrow', 'm')).text,
  ]
  const enforced = ['REVOKED', 'BLACKLISTED', 'VALID', 'VALID']
  const unavailable: unknown = expect.stringContaining('"UNAVAILABLE"')
  expect(await codes()).toEqual([...enforced, 'UNAVAILABLE', 'UNAVAILABLE', 'UNAUTHORIZED', unavailable])

  await postgres.start()
  await untilReady(third)
  expect(await codes()).toEqual([...enforced, 'UNAUTHORIZED', 'NOT_FOUND', 'UNAUTHORIZED', '{"deactivated":false}'])
})

test('responds 503 after a restart without Postgres when the journal of the index file is missing', async () => {
  const vendor = await createVendor()
  const license = await vendor.license()
  const first = await start()
  await untilReady(first)
  await first.stop()
  for (const name of await readdir(folder)) if (name.endsWith('.journal')) await rm(join(folder, name))
  await postgres.stop('immediate')
  const second = await start()
  const ask = async (): Promise<string> =>
    (await check(second.port, vendor.secret, { license: license.key, fingerprint: 'm' })).code
  await until(() => second.output().includes('change feed interrupted'))
  for (let i = 0; i < 20; i++) expect(await ask()).toBe('UNAVAILABLE')
  await postgres.start()
  await until(async () => (await ask()) === 'VALID')
})

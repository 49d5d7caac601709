import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import {
  insertApiKey,
  insertLicense,
  insertOrganization,
  insertRule,
  onServer,
  type Proxy,
  startProxy,
  withDatabase,
} from '@keyward/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { endChildren, type Service, startValidator, until, untilReady } from './support/children.ts'
import { check, says } from './support/client.ts'
import { createPostgres, newFolder, openPool, startStandby, type TestPostgres, through } from './support/postgres.ts'

/** Tests a database whose history differs from the one that a validator followed: a crash, a restored copy, a failover. */

let postgres: TestPostgres
let proxy: Proxy
let pool: ReturnType<typeof openPool>
let validator: Service
let organizationId: string
let secret: string
let license: Awaited<ReturnType<typeof insertLicense>>

beforeEach(async () => {
  postgres = await createPostgres()
  proxy = await startProxy(postgres.port)
  pool = openPool(postgres.url)
  organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
  license = await insertLicense(pool, { organizationId, maxMachines: 2 })
  validator = await startValidator(through(postgres.validatorUrl, proxy.port))
  await untilReady(validator)
  await until(() => ask('VALID'))
})
afterEach(async () => {
  await endChildren()
  await pool.end()
  await proxy.close()
  await postgres.remove()
})

const ask = (code: string, fingerprint = 'known'): Promise<boolean> =>
  says(validator.port, secret, { license: license.key, fingerprint }, code)

const setStatus = (status: string): Promise<unknown> =>
  pool.query('update licenses set status = $2 where id = $1', [license.id, status])

/**
 * Adds a machine and a rule, and changes a status, after the copy was made. Resolves when the validator enforces these changes.
 */
async function makeChangesThatWillBeLost(): Promise<void> {
  await until(() => ask('VALID', 'late'))
  await insertRule(pool, { organizationId, type: 'HWID', value: 'unlucky' })
  await until(() => ask('BLACKLISTED', 'unlucky'))
  await setStatus('suspended')
  await until(() => ask('SUSPENDED'))
}

/** Waits until the validator follows the copy: it enforces new changes, no longer enforces the lost changes, and the lost slot is free. */
async function untilTheCopyHolds(): Promise<void> {
  await until(() => ask('VALID'))
  await until(() => ask('VALID', 'other'))
  expect((await check(validator.port, secret, { license: license.key, fingerprint: 'late' })).code).toBe(
    'TOO_MANY_MACHINES',
  )
  expect((await check(validator.port, secret, { license: license.key, fingerprint: 'unlucky' })).code).toBe(
    'TOO_MANY_MACHINES',
  )
  proxy.refuse()
  expect([await ask('VALID'), await ask('VALID', 'other'), await ask('TOO_MANY_MACHINES', 'late')]).toEqual([
    true,
    true,
    true,
  ])
  proxy.heal()
  await setStatus('revoked')
  await until(() => ask('REVOKED'))
}

test('applies every change when a crash makes Postgres reuse transaction numbers', async () => {
  // These transactions are visible, but never written to the disk. The next server reuses their numbers.
  await onServer(postgres.url, async (client) => {
    await client.query('set synchronous_commit = off')
    for (let i = 0; i < 50; i++) await client.query('select pg_current_xact_id()')
  })
  await pool.query(`select pg_notify('keyward_changes', '')`)
  await sleep(100)
  proxy.refuse()
  await postgres.stop('immediate')
  await postgres.start()
  await setStatus('suspended')
  for (let i = 0; i < 200; i++) await pool.query('select pg_current_xact_id()')
  proxy.heal()
  await until(() => ask('SUSPENDED'))
  expect(await ask('VALID')).toBe(false)
})

test('follows a promoted standby that lacks the last changes', async () => {
  const folder = await newFolder()
  await postgres.stop('fast')
  await postgres.copyTo(folder)
  await postgres.start()
  await makeChangesThatWillBeLost()
  await postgres.stop('immediate')
  const standby = await startStandby(postgres.program, join(folder, 'data'), postgres.url)
  try {
    // The validator must not follow the standby before its promotion, although the standby accepts connections.
    await until(() => /standby|recovery/.test(validator.output()))
    expect(await ask('SUSPENDED')).toBe(true)
    await pool.query('select pg_promote()')
    await untilTheCopyHolds()
    expect(await ask('REVOKED')).toBe(true)
  } finally {
    await standby.stop()
    await rm(folder, { recursive: true, force: true })
  }
})

test('follows an older copy of the data folder', async () => {
  const folder = await newFolder()
  await postgres.stop('fast')
  await postgres.copyTo(folder)
  await postgres.start()
  await makeChangesThatWillBeLost()
  await postgres.stop('fast')
  await rm(join(postgres.folder, 'data'), { recursive: true })
  await rename(join(folder, 'data'), join(postgres.folder, 'data'))
  await postgres.start()
  await untilTheCopyHolds()
  expect(await ask('REVOKED')).toBe(true)
})

test('follows a database restored from an older dump', async () => {
  const connections = `select pg_terminate_backend(pid) from pg_stat_activity where datname = 'keyward'`
  const maintenance = withDatabase(postgres.url, 'postgres')
  await onServer(maintenance, async (client) => {
    await client.query('alter database keyward allow_connections false')
    await client.query(connections)
    await client.query('create database dump template keyward')
    await client.query('alter database keyward allow_connections true')
  })
  await makeChangesThatWillBeLost()
  await onServer(maintenance, async (client) => {
    await client.query('alter database keyward allow_connections false')
    await client.query(connections)
    await client.query('alter database keyward rename to lost')
    await client.query('alter database dump rename to keyward')
  })
  await untilTheCopyHolds()
  expect(await ask('REVOKED')).toBe(true)
})

/**
 * Runs the services with PgBouncer in front of Postgres: management in transaction mode, and a validator in session mode,
 * which LISTEN requires.
 */

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { isListening, isInstalled } from '../cluster/balancer.ts'
import { freePort } from '../shared/ports.ts'
import { startService, untilReady, type ServiceProcess } from '../shared/service-process.ts'

const PGBOUNCER = 'pgbouncer'

describe.skipIf(!isInstalled(PGBOUNCER, '--version'))('behind PgBouncer (needs pgbouncer)', { timeout: 30_000 }, () => {
  const operatorToken = 'operator-token-of-these-tests-only'
  const folder = mkdtempSync(join(tmpdir(), 'keyward-pooler-'))
  let database: TestDatabase
  let pooler: ChildProcess
  let management: ServiceProcess
  let validator: ServiceProcess

  beforeAll(async () => {
    database = await createTestDatabase()
    const port = await freePort()
    writeFileSync(join(folder, 'pgbouncer.ini'), configuration(database, port))
    chmodSync(folder, 0o755)
    // PgBouncer does not run as root.
    const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
    pooler = spawn(PGBOUNCER, [...user, join(folder, 'pgbouncer.ini')], { stdio: 'ignore' })
    const through = (name: string): string => `postgres://pooled@127.0.0.1:${port}/${name}`
    const common = { PATH: process.env['PATH'] ?? '', KEYWARD_TRUSTED_PROXIES: '127.0.0.1', KEYWARD_LOG_LEVEL: 'error' }
    while (!(await isListening(port))) await sleep(20)
    ;[management, validator] = await Promise.all([
      startService('management', {
        ...common,
        KEYWARD_OPERATOR_TOKEN: operatorToken,
        KEYWARD_MASTER_KEY: '5e'.repeat(32),
        KEYWARD_MANAGEMENT_PORT: '0',
        KEYWARD_MANAGEMENT_ADMIN_PORT: '0',
        KEYWARD_DATABASE_URL: through('transactions'),
        DATABASE_PREPARED_STATEMENTS: 'false',
      }),
      startService('validator', {
        ...common,
        KEYWARD_VALIDATOR_PORT: '0',
        KEYWARD_VALIDATOR_ADMIN_PORT: '0',
        KEYWARD_VALIDATOR_WORKERS: '1',
        KEYWARD_VALIDATOR_DATABASE_URL: through('sessions'),
      }),
    ])
    await Promise.all([untilReady('management', management.adminPort), untilReady('validator', validator.adminPort)])
  }, 240_000)

  afterAll(async () => {
    await Promise.all([management.stop(), validator.stop()])
    pooler.kill('SIGTERM')
    if (pooler.exitCode === null) await once(pooler, 'exit')
    await database.drop()
    rmSync(folder, { recursive: true, force: true })
  }, 240_000)

  test('management requests change the verdicts of validators', async () => {
    const call = async <T>(path: string, token: string, body: object, schema: z.ZodType<T>): Promise<T> => {
      const response = await fetch(`http://127.0.0.1:${management.port}/api/v1${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', prefer: 'wait=10' },
        body: JSON.stringify(body),
      })
      expect(response.status, path).toBeLessThan(300)
      return schema.parse(await response.json())
    }
    const secrets = z.object({ managementToken: z.string(), apiKey: z.string() })
    const organization = await call('/organizations', operatorToken, { name: 'Acme' }, secrets)
    const make = <T>(path: string, body: object, schema: z.ZodType<T>): Promise<T> =>
      call(path, organization.managementToken, body, schema)
    const idSchema = z.object({ id: z.string() })
    const [product, customer] = await Promise.all([
      make('/products', { name: 'Editor' }, idSchema),
      make('/customers', { email: 'ada@example.com' }, idSchema),
    ])
    const policy = { type: 'PERPETUAL', maxMachines: 1 }
    const ids = { productId: product.id, customerId: customer.id }
    const license = await make('/licenses', { ...ids, policy }, z.object({ id: z.string(), key: z.string() }))
    const check = async (fingerprint: string): Promise<unknown> => {
      const response = await fetch(`http://127.0.0.1:${validator.port}/api/v1/validate`, {
        method: 'POST',
        headers: { authorization: `Bearer ${organization.apiKey}` },
        body: JSON.stringify({ licenseKey: license.key, fingerprint }),
      })
      return response.json()
    }
    expect(await check('a')).toMatchObject({ code: 'VALID' })
    expect(await check('b')).toMatchObject({ code: 'TOO_MANY_MACHINES' })
    await make(`/licenses/${license.id}/revoke`, {}, idSchema)
    expect(await check('a')).toMatchObject({ code: 'REVOKED' })
  })
})

function configuration(database: TestDatabase, port: number): string {
  const target = (url: string): string => {
    const { hostname, port: serverPort, pathname, username, password } = new URL(url)
    const secret = password === '' ? '' : ` password=${password}`
    return `host=${hostname} port=${serverPort} dbname=${pathname.slice(1)} user=${username}${secret}`
  }
  return `[databases]
transactions = ${target(database.url)} pool_mode=transaction
sessions = ${target(database.validatorUrl)} pool_mode=session
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
default_pool_size = 20
ignore_startup_parameters = extra_float_digits,options,statement_timeout,idle_in_transaction_session_timeout
`
}

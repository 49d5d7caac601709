import { execFile, execFileSync } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { createPool } from '@keyward/database'
import { insertApiKey, insertLicense, insertOrganization, onServer, withDatabase } from '@keyward/testkit'
import { afterEach, expect, test } from 'vitest'

import {
  endChildren,
  isReady,
  OPERATOR_TOKEN,
  type Service,
  startManagement,
  startValidator,
  until,
  untilReady,
} from './support/children.ts'
import { check, type Reply, send } from './support/client.ts'
import { createPostgres, newFolder, openPool, type TestPostgres } from './support/postgres.ts'
import { watch } from './support/watch.ts'

/** Tests the services while Postgres has no disk space, has no free connection, or does not respond. */

const run = promisify(execFile)
let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let secret: string
let license: Awaited<ReturnType<typeof insertLicense>>
let validator: Service
let machines = 0

async function prepare(given: TestPostgres, env: Record<string, string> = {}): Promise<void> {
  postgres = given
  pool = openPool(postgres.url)
  const organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
  license = await insertLicense(pool, { organizationId, maxMachines: 100_000 })
  validator = await startValidator(postgres.validatorUrl, env)
  await untilReady(validator)
}

afterEach(async () => {
  await endChildren()
  await pool.end()
  await postgres.remove()
})

const ask = (fingerprint: string): Promise<Reply> =>
  check(validator.port, secret, { license: license.key, fingerprint })
const askNew = (): Promise<Reply> => ask(`new ${++machines}`)
const isRefusal = ({ status, headers, code }: Reply): boolean =>
  status === 503 && headers['retry-after'] === '1' && code === 'UNAVAILABLE'

function createOrganization(management: Service): Promise<Reply> {
  return send(management.port, '/api/v1/organizations', { body: { name: 'Late' }, secret: OPERATOR_TOKEN })
}

function mayMount(): boolean {
  try {
    const folder = execFileSync('mktemp', ['-d']).toString().trim()
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', folder], { stdio: 'ignore' })
    execFileSync('umount', [folder])
    return true
  } catch {
    return false
  }
}

test.skipIf(!mayMount())(
  'sends 503 with a code while the disk of Postgres is full, and recovers (needs the right to mount)',
  async () => {
    const folder = await newFolder()
    await run('mount', ['-t', 'tmpfs', '-o', 'size=160m,mode=755', 'none', folder])
    try {
      await prepare(await createPostgres({ max_wal_size: '48MB', min_wal_size: '32MB', wal_recycle: 'off' }, folder))
      const management = await startManagement(postgres.url)
      expect((await ask('known')).code).toBe('VALID')
      const known = watch(() => ask('known'), 'VALID')
      await run('sh', ['-c', `cat /dev/zero > "${join(folder, 'filler')}" || true`], { maxBuffer: 1 << 20 })
      // Writes succeed until the last page is full.
      const fill = (): Promise<unknown> =>
        pool
          .query('insert into rate_limits select gen_random_uuid(), 1, 1 from generate_series(1, 2000)')
          .catch(() => null)
      const granted: string[] = []
      let organizations = 0
      const claim = async (): Promise<Reply> => {
        const reply = await askNew()
        if (reply.code === 'VALID') granted.push(`new ${machines}`)
        return reply
      }
      const create = async (): Promise<Reply> => {
        const reply = await createOrganization(management)
        if (reply.status === 201) organizations++
        return reply
      }
      let reply = await claim()
      for (; reply.code === 'VALID'; reply = await claim()) {
        await create()
        await fill()
      }
      expect(isRefusal(reply), `${reply.status} ${reply.code}`).toBe(true)
      const refused = await create()
      expect([refused.status, refused.code]).toEqual([503, 'UNAVAILABLE'])
      await rm(join(folder, 'filler'))
      await until(async () => (await claim()).code === 'VALID')
      await until(async () => (await create()).status === 201)
      expect((await known.stop()).wrong).toEqual([])
      // Everything that was confirmed before, during and after the fault exists.
      const { rows } = await pool.query<{ machines: number; organizations: number }>(
        `select (select count(*)::integer from machines where convert_from(machine_id, 'UTF8') = any ($1)) as machines,
           (select count(*)::integer from organizations where name = 'Late') as organizations`,
        [granted],
      )
      expect(rows).toEqual([{ machines: granted.length, organizations }])
      await management.stop()
    } finally {
      await endChildren()
      await postgres.stop('immediate')
      await run('umount', ['-l', folder])
    }
  },
)

test('sends 503 with a code while Postgres has no free connection, and recovers', async () => {
  await prepare(await createPostgres({ max_connections: 30, superuser_reserved_connections: 3 }))
  const management = await startManagement(postgres.url)
  await untilReady(management)
  expect((await ask('known')).code).toBe('VALID')
  const known = watch(() => ask('known'), 'VALID')
  await onServer(withDatabase(postgres.url, 'postgres'), async (administrator) => {
    const hoards = Array.from({ length: 3 }, () => createPool(postgres.url, { name: 'hoard', max: 30 }))
    // Takes the connections that become free when those of Keyward are terminated.
    const take = (): Promise<unknown> =>
      Promise.all(hoards.flatMap((hoard) => Array.from({ length: 30 }, () => hoard.connect().catch(() => null))))
    const held = [take()]
    for (let i = 0; i < 20; i++) {
      await administrator.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'keyward%'`,
      )
      held.push(take())
      const { rows } = await administrator.query<{ n: number }>(
        `select count(*)::int as n from pg_stat_activity where application_name = 'hoard'`,
      )
      if ((rows[0]?.n ?? 0) >= 26) break
    }
    await until(async () => isRefusal(await askNew()))
    const refused = await createOrganization(management)
    expect([refused.status, refused.code]).toEqual([503, 'UNAVAILABLE'])
    await Promise.allSettled(held)
    for (const hoard of hoards) void hoard.end().catch(() => null)
    await administrator.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'hoard'`)
    await until(async () => (await askNew()).code === 'VALID')
    await until(async () => (await createOrganization(management)).status === 201)
  })
  expect((await known.stop()).wrong).toEqual([])
  await management.stop()
})

test('is not ready after STALE_AFTER and sends 503 after STALE_LIMIT until Postgres responds', async () => {
  await prepare(await createPostgres(), { STALE_AFTER: '1500ms', STALE_LIMIT: '6s' })
  const readyz = async (): Promise<string> => (await fetch(`http://127.0.0.1:${validator.adminPort}/readyz`)).text()
  const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${validator.adminPort}/metrics`)).text()
  expect((await ask('known')).code).toBe('VALID')
  await postgres.freeze()
  await until(async () => !(await isReady(validator)))
  expect(await readyz()).toContain('STALE_AFTER')
  expect((await ask('known')).code).toBe('VALID')
  await until(async () => isRefusal(await ask('known')))
  expect(await metrics()).toMatch(/^keyward_ready 0$/m)
  const silence = /^keyward_feed_silence_seconds (\S+)$/m.exec(await metrics())
  expect(Number(silence?.[1])).toBeGreaterThan(5)
  await postgres.thaw()
  await until(async () => (await ask('known')).code === 'VALID')
  await until(() => isReady(validator))
  expect(await metrics()).toMatch(/^keyward_ready 1$/m)
})

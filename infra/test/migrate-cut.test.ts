/** Cuts the connection of the program `npm run migrate` while it waits for another migration, and while it runs a statement. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

import { createTestDatabase, onServer, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'

const MIGRATE = fileURLToPath(new URL('../migrate/main.ts', import.meta.url))
/** The key of the lock that serializes migrations. */
const LOCK = 7_201_945_338
/** The program starts slowly on a busy machine. */
const WAIT = { timeout: 60_000 }
vi.setConfig({ testTimeout: 180_000 })

/** Statements that delay the migration, statements that let it continue, and the condition of a backend that is delayed. */
const DELAYS = {
  'waits for another migration': {
    begin: `select pg_advisory_lock(${LOCK})`,
    end: `select pg_advisory_unlock(${LOCK})`,
    isDelayed: `query ~ 'pg_try_advisory_lock'`,
  },
  'runs a statement': {
    begin: 'begin; lock table online_steps in access exclusive mode',
    end: 'rollback',
    isDelayed: `wait_event_type = 'Lock'`,
  },
} as const
const SITUATIONS = ['waits for another migration', 'runs a statement'] as const

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** Starts the program, and cuts its connection during the delay. With `isRetried`, waits for its retry before the delay ends. */
async function cut(
  situation: (typeof SITUATIONS)[number],
  args: readonly string[],
  isRetried: boolean,
): Promise<Ended> {
  const { begin, end, isDelayed } = DELAYS[situation]
  return onServer(database.url, async (other) => {
    await other.query(begin)
    const env = { ...process.env, KEYWARD_DATABASE_URL: database.url }
    const program = spawn(process.execPath, [MIGRATE, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const ended = Promise.all([once(program, 'exit'), text(program.stdout), text(program.stderr)])
    onTestFinished(() => void program.kill())
    const delayed = async (): Promise<number[]> => {
      const { rows } = await database.pool.query<{ pid: number }>(
        `select pid from pg_stat_activity
         where datname = current_database() and application_name <> 'test' and ${isDelayed}`,
      )
      return rows.map(({ pid }) => pid)
    }
    await expect.poll(delayed, WAIT).toHaveLength(1)
    const former = await delayed()
    await database.pool.query('select pg_terminate_backend(pid) from unnest($1::integer[]) as pid', [former])
    const isAwaited = async (): Promise<boolean> => !isRetried || (await delayed()).some((pid) => !former.includes(pid))
    await expect.poll(isAwaited, WAIT).toBe(true)
    await other.query(end)
    const [, stdout, stderr] = await ended
    return { code: program.exitCode, stdout, stderr }
  })
}

test.each(SITUATIONS)(
  'exits with 1 and prints the reason when the connection is cut while it %s',
  async (situation) => {
    const { code, stdout, stderr } = await cut(situation, [], false)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^The start failed: .*terminating connection due to administrator command.*\n$/)
  },
)

test.each(SITUATIONS)('before a service, starts again when the connection is cut while it %s', async (situation) => {
  const { code, stdout, stderr } = await cut(situation, ['--before-service'], true)
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'The schema is up to date.\n' })
  expect(stderr).toMatch(
    /^Postgres is not available: .*terminating connection due to administrator command\. The migration retries every second\.\n$/,
  )
})

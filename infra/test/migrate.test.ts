import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { createPool } from '@keyward/database'
import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { ensureValidatorLogin } from '../shared/validator-login.ts'

const MIGRATE = fileURLToPath(new URL('../migrate/main.ts', import.meta.url))
const LOGIN = `odd "name' ${process.pid}`
let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})

afterAll(async () => {
  await database.pool.query(`drop role if exists "odd ""name' ${process.pid}"`)
  await database.drop()
})

const run = (env: Record<string, string>) =>
  promisify(execFile)(process.execPath, [MIGRATE], { env: { ...process.env, ...env } })

test('reports that a migrated schema is up to date', async () => {
  expect((await run({ DATABASE_URL: database.url })).stdout).toBe('The schema is up to date.\n')
})

test('reports whether it created the role and set its password', async () => {
  const login = async (password: Record<string, string>): Promise<string> =>
    (await run({ DATABASE_URL: database.url, VALIDATOR_LOGIN: LOGIN, ...password })).stdout.split('\n')[1] ?? ''
  expect(await login({})).toMatch(/^Created role odd "name' \d+ without a password\. Set VALIDATOR_PASSWORD unless /)
  expect(await login({})).toMatch(/already exists; its password was not changed\.$/)
  expect(await login({ VALIDATOR_PASSWORD: "pass'word" })).toMatch(
    /already exists; its password was set to VALIDATOR_PASSWORD\.$/,
  )
})

test('creates a role that is a member of keyward_validator and cannot write licenses', async () => {
  await ensureValidatorLogin(database.url, LOGIN, "other'pass")
  const url = new URL(database.url)
  url.username = encodeURIComponent(LOGIN)
  url.password = encodeURIComponent("other'pass")
  const pool = createPool(url.href, { name: 'test', max: 1 })
  await expect(pool.query(`update licenses set status = 'active'`)).rejects.toThrow('permission denied')
  const { rows } = await pool.query<{ member: boolean }>(`select pg_has_role('keyward_validator', 'member') as member`)
  expect(rows).toEqual([{ member: true }])
  await pool.end()
})

test('rejects VALIDATOR_PASSWORD without VALIDATOR_LOGIN', async () => {
  await expect(run({ DATABASE_URL: database.url, VALIDATOR_PASSWORD: "pass'word" })).rejects.toMatchObject({
    stdout: '',
    stderr: 'VALIDATOR_LOGIN is not set; it takes the name of the role that VALIDATOR_PASSWORD belongs to\n',
  })
})

test('names the variable that is invalid', async () => {
  await expect(run({ DATABASE_URL: 'nowhere' })).rejects.toThrow(
    'DATABASE_URL has a bad value (not shown); it takes an address such as',
  )
})

/** Tests the password of the embedded Postgres, and that its log contains no values of rows. */

import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type RunningPostgres, startPostgres } from '@keyward/embedded-postgres'
import { onServer } from '@keyward/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

let home: string
let running: RunningPostgres | undefined

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'keyward-password-'))
})

afterEach(async () => {
  await running?.stop()
  running = undefined
})

afterAll(() => rm(home, { recursive: true, force: true }))

async function start(name: string, onLog?: (line: string) => void): Promise<RunningPostgres> {
  running = await startPostgres({ dataFolder: join(home, name), ...(onLog ? { onLog } : {}) })
  return running
}

async function restart(name: string): Promise<RunningPostgres> {
  await running?.stop()
  return start(name)
}

function withPassword(url: string, password: string): string {
  const changed = new URL(url)
  changed.password = password
  return changed.href
}

const read = (url: string): Promise<number> =>
  onServer(url, async (client) => (await client.query<{ one: number }>('select 1 as one')).rows[0]?.one ?? 0)

async function expectPasswordRequired({ url }: RunningPostgres): Promise<void> {
  expect(await read(url)).toBe(1)
  await expect(read(withPassword(url, ''))).rejects.toThrow(/password/)
  await expect(read(withPassword(url, 'postgres'))).rejects.toThrow('password authentication failed')
}

test('requires a password that stays the same after a restart, in a file that only its owner can read', async () => {
  const { url } = await start('new')
  await expectPasswordRequired(await restart('new'))
  const path = join(home, 'new.password')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(new URL(url).password).toBe((await readFile(path, 'utf8')).trim())
  expect(new URL(running?.url ?? '').password).toBe(new URL(url).password)
})

test('keeps the data of a version that trusted every user, and requires a password for it', async () => {
  const { url } = await start('old')
  await onServer(url, (client) => client.query('create table kept as select 7 as n; alter role postgres password null'))
  await running?.stop()
  await writeFile(join(home, 'old', 'pg_hba.conf'), 'host all all 127.0.0.1/32 trust\n')
  await rm(join(home, 'old.password'))
  const upgraded = await start('old')
  await expectPasswordRequired(upgraded)
  const { rows } = await onServer(upgraded.url, (client) => client.query('select n from kept'))
  expect(rows).toEqual([{ n: 7 }])
})

test('sets a new password when the data folder was deleted', async () => {
  const before = new URL((await start('deleted')).url).password
  await running?.stop()
  await rm(join(home, 'deleted'), { recursive: true })
  const again = await start('deleted')
  await expectPasswordRequired(again)
  expect(new URL(again.url).password).not.toBe(before)
})

test('logs no value of a violated constraint', async () => {
  const lines: string[] = []
  const { url } = await start('log', (line) => lines.push(line))
  await onServer(url, async (client) => {
    await client.query('create table licenses (key text primary key)')
    const insert = (): Promise<unknown> => client.query('insert into licenses values ($1)', ['K7QF-SECRET'])
    await insert()
    await expect(insert()).rejects.toMatchObject({ code: '23505' })
  })
  expect(lines.join('\n')).toContain('duplicate key value violates unique constraint')
  expect(lines.join('\n')).not.toContain('K7QF-SECRET')
})

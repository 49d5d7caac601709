/** Tests that every kind of connection to an address with several hosts leads to the primary. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type RunningPostgres, startPostgres } from '@keyward/embedded-postgres'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { addressesOf } from '../src/hosts.ts'
import { createPool, listenForChanges, loadFeed } from '../src/index.ts'
import { migrate } from '../src/migrate.ts'

let folder: string
let primary: RunningPostgres
/** A server in standby mode without a primary. It accepts reads. */
let standby: RunningPostgres
/** A host that accepts connections and sends nothing. */
let silent: Server
let url: string

const portOf = (server: Server): number => {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keyward-hosts-'))
  const dataFolder = join(folder, 'standby')
  const settings = { fsync: 'off' }
  ;[primary, standby] = await Promise.all([
    startPostgres({ dataFolder: join(folder, 'primary'), settings }),
    startPostgres({ dataFolder, settings }),
  ])
  const client = new pg.Client({ connectionString: primary.url })
  await client.connect()
  await client.query(`create role app superuser login password 'p,s@ß'`)
  await client.end()
  const other = new pg.Client({ connectionString: standby.url })
  await other.connect()
  await other.query(`create role app superuser login password 'p,s@ß'`)
  await other.end()
  await standby.stop()
  await writeFile(join(dataFolder, 'standby.signal'), '', { mode: 0o644 })
  standby = await startPostgres({ dataFolder, settings })
  silent = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1')
  await new Promise((resolve) => silent.once('listening', resolve))
  const hosts = [`127.0.0.1:${portOf(silent)}`, '127.0.0.1:1', `127.0.0.1:${standby.port}`, `localhost:${primary.port}`]
  url = `postgres://app:${encodeURIComponent('p,s@ß')}@${hosts.join()}/postgres?target_session_attrs=read-write`
}, 240_000)

afterAll(async () => {
  silent.close()
  await Promise.all([primary.stop(), standby.stop()])
  await rm(folder, { recursive: true, force: true })
})

test('lists one address per host', () => {
  expect(addressesOf('postgres://u:p%2C@a:1,[::1]:2,c/db?x=1,2')).toEqual([
    'postgres://u:p%2C@a:1/db?x=1,2',
    'postgres://u:p%2C@[::1]:2/db?x=1,2',
    'postgres://u:p%2C@c/db?x=1,2',
  ])
  expect(addressesOf('postgresql:///db')).toEqual(['postgresql:///db'])
})

test('connects migrations, pools, listeners and loads to the primary', async () => {
  await migrate(url)
  const pool = createPool(url, { name: 'hosts' })
  const { rows } = await pool.query('select pg_is_in_recovery() as standby, inet_server_port() as port')
  expect(rows).toEqual([{ standby: false, port: primary.port }])
  const wakes: true[] = []
  const listener = await listenForChanges(url, {
    onWake: () => void wakes.push(true),
    onLost: () => undefined,
    applicationName: 'hosts',
  })
  await pool.query('notify keyward_changes')
  await expect.poll(() => wakes.length).toBe(1)
  listener.close()
  expect((await loadFeed(url, { onBatch: () => undefined })).server).not.toBe('')
  await pool.end()
})

test('names each host and the reason for its rejection when none is the primary', async () => {
  const [dead, reading] = ['127.0.0.1:1', `127.0.0.1:${standby.port}`]
  const pool = createPool(`postgres://app:${encodeURIComponent('p,s@ß')}@${dead},${reading}/postgres`, { name: 'none' })
  await expect(pool.query('select 1')).rejects.toThrow(
    `No host of the database address is a primary: 127.0.0.1:1 connect ECONNREFUSED 127.0.0.1:1; ${reading} is a standby`,
  )
  await pool.end()
  const single = createPool(`${standby.url}?target_session_attrs=read-write`, { name: 'single' })
  await expect(single.query('select 1')).rejects.toThrow('is a standby')
  await single.end()
})

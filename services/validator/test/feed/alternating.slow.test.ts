/** Tests the connections of the change feed during a failover, while a proxy passes new connections to two servers in turn. */

import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { migrate } from '@keyward/database/migrate'
import { type RunningPostgres, startPostgres } from '@keyward/embedded-postgres'
import { onServer } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { PostgresSource } from '../../src/feed/postgres-source.ts'

const VALIDATOR = '01890000-0000-7000-8000-000000000000'

let folder: string
let primary: RunningPostgres
let standby: RunningPostgres
let proxy: Server
let url: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keyward-alternating-'))
  const dataFolder = join(folder, 'primary')
  primary = await startPostgres({ dataFolder, settings: { fsync: 'off' } })
  await migrate(primary.url)
  standby = await startPostgres({ dataFolder: join(folder, 'standby') })
  // Both servers accept the same login.
  const { password } = new URL(primary.url)
  await onServer(standby.url, (client) => client.query(`alter role postgres password '${password}'`))
  await standby.stop()
  await writeFile(join(folder, 'standby.password'), `${password}\n`)
  await writeFile(join(folder, 'standby', 'standby.signal'), '')
  const ports: number[] = []
  let turn = 0
  proxy = createServer((socket) => {
    const server = connect(ports[turn++ % ports.length] ?? 0, '127.0.0.1')
    for (const [from, to] of [
      [socket, server],
      [server, socket],
    ] as const) {
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
      from.pipe(to)
    }
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  standby = await startPostgres({ dataFolder: join(folder, 'standby') })
  ports.push(standby.port, primary.port)
  const address = proxy.address()
  const changed = new URL(primary.url)
  changed.port = String(typeof address === 'object' ? address?.port : 0)
  url = changed.href
}, 240_000)
afterAll(async () => {
  proxy.close()
  await Promise.all([primary.stop(), standby.stop()])
  await rm(folder, { recursive: true, force: true })
})

test('follows the primary after a few attempts, although every other connection reaches a standby', async () => {
  const source = new PostgresSource(url, VALIDATOR, () => undefined)
  const attempt = async (): Promise<string> => {
    try {
      const connection = await source.connect(
        () => undefined,
        () => undefined,
        1_500,
      )
      const { identity } = await connection.identify()
      connection.close()
      return identity
    } catch {
      return ''
    }
  }
  const identities = [await attempt(), await attempt(), await attempt()]
  expect(identities.some((identity) => identity !== '')).toBe(true)
})

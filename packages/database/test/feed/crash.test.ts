import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type RunningPostgres, startPostgres } from '@keyward/embedded-postgres'
import { insertOrganization } from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { loadFeed, readFeed } from '../../src/index.ts'
import { migrate } from '../../src/migrate.ts'

// Its own server, since it is stopped and crashed here.
let folder: string
let postgres: RunningPostgres

const start = async () => {
  postgres = await startPostgres({ dataFolder: join(folder, 'data') })
}
const joined = () => loadFeed(postgres.url, { onBatch: () => undefined })

async function onServer<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: postgres.url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keyward-crash-'))
  await start()
  await migrate(postgres.url)
})

beforeEach(async () => {
  await onServer(insertOrganization)
})

afterAll(async () => {
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
})

test('continues from the snapshot after an orderly restart', async () => {
  const before = await joined()
  await onServer(insertOrganization)
  await postgres.stop()
  await start()
  await onServer(async (client) => {
    const reading = await readFeed(client, before.snapshot)
    expect(reading).toMatchObject({ behind: false, changes: [{ entity: 'organization' }] })
  })
  expect((await joined()).server).toBe(before.server)
})

test('reports another log after a crash, because the ids of lost transactions may be assigned again', async () => {
  const before = await joined()
  // Seen by a reader, but not on disk: neither a roll-back nor such a commit waits for it.
  const seen = await onServer(async (client) => {
    await client.query('set synchronous_commit = off')
    for (let i = 0; i < 5; i++) await client.query('begin; select pg_current_xact_id(); rollback')
    await insertOrganization(client)
    const reading = await readFeed(client, before.snapshot)
    process.kill(postgres.pid, 'SIGQUIT') // an immediate shutdown: the same as a crash for what was not written
    return reading
  })
  expect(seen.changes).toHaveLength(1)
  await postgres.ended
  await start()
  const after = await joined()
  expect(after.server).not.toBe(before.server)
  expect((await joined()).server).toBe(after.server)
})

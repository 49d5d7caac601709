import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type RunningPostgres, startPostgres } from '@keyward/embedded-postgres'
import { insertOrganization } from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { lastPublished, loadFeed, mayContinue, noteValidator, readFeed, uuidv7 } from '../../src/index.ts'
import { migrate } from '../../src/migrate.ts'

// These tests stop and crash a separate server.
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

test('a reader continues from its snapshot after an orderly restart of Postgres', async () => {
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

test('reports another log after a crash of Postgres, and continues from the last heartbeat', async () => {
  const before = await joined()
  const heartbeat = { id: uuidv7(), name: 'v', ready: true }
  const note = (client: pg.Client, applied: string, server: string) =>
    noteValidator(client, { ...heartbeat, applied, details: { server } })
  await onServer((client) => note(client, before.snapshot, before.server))
  // A reader reads these transactions before they are on disk, because rollbacks and asynchronous commits do not wait for the disk.
  const seen = await onServer(async (client) => {
    await client.query('set synchronous_commit = off')
    for (let i = 0; i < 5; i++) await client.query('begin; select pg_current_xact_id(); rollback')
    await insertOrganization(client)
    const reading = await readFeed(client, before.snapshot)
    // A commit that waits for the disk would also write the earlier transactions to disk, so no such commit follows.
    expect(await lastPublished(client, heartbeat.id)).toBe(before.snapshot)
    process.kill(postgres.pid, 'SIGQUIT') // an immediate shutdown, which loses unwritten data like a crash
    return reading
  })
  expect(seen.changes).toHaveLength(1)
  await postgres.ended
  await start()
  const after = await joined()
  expect(after.server).not.toBe(before.server)
  expect((await joined()).server).toBe(after.server)

  // If the heartbeat has survived the crash, the server's history contains the validator's history up to the heartbeat. The log is kept.
  expect(mayContinue(before.server, after.server)).toBe(true)
  await onServer(async (client) => {
    expect([before.snapshot, null]).toContain(await lastPublished(client, heartbeat.id))
    expect((await readFeed(client, before.snapshot)).behind).toBe(false)
    await note(client, '1:900000:', before.server)
    expect([before.snapshot, null]).toContain(await lastPublished(client, heartbeat.id))
    await note(client, after.snapshot, after.server)
    expect(await lastPublished(client, heartbeat.id)).toBe(after.snapshot)
    await note(client, '1:900000:', before.server)
    expect(await lastPublished(client, heartbeat.id)).toBe(after.snapshot)
  })
})

test('distinguishes a common history from another server and from a restored backup', () => {
  expect(mayContinue('1/2/3/run/0001', '1/2/3/other/0002')).toBe(true)
  for (const after of ['9/2/3/run/0001', '1/9/3/run/0001', '1/2/9/run/0001', '1/2/3/run other/0001'])
    expect(mayContinue('1/2/3/run/0001', after), after).toBe(false)
  expect(mayContinue('/2/3/run/0001', '/2/3/other/0002')).toBe(false)
})

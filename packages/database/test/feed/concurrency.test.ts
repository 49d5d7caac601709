import { setTimeout as sleep } from 'node:timers/promises'

import { createTestDatabase, insertOrganization, random, type TestDatabase } from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { bytesToUuid, loadFeed, pruneFeed, readFeed, uuidv7 } from '../../src/index.ts'

const WRITERS = 16
const ROUNDS = process.env['KEYWARD_LONG'] === '1' ? 400 : 40

let database: TestDatabase
let organizationId: string

beforeAll(async () => {
  database = await createTestDatabase()
  organizationId = await insertOrganization(database.pool)
})

afterAll(() => database.drop())

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

async function insertProduct(client: pg.Client, id: string): Promise<void> {
  await client.query(`insert into products (id, organization_id, name) values ($1, $2, 'x')`, [id, organizationId])
}

/**
 * Writes products in transactions that commit or roll back, in whole or in part. Adds the committed ids to `committed`.
 */
async function write(seed: number, committed: Set<string>): Promise<void> {
  const { chance, int } = random(seed)
  const client = await connected(database.url)
  for (let round = 0; round < ROUNDS; round++) {
    const kept: string[] = []
    await client.query('begin')
    for (let i = int(3); i >= 0; i--) {
      const id = uuidv7()
      const aside = chance(0.3)
      if (aside) await client.query('savepoint s')
      await insertProduct(client, id)
      if (aside && chance(0.5)) await client.query('rollback to savepoint s')
      else kept.push(id)
    }
    if (chance(0.3)) await sleep(int(8))
    if (chance(0.25)) {
      await client.query('rollback')
    } else {
      await client.query('commit')
      for (const id of kept) committed.add(id)
    }
  }
  await client.end()
}

test('reads every committed change exactly once under 16 writers, rollbacks, savepoints and a long transaction', async () => {
  const seed = 20_261_120
  const reader = await connected(database.validatorUrl)
  let { snapshot } = await loadFeed(database.validatorUrl, { onBatch: () => undefined })
  const seen = new Map<string, number>()
  const read = async (): Promise<void> => {
    const reading = await readFeed(reader, snapshot)
    expect(reading.behind).toBe(false)
    for (const change of reading.changes) {
      if (change.entity !== 'product' || change.row === null) throw new Error(`unexpected ${change.entity}`)
      const id = bytesToUuid(change.id)
      seen.set(id, (seen.get(id) ?? 0) + 1)
    }
    snapshot = reading.snapshot
  }

  const committed = new Set<string>()
  const long = await connected(database.url)
  const late = uuidv7()
  await long.query('begin')
  await insertProduct(long, late)
  const writing = { done: false }
  const writers = Promise.all(Array.from({ length: WRITERS }, (_, i) => write(seed + i, committed)))
  const finished = writers.finally(() => (writing.done = true))
  while (!writing.done) {
    await read()
    await pruneFeed(database.pool, 1_000)
  }
  await finished
  await read()
  const uncommitted = [...seen.keys()].filter((id) => !committed.has(id))
  const lost = [...committed].filter((id) => !seen.has(id))
  expect({ uncommitted, lost }).toEqual({ uncommitted: [], lost: [] })
  await long.query('commit')
  await read()
  expect(seen.get(late)).toBe(1)
  expect([...seen.values()].filter((times) => times !== 1)).toEqual([])
  expect(committed.size).toBeGreaterThan(WRITERS * ROUNDS * 0.5)
  await Promise.all([long.end(), reader.end()])
})

test('reads every change when the connection of the reader is killed repeatedly', async () => {
  const writer = await connected(database.url)
  let reader = await connected(database.validatorUrl)
  let { snapshot } = await loadFeed(database.validatorUrl, { onBatch: () => undefined })
  const seen: string[] = []
  const written: string[] = []
  for (let i = 0; i < 40; i++) {
    const { rows } = await reader.query<{ pid: number }>('select pg_backend_pid() as pid')
    const reading = readFeed(reader, snapshot).catch(() => null)
    if (i % 4 === 1) {
      const killed = await writer.query('select where pg_terminate_backend($1)', [rows[0]?.pid])
      if (killed.rowCount !== 1) throw new Error('The connection of the reader was not found')
    }
    const id = uuidv7()
    await insertProduct(writer, id)
    written.push(id)
    const read = await reading
    if (read !== null) {
      snapshot = read.snapshot
      for (const change of read.changes) if (change.entity === 'product') seen.push(bytesToUuid(change.id))
    }
    if (i % 4 === 1) {
      await reader.end().catch(() => undefined)
      reader = await connected(database.validatorUrl)
    }
  }
  for (const change of (await readFeed(reader, snapshot)).changes)
    if (change.entity === 'product') seen.push(bytesToUuid(change.id))
  expect(seen.toSorted()).toEqual(written.toSorted())
  await Promise.all([writer.end(), reader.end()])
})

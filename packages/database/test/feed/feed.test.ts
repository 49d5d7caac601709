import {
  createTestDatabase,
  insertApiKey,
  insertLicense,
  insertMachine,
  insertOrganization,
  insertRule,
  insertSigningKey,
  type TestDatabase,
} from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { bytesToUuid, type FeedChange, loadFeed, pruneFeed, readFeed, uuidToBytes } from '../../src/index.ts'

let database: TestDatabase
let reader: pg.Client
let snapshot: string

beforeAll(async () => {
  database = await createTestDatabase()
  reader = new pg.Client({ connectionString: database.validatorUrl })
  await reader.connect()
})

afterAll(async () => {
  await reader.end()
  await database.drop()
})

beforeEach(async () => {
  snapshot = (await loadFeed(database.validatorUrl, { onBatch: () => undefined })).snapshot
})

async function read(): Promise<FeedChange[]> {
  const reading = await readFeed(reader, snapshot)
  expect(reading.behind).toBe(false)
  snapshot = reading.snapshot
  return reading.changes
}

/** Reads changes as short texts, which keep expectations short. */
async function readNames(): Promise<string[]> {
  return (await read()).map(nameOf).toSorted((a, b) => a.localeCompare(b))
}

function nameOf(change: FeedChange): string {
  if (change.entity === 'machine') {
    const machine = Buffer.from(change.machineId).toString()
    return `machine ${machine} ${change.held ? 'held' : 'gone'} ${change.used}`
  }
  return change.row === null ? `${change.entity} gone` : change.entity
}

async function sql(text: string, values: unknown[] = []): Promise<void> {
  await database.pool.query(text, values)
}

describe('loadFeed', () => {
  test('loads every entity as it is stored, and readFeed yields the same rows', async () => {
    const organizationId = await insertOrganization(database.pool)
    const expiresAt = new Date(Date.UTC(2030, 1, 2, 3, 4, 5, 678))
    const license = await insertLicense(database.pool, { organizationId, key: 'é-1', maxMachines: null, expiresAt })
    await insertLicense(database.pool, { organizationId, status: 'suspended' })
    await insertApiKey(database.pool, { organizationId, expiresAt })
    await insertApiKey(database.pool, { organizationId, kind: 'MANAGEMENT_TOKEN' })
    await insertSigningKey(database.pool, { organizationId })
    await insertMachine(database.pool, { licenseId: license.id, machineId: Buffer.from([0, 255, 10]) })
    await insertRule(database.pool, { organizationId, value: '10.0.0.0/8', licenseId: license.id, expiresAt })
    await insertRule(database.pool, { organizationId, type: 'CUSTOMER', value: license.customerId })
    const excluded = {
      organizationId,
      kind: 'EXCLUSION',
      type: 'HWID',
      value: 'm',
      allowSuspendedOrExpired: true,
    } as const
    await insertRule(database.pool, { ...excluded, productId: license.productId })

    const loaded: FeedChange[] = []
    await loadFeed(database.validatorUrl, { onBatch: (changes) => void loaded.push(...changes) })
    const changes = await read()
    const order = (list: FeedChange[]) => list.map(plain).toSorted((a, b) => a.localeCompare(b))
    // In a load, only the license contains the number of taken slots.
    const asLoaded = changes.map((change) => (change.entity === 'machine' ? { ...change, used: null } : change))
    expect(order(asLoaded)).toEqual(order(loaded))
    expect(changes).toHaveLength(13)
    const found = changes.find((change) => change.entity === 'license' && bytesToUuid(change.id) === license.id)
    expect(found?.entity === 'license' && found.row).toMatchObject({
      key: Uint8Array.from(Buffer.from('é-1')),
      expiresAtMs: expiresAt.getTime(),
      maxMachines: null,
      used: 1,
      status: 'active',
    })
  })

  test('loadFeed delivers one batch at a time, and rejects when the consumer fails', async () => {
    let working = 0
    const onBatch = async () => {
      expect(++working).toBe(1)
      await new Promise((resolve) => setImmediate(resolve))
      working--
    }
    const joined = await loadFeed(database.validatorUrl, { onBatch })
    expect(joined.rows).toBeGreaterThan(10)
    const failing = loadFeed(database.validatorUrl, {
      onBatch: () => {
        throw new Error('the consumer failed')
      },
    })
    await expect(failing).rejects.toThrow('the consumer failed')
  })
})

describe('the change log', () => {
  test('logs only changes that a verdict depends on', async () => {
    const organizationId = await insertOrganization(database.pool)
    const license = await insertLicense(database.pool, { organizationId })
    const ruleId = await insertRule(database.pool, { organizationId, value: '1.2.3.4' })
    await insertMachine(database.pool, { licenseId: license.id, machineId: 'a' })
    await insertApiKey(database.pool, { organizationId, kind: 'MANAGEMENT_TOKEN' })
    await read()
    await sql(`update organizations set plan = 'FREE', name = 'x'`)
    await sql(`update licenses set metadata = '{"a":1}', updated_at = now()`)
    await sql(`update access_rules set note = 'x', updated_at = now()`)
    await sql(`update access_rule_counters set match_count = 5, last_matched_at = now()`)
    await sql(`update machines set last_seen_at = now(), hostname = 'h'`)
    await sql(`update credentials set revoked_at = now() where kind = 'MANAGEMENT_TOKEN'`)
    expect(await readNames()).toEqual([])
    await sql(`update licenses set status = 'suspended' where id = $1`, [license.id])
    await sql(`update access_rules set expires_at = now() where id = $1`, [ruleId])
    expect(await readNames()).toEqual(['license', 'rule'])
    await sql(`update licenses set status = 'suspended' where id = $1`, [license.id])
    expect(await readNames()).toEqual([])
  })

  test('logs the rows to which the deletion of a license or organization cascades', async () => {
    const organizationId = await insertOrganization(database.pool)
    const license = await insertLicense(database.pool, { organizationId })
    await insertRule(database.pool, { organizationId, value: '1.2.3.4', licenseId: license.id })
    await insertMachine(database.pool, { licenseId: license.id, machineId: 'a' })
    await insertApiKey(database.pool, { organizationId })
    await read()
    await sql('delete from licenses where id = $1', [license.id])
    expect(await readNames()).toEqual(['license gone', 'machine a gone 0', 'rule gone'])
    await sql('delete from organizations where id = $1', [organizationId])
    expect(await readNames()).toEqual(['credential gone', 'customer gone', 'organization gone', 'product gone'])
  })

  test('delivers machines with the number of taken slots of their license', async () => {
    const organizationId = await insertOrganization(database.pool)
    const license = await insertLicense(database.pool, { organizationId })
    await read()
    await insertMachine(database.pool, { licenseId: license.id, machineId: 'a' })
    await insertMachine(database.pool, { licenseId: license.id, machineId: 'b' })
    expect(await readNames()).toEqual(['machine a held 2', 'machine b held 2'])
    await sql('delete from machines where license_id = $1 and machine_id = $2', [license.id, Buffer.from('a')])
    expect(await readNames()).toEqual(['machine a gone 1'])
    await expect(sql(`update machines set machine_id = 'c' where license_id = $1`, [license.id])).rejects.toThrow(
      /keeps/,
    )
  })

  test('delivers a status that a later version has stored', async () => {
    const organizationId = await insertOrganization(database.pool)
    const license = await insertLicense(database.pool, { organizationId })
    await read()
    await sql('alter table licenses drop constraint licenses_status_check')
    await sql(`update licenses set status = 'frozen' where id = $1`, [license.id])
    expect(await read()).toMatchObject([{ entity: 'license', row: { status: 'frozen' } }])
  })

  test('logs no change that was rolled back, in whole or in part', async () => {
    const client = await database.pool.connect()
    await client.query('begin')
    await insertOrganization(client)
    await client.query('savepoint a')
    await insertOrganization(client)
    await client.query('rollback to savepoint a')
    expect(await readNames()).toEqual([])
    await client.query('commit')
    expect(await readNames()).toEqual(['organization'])
    await client.query('begin')
    await insertOrganization(client)
    await client.query('rollback')
    client.release()
    expect(await readNames()).toEqual([])
  })
})

describe('a reader that has fallen behind', () => {
  test('reports pruned unread entries as `behind`, and organizations with too many changes as `large`', async () => {
    const old = snapshot
    await insertOrganization(database.pool)
    await pruneFeed(reader) // records a snapshot
    await sql(`update feed_marks set at = at - interval '2 hours'`)
    // The reader's position must be after that snapshot, which includes transactions of all databases of the server.
    await read()
    expect(await pruneFeed(reader)).toBeGreaterThan(0)
    expect((await readFeed(reader, old)).behind).toBe(true)
    expect(await readNames()).toEqual([])
    await insertOrganization(database.pool)
    await insertOrganization(database.pool)
    const tooMany = await readFeed(reader, snapshot, { maxChanges: 1 })
    expect(tooMany).toMatchObject({ behind: false, changes: [] })
    const { large } = tooMany
    expect(large).toHaveLength(2)
    expect(await readFeed(reader, snapshot, { maxChanges: 1, except: large })).toMatchObject({ large: [], changes: [] })
    expect(await readNames()).toEqual(['organization', 'organization'])
    const { rows } = await database.pool.query('select from change_log')
    expect(rows).toHaveLength(2)
    await pruneFeed(reader, 60_000)
    expect(await readNames()).toEqual([])
  })

  test('changes_after fetches at most the given number of entries from a longer log', async () => {
    const { snapshot: before } = await readFeed(reader, snapshot)
    await sql(
      `insert into change_log (entity, id, organization_id) select 'L', gen_random_uuid(), new_id() from generate_series(1, 200)`,
    )
    const fetched = async (): Promise<number> => {
      await reader.query('select pg_stat_force_next_flush()')
      const { rows } = await database.pool.query<{ count: string }>(
        `select idx_tup_fetch + seq_tup_read as count from pg_stat_user_tables where relname = 'change_log'`,
      )
      return Number(rows[0]?.count)
    }
    const fetchedBefore = await fetched()
    const { rows } = await reader.query(`select from changes_after($1, '{}', 40)`, [before])
    expect(rows).toHaveLength(40)
    expect((await fetched()) - fetchedBefore).toBeLessThanOrEqual(40)
  })

  test('returns an organization as `large` if its rows have too many entries', async () => {
    const organizationId = await insertOrganization(database.pool)
    const license = await insertLicense(database.pool, { organizationId, maxMachines: 1 })
    const { snapshot: before } = await readFeed(reader, snapshot)
    for (let i = 2; i < 8; i++)
      await database.pool.query('update licenses set max_machines = $2 where id = $1', [license.id, i])
    expect((await readFeed(reader, before, { maxChanges: 2 })).changes).toHaveLength(1)
    const { large, changes } = await readFeed(reader, before, { maxChanges: 1 })
    expect([changes, large.map((id) => bytesToUuid(id))]).toEqual([[], [organizationId]])
  })

  test('prunes a long log in several transactions', async () => {
    for (let i = 0; i < 10; i++) await insertOrganization(database.pool)
    expect(await pruneFeed(database.pool, 0, 3)).toBeGreaterThanOrEqual(10)
    expect((await database.pool.query('select from change_log')).rows).toEqual([])
  })

  test('reads the rows that TRUNCATE removes as deletions', async () => {
    const organizationId = await insertOrganization(database.pool)
    const license = await insertLicense(database.pool, { organizationId, maxMachines: 2 })
    await insertMachine(database.pool, { licenseId: license.id, machineId: Buffer.from('held') })
    await readNames()
    await sql('truncate machines')
    const removed = await read()
    expect(removed.map(nameOf)).toContain('machine held gone 0')
    expect(removed.every((change) => change.entity === 'machine' && !change.held && change.used === 0)).toBe(true)
    await sql('truncate licenses cascade')
    const { behind, changes } = await readFeed(reader, snapshot)
    expect(behind).toBe(false)
    const removedIds = changes.flatMap((change) =>
      'row' in change && change.row === null ? [bytesToUuid(change.id)] : [],
    )
    expect(removedIds).toContain(license.id)
  })

  test('returns the number of requested reloads and continues to read the log', async () => {
    const before = await readFeed(reader, snapshot)
    const open = await database.pool.connect()
    await open.query('begin; select pg_current_xact_id()')
    const client = await database.pool.connect()
    await client.query('begin; select void_change_log()')
    await insertOrganization(database.pool)
    expect((await readFeed(reader, snapshot)).reloads).toBe(before.reloads)
    await client.query('commit')
    client.release()
    const after = await readFeed(reader, snapshot)
    expect(after).toMatchObject({ behind: false, reloads: before.reloads + 1, changes: [{ entity: 'organization' }] })
    expect((await loadFeed(database.validatorUrl, { onBatch: () => undefined })).reloads).toBe(after.reloads)
    await open.query('commit')
    open.release()
  })

  test('reads other rows in addition to the changes', async () => {
    const organizationId = await insertOrganization(database.pool)
    const license = await insertLicense(database.pool, { organizationId, maxMachines: 2 })
    await readNames()
    await sql(`update licenses set status = 'suspended' where id = $1`, [license.id])
    const [id, gone] = [uuidToBytes(license.id), new Uint8Array(16).fill(7)]
    const { changes } = await readFeed(reader, snapshot, {
      also: [
        { entity: 'license', id, machineId: null },
        { entity: 'rule', id: gone, machineId: null },
        { entity: 'machine', id, machineId: new TextEncoder().encode('m') },
      ],
    })
    expect(changes).toHaveLength(3)
    expect(changes.find(({ entity }) => entity === 'license')).toMatchObject({ row: { status: 'suspended' } })
    expect(changes.find(({ entity }) => entity === 'rule')).toMatchObject({ row: null })
    expect(changes.find(({ entity }) => entity === 'machine')).toMatchObject({ held: false, used: 0 })
  })

  test('reports `behind` when the log was written by another server', async () => {
    const before = await loadFeed(database.validatorUrl, { onBatch: () => undefined })
    await sql(`update feed_state set server = 'elsewhere'`)
    await insertOrganization(database.pool)
    const after = await loadFeed(database.validatorUrl, { onBatch: () => undefined })
    expect(after.server).toBe(before.server)
    expect((await readFeed(reader, before.snapshot)).behind).toBe(true)
    expect((await readFeed(reader, after.snapshot)).behind).toBe(false)
  })

  test('reports another log for a backup that is restored while readers are connected', async () => {
    const before = await loadFeed(database.validatorUrl, { onBatch: () => undefined })
    await sql('insert into server_run (id) values (gen_random_uuid())')
    const after = await loadFeed(database.validatorUrl, { onBatch: () => undefined })
    expect(after.server).not.toBe(before.server)
    expect((await readFeed(reader, before.snapshot)).behind).toBe(true)
    expect((await loadFeed(database.validatorUrl, { onBatch: () => undefined })).server).toBe(after.server)
  })
})

/** Returns a change as text with bytes in hexadecimal, so that views and buffers can be compared. */
function plain(change: FeedChange): string {
  return JSON.stringify(change, (_, value: unknown) => {
    if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
    if (isBufferJson(value)) return Buffer.from(value.data).toString('hex')
    return value === Infinity ? 'never' : value
  })
}

function isBufferJson(value: unknown): value is { data: number[] } {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer'
}

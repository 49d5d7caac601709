/**
 * Tests terms that start with the first use of a license (docs/api.md#l1): the claims that start a term, concurrent claims,
 * and validators of earlier versions.
 */

import { createTestDatabase, insertLicense, insertOrganization, type TestDatabase } from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Claim, claimSlots, type FeedChange, loadFeed, sqlState, uuidToBytes } from '../../src/index.ts'

let database: TestDatabase
let validator: pg.Pool
let organizationId: string

beforeAll(async () => {
  database = await createTestDatabase()
  validator = new pg.Pool({ connectionString: database.validatorUrl, max: 12 })
  organizationId = await insertOrganization(database.pool)
})
afterAll(async () => {
  await validator.end()
  await database.drop()
})

const unstarted = async (maxMachines: number | null, status: 'active' | 'suspended' = 'active') =>
  (await insertLicense(database.pool, { organizationId, maxMachines, status, durationDays: 30 })).id

const claim = (licenseId: string, machine: string): Claim => ({
  licenseId: uuidToBytes(licenseId),
  machineId: Buffer.from(machine),
  hostname: null,
})

interface Stored {
  expires: number | null
  /** The length of the term in milliseconds. */
  term: number | null
  starts: number
}

async function stored(licenseId: string): Promise<Stored | undefined> {
  const { rows } = await database.pool.query<Stored>(
    `select extract(epoch from expires_at)::float8 * 1000 as expires,
       extract(epoch from expires_at - date_trunc('milliseconds', updated_at))::float8 * 1000 as term,
       (select count(*)::integer from activity where license_id = licenses.id and type = 'TERM_STARTED') as starts
     from licenses where id = $1`,
    [licenseId],
  )
  return rows[0]
}

const DAYS_30 = 30 * 86_400_000

test('concurrent claims start a term once, and all return the same end', async () => {
  const id = await unstarted(1_000)
  const claims = Array.from({ length: 300 }, (_, n) => claim(id, `machine ${n}`))
  const retry = async (batch: Claim[]): Promise<number[]> => {
    const answers = await claimSlots(validator, batch, { patient: true }).catch((error: unknown) => {
      if (sqlState(error) === '55P03') return null
      throw error
    })
    return answers === null
      ? retry(batch)
      : answers.map(({ outcome, expiresAtMs }) => (outcome === 'granted' ? expiresAtMs : -1))
  }
  const batches = Array.from({ length: 10 }, (_, n) => claims.slice(30 * n, 30 * n + 30))
  const ends = (await Promise.all(batches.map(retry))).flat()
  const { expires = null, ...rest } = (await stored(id)) ?? {}
  expect(new Set(ends)).toEqual(new Set([expires]))
  expect(rest).toEqual({ term: DAYS_30, starts: 1 })
})

test('starts a term for a machine that holds a slot, and for an unlimited license with or without a machine id', async () => {
  const [limited, unlimited, recording] = [await unstarted(1), await unstarted(null), await unstarted(null)]
  await database.pool.query(
    `insert into machines (id, license_id, machine_id) values (gen_random_uuid(), $1, 'first')`,
    [limited],
  )
  const answers = await claimSlots(validator, [claim(limited, 'first'), claim(unlimited, ''), claim(recording, 'pc')])
  expect(answers.map(({ outcome }) => outcome)).toEqual(['known', 'started', 'recorded'])
  for (const [i, id] of [limited, unlimited, recording].entries())
    expect(await stored(id)).toEqual({ expires: answers[i]?.expiresAtMs, term: DAYS_30, starts: 1 })
  const again = await claimSlots(validator, [claim(unlimited, '')])
  expect(again).toMatchObject([{ outcome: 'started', expiresAtMs: answers[1]?.expiresAtMs }])
  await database.pool.query(`update licenses set expires_at = now() where id = $1`, [unlimited])
  expect(await claimSlots(validator, [claim(unlimited, '')])).toMatchObject([{ outcome: 'expired' }])
})

test('a claim that does not lead to VALID starts no term', async () => {
  const [full, suspended, limited] = [await unstarted(1), await unstarted(5, 'suspended'), await unstarted(5)]
  await database.pool.query(
    `insert into machines (id, license_id, machine_id) values (gen_random_uuid(), $1, 'first')`,
    [full],
  )
  const answers = await claimSlots(validator, [claim(full, 'other'), claim(suspended, 'pc'), claim(limited, '')])
  expect(answers.map(({ outcome }) => outcome)).toEqual(['limit', 'suspended', 'busy'])
  for (const id of [full, suspended, limited])
    expect(await stored(id)).toEqual({ expires: null, term: null, starts: 0 })
})

test('a claim waits for an uncommitted change of its license only if `patient` is set', async () => {
  const [id, other] = [await unstarted(5), await unstarted(5)]
  const holder = await database.pool.connect()
  await holder.query('begin')
  await holder.query('update licenses set max_machines = 6 where id = $1', [id])
  const answers = await claimSlots(validator, [claim(id, 'a'), claim(other, 'a')])
  expect(answers.map(({ outcome }) => outcome)).toEqual(['busy', 'granted'])
  const patient = claimSlots(validator, [claim(id, 'a')], { patient: true })
  await holder.query('commit')
  holder.release()
  expect(await patient).toMatchObject([{ outcome: 'granted', max: 6 }])
})

test('a validator of an earlier version can neither start a term nor open the change log while an unstarted term exists', async () => {
  const id = await unstarted(5)
  const { rows } = await validator.query<{ outcome: string }>(
    `select outcome from claim_slots($1::uuid[], $2::bytea[], $3::text[], false, '{}')`,
    [[id], [Buffer.from('a')], [null]],
  )
  expect(rows).toEqual([{ outcome: 'busy' }])
  await expect(validator.query("select open_change_log_with('{}')")).rejects.toThrow(/durationDays/)
  await database.pool.query('update licenses set duration_days = null, expires_at = now() where expires_at is null')
  await expect(validator.query("select open_change_log_with('{}')")).resolves.toBeDefined()
})

test('the load delivers -Infinity as the expiry of a license whose term has not started', async () => {
  const id = uuidToBytes(await unstarted(5))
  const changes: FeedChange[] = []
  await loadFeed(database.validatorUrl, { onBatch: (batch) => void changes.push(...batch) })
  const found = changes.find((change) => change.entity === 'license' && Buffer.from(change.id).equals(id))
  expect(found).toMatchObject({ row: { expiresAtMs: -Infinity } })
})

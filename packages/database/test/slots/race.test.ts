import {
  createTestDatabase,
  insertLicense,
  insertOrganization,
  type Random,
  random,
  type TestDatabase,
} from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Claim, type ClaimAnswer, claimSlots, releaseSlots, sqlState, uuidToBytes } from '../../src/index.ts'

const CLAIMANTS = 64
const SLOTS = 5
const ROUNDS = process.env['KEYWARD_LONG'] === '1' ? 200 : 10
const SEED = 4_711

let database: TestDatabase
let validators: pg.Pool
let organizationId: string

beforeAll(async () => {
  database = await createTestDatabase()
  validators = new pg.Pool({ connectionString: database.validatorUrl, max: 16 })
  organizationId = await insertOrganization(database.pool)
})

afterAll(async () => {
  await validators.end()
  await database.drop()
})

const insert = async (maxMachines: number) =>
  uuidToBytes((await insertLicense(database.pool, { organizationId, maxMachines })).id)

/** Repeats a statement while it fails with a lock timeout. */
async function patiently<T>(statement: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await statement()
    } catch (error) {
      if (sqlState(error) !== '55P03') throw error
    }
  }
}

/** Claims like a validator: repeats each busy claim separately, with `patient`. */
async function claimAll(claims: Claim[]): Promise<ClaimAnswer[]> {
  const answers = await claimSlots(validators, claims)
  const settled = answers.map(async (answer, i) => {
    const again = claims[i]
    if (answer.outcome !== 'busy' || again === undefined) return answer
    return (await patiently(() => claimSlots(validators, [again], { patient: true })))[0] ?? answer
  })
  return await Promise.all(settled)
}

/** Releases like a validator: repeats a busy release. */
async function release(licenseId: Uint8Array, name: string): Promise<string | undefined> {
  for (;;) {
    const [answer] = await releaseSlots(validators, [{ licenseId, machineId: Buffer.from(name) }])
    if (answer?.outcome !== 'busy') return answer?.outcome
  }
}

async function held(licenseId: Uint8Array): Promise<Set<string>> {
  const { rows } = await database.pool.query<{ machine: Buffer; used: number }>(
    'select machine_id as machine, used from machines join license_slots using (license_id) where license_id = $1',
    [Buffer.from(licenseId).toString('hex')],
  )
  for (const row of rows) expect(row.used).toBe(rows.length)
  return new Set(rows.map((row) => row.machine.toString()))
}

const machine = (licenseId: Uint8Array, name: string): Claim => ({
  licenseId,
  machineId: Buffer.from(name),
  hostname: null,
})

test(`${CLAIMANTS} claimants in crossing batches take exactly ${SLOTS} of ${SLOTS} slots, as their outcomes state`, async () => {
  const { shuffle, int } = random(SEED)
  for (let round = 0; round < ROUNDS; round++) {
    const licenses = [await insert(SLOTS), await insert(SLOTS), await insert(SLOTS)]
    const batches = Array.from({ length: CLAIMANTS / 4 }, (_, b) =>
      shuffle(
        licenses.flatMap((id) => {
          const mine = Array.from({ length: 4 }, (_unused, i) => machine(id, `m${b * 4 + i}`))
          return [...mine, machine(id, `m${int(CLAIMANTS)}`)] // one that another batch claims, too
        }),
      ),
    )
    const answers = await Promise.all(batches.map(claimAll))
    for (const id of licenses) {
      const holders = await held(id)
      expect(holders.size).toBe(SLOTS)
      batches.forEach((batch, b) =>
        batch.forEach((asked, i) => {
          if (asked.licenseId !== id) return
          const told = answers[b]?.[i]?.outcome ?? 'nothing'
          const has = holders.has(Buffer.from(asked.machineId).toString())
          expect([told === 'granted' || told === 'known', told === 'limit']).toEqual([has, !has])
        }),
      )
    }
  }
})

/** Claims and releases at random. Returns the machines that hold slots at the end. */
async function come(licenseId: Uint8Array, name: string, { chance, int }: Random, turns: number): Promise<Set<string>> {
  const mine = new Set<string>()
  for (let turn = 0; turn < turns; turn++) {
    const names = [`${name}-${int(3)}`, `${name}-${int(3)}`]
    if (chance(0.5)) {
      const answers = await claimAll(names.map((each) => machine(licenseId, each)))
      answers.forEach(({ outcome }, i) => {
        if (outcome === 'granted' || outcome === 'known') mine.add(names[i] ?? '')
      })
    } else {
      const [leaving = ''] = names
      const released = (await release(licenseId, leaving)) === 'released'
      if (released !== mine.delete(leaving)) throw new Error(`the release of ${leaving} returned ${String(released)}`)
    }
  }
  return mine
}

test('machines never exceed the limit while it is raised and lowered during claims and releases', async () => {
  const dice = random(SEED)
  const licenseId = await insert(SLOTS)
  const id = Buffer.from(licenseId).toString('hex')
  const changing = { done: false, changes: 0 }
  const change = async (): Promise<void> => {
    const client = await database.pool.connect()
    while (!changing.done) {
      const limit = 1 + dice.int(8)
      await client.query('begin')
      await client.query('update licenses set max_machines = $1 where id = $2', [limit, id])
      const count = 'select used from license_slots where license_id = $1'
      const before = (await client.query<{ used: number }>(count, [id])).rows[0]?.used ?? -1
      await client.query('commit')
      const after = (await client.query<{ used: number }>(count, [id])).rows[0]?.used ?? -1
      expect(after).toBeLessThanOrEqual(Math.max(limit, before))
      changing.changes++
    }
    client.release()
  }
  const changed = change()
  const claimants = Array.from({ length: 12 }, (_, i) => come(licenseId, `c${i}`, random(SEED + i), ROUNDS * 3))
  const told = await Promise.all(claimants).finally(() => (changing.done = true))
  await changed
  expect(changing.changes).toBeGreaterThan(3)
  expect([...(await held(licenseId))].toSorted()).toEqual(told.flatMap((mine) => Array.from(mine)).toSorted())
})

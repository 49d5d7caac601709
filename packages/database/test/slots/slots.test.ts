import { createTestDatabase, insertLicense, insertOrganization, type TestDatabase } from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { type Claim, claimSlots, loadFeed, readFeed, releaseSlots, sqlState, uuidToBytes } from '../../src/index.ts'

let database: TestDatabase
let validator: pg.Pool
let organizationId: string

beforeAll(async () => {
  database = await createTestDatabase()
  validator = new pg.Pool({ connectionString: database.validatorUrl })
  organizationId = await insertOrganization(database.pool)
})

afterAll(async () => {
  await validator.end()
  await database.drop()
})

async function license(maxMachines: number | null, status: 'active' | 'suspended' | 'revoked' = 'active') {
  return (await insertLicense(database.pool, { organizationId, maxMachines, status })).id
}

const claim = (licenseId: string, machine: string | Uint8Array, hostname: string | null = null): Claim => ({
  licenseId: uuidToBytes(licenseId),
  machineId: Buffer.from(machine),
  hostname,
})

async function outcomes(claims: Claim[]): Promise<string[]> {
  const answers = await claimSlots(validator, claims)
  return answers.map(({ outcome, used, max }) => `${outcome} ${used}/${max}`)
}

async function stored(licenseId: string): Promise<{ used: number; rows: number; unrecorded: number }> {
  const { rows } = await database.pool.query<{ used: number; rows: number; unrecorded: number }>(
    `select used, unrecorded::integer, (select count(*)::integer from machines m where m.license_id = s.license_id) as rows
     from license_slots s where license_id = $1`,
    [licenseId],
  )
  return rows[0] ?? { used: -1, rows: -1, unrecorded: -1 }
}

async function entries(licenseId: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ type: string; machine: Buffer }>(
    'select type, machine_id as machine from activity where license_id = $1 order by id',
    [licenseId],
  )
  return rows.map(({ type, machine }) => `${type} ${machine.toString()}`)
}

describe('claimSlots', () => {
  test('returns the outcomes of several licenses and of repeated claims in the order of the claims', async () => {
    const [two, one, unlimited] = [await license(2), await license(1), await license(null)]
    const suspended = await license(5, 'suspended')
    const revoked = await license(5, 'revoked')
    const nobody = '01912d68-783e-7a03-8467-5661c1243ad4'
    expect(
      await outcomes([
        claim(two, 'a'),
        claim(one, 'x'),
        claim(two, 'a'),
        claim(nobody, 'a'),
        claim(two, 'b'),
        claim(two, 'c'),
        claim(suspended, 'a'),
        claim(revoked, 'a'),
        claim(one, 'y'),
        claim(unlimited, 'u'),
        claim(two, 'c'),
      ]),
    ).toEqual([
      'granted 2/2',
      'granted 1/1',
      'known 2/2',
      'no_license null/null',
      'granted 2/2',
      'limit 2/2',
      'suspended 0/5',
      'revoked 0/5',
      'limit 1/1',
      'recorded 1/null',
      'limit 2/2',
    ])
    expect(await outcomes([claim(two, 'b'), claim(unlimited, 'u')])).toEqual(['known 2/2', 'known 1/null'])
    expect(await stored(two)).toEqual({ used: 2, rows: 2, unrecorded: 0 })
    expect(await stored(suspended)).toEqual({ used: 0, rows: 0, unrecorded: 0 })
    expect((await entries(two)).toSorted()).toEqual(['MACHINE_ACTIVATED a', 'MACHINE_ACTIVATED b'])
    expect(await claimSlots(validator, [])).toEqual([])
  })

  test('accepts any bytes as a machine id and compares them exactly', async () => {
    const id = await license(4)
    const ids = [Buffer.from([0]), Buffer.from([0, 0]), Buffer.from([255, 254]), Buffer.alloc(512, 7)]
    const claims = ids.map((machineId) => claim(id, machineId, 'a\0b'))
    expect(await outcomes(claims)).toEqual(Array(4).fill('granted 4/4'))
    expect(await outcomes(claims)).toEqual(Array(4).fill('known 4/4'))
  })

  test('returns a transaction id that the next snapshot of the feed includes', async () => {
    const id = await license(1)
    const reader = await database.pool.connect()
    const { snapshot } = await loadFeed(database.url, { onBatch: () => undefined })
    const [answer] = await claimSlots(validator, [claim(id, 'a')])
    const reading = await readFeed(reader, snapshot)
    reader.release()
    const { rows } = await database.pool.query<{ before: boolean; after: boolean }>(
      `select pg_visible_in_snapshot($1::xid8, $2::pg_snapshot) as before, pg_visible_in_snapshot($1::xid8, $3::pg_snapshot) as after`,
      [answer?.xid, snapshot, reading.snapshot],
    )
    expect(rows).toEqual([{ before: false, after: true }])
    expect(reading.changes.map((change) => change.entity)).toEqual(['machine'])
  })

  test('a locked row delays no claim of another license, and a patient claim rejects after half a second', async () => {
    const [held, free] = [await license(5), await license(5)]
    const holder = await database.pool.connect()
    await holder.query('begin')
    await holder.query('select from license_slots where license_id = $1 for update', [held])
    expect(await outcomes([claim(held, 'a'), claim(free, 'a')])).toEqual(['busy null/null', 'granted 1/5'])
    await expect(claimSlots(validator, [claim(held, 'a')], { patient: true })).rejects.toMatchObject({ code: '55P03' })
    const claimHeld = () => claimSlots(validator, [claim(held, 'a')], { patient: true })
    const waiting = claimHeld().catch((error: unknown) => {
      if (sqlState(error) !== '55P03') throw error
      return committed.then(claimHeld) // the commit took longer than the claim waits
    })
    const committed = holder.query('commit')
    await committed
    expect(await waiting).toMatchObject([{ outcome: 'granted', used: 1 }])
    // A lock on the row of the license itself delays no claim.
    await holder.query('begin')
    await holder.query('select from licenses where id = $1 for update', [held])
    expect(await outcomes([claim(held, 'b')])).toEqual(['granted 2/5'])
    await holder.query('rollback')
    holder.release()
  })

  test('records up to 10,000 machines of a license without a limit and counts the others', async () => {
    const id = await license(null)
    const machines = (from: number, count: number) => Array.from({ length: count }, (_, i) => claim(id, `m${from + i}`))
    for (let from = 0; from < 9_990; from += 3_330) await claimSlots(validator, machines(from, 3_330))
    const answers = await outcomes(machines(9_985, 20))
    expect(answers).toEqual([
      ...Array<string>(5).fill('known 10000/null'),
      ...Array<string>(10).fill('recorded 10000/null'),
      ...Array<string>(5).fill('capped 10000/null'),
    ])
    expect(await stored(id)).toEqual({ used: 10_000, rows: 10_000, unrecorded: 5 })
  })

  test('grants at most 100,000 slots of a license, whatever its limit, and keeps existing ones', async () => {
    const id = await license(2_147_483_647)
    const client = await database.pool.connect()
    const insert = (from: number, to: number) =>
      client.query(
        `insert into machines (id, license_id, organization_id, machine_id)
         select gen_random_uuid(), $1, $2, convert_to('m' || i, 'UTF8') from generate_series($3::int, $4::int) i`,
        [id, organizationId, from, to],
      )
    // Disables the triggers, which would write an entry of the change log for each machine.
    await client.query('set session_replication_role = replica')
    await insert(1, 99_999)
    await client.query('update license_slots set used = 99999 where license_id = $1', [id])
    await client.query('reset session_replication_role')
    const claims = [claim(id, 'm1'), claim(id, 'new'), claim(id, 'one too many')]
    expect(await outcomes(claims)).toEqual(['known 100000/100000', 'granted 100000/100000', 'limit 100000/100000'])
    await insert(100_000, 100_001)
    const beyond = ['known 100002/100000', 'known 100002/100000', 'limit 100002/100000']
    expect(await outcomes(claims)).toEqual(beyond)
    client.release()
  })
})

describe('releasing', () => {
  const release = async (licenseId: string, ...machines: string[]): Promise<string[]> => {
    const releases = machines.map((name) => ({ licenseId: uuidToBytes(licenseId), machineId: Buffer.from(name) }))
    return (await releaseSlots(validator, releases)).map(({ outcome, used }) => `${outcome} ${used}`)
  }

  test('a release frees the slot once for the next machine', async () => {
    const id = await license(1)
    await outcomes([claim(id, 'a')])
    expect(await release(id, 'b')).toEqual(['unknown null'])
    expect(await release(id, 'a')).toEqual(['released 0'])
    expect(await release(id, 'a')).toEqual(['unknown null'])
    expect(await outcomes([claim(id, 'b'), claim(id, 'a')])).toEqual(['granted 1/1', 'limit 1/1'])
    expect(await entries(id)).toEqual(['MACHINE_ACTIVATED a', 'MACHINE_RELEASED a', 'MACHINE_ACTIVATED b'])
    expect(await release('01912d68-783e-7a03-8467-5661c1243ad4', 'a')).toEqual(['unknown null'])
    expect(await releaseSlots(validator, [])).toEqual([])
  })

  test('returns the outcomes of several licenses and of repeated releases in the order of the releases', async () => {
    const [two, three] = [await license(2), await license(3)]
    await outcomes([claim(two, 'a'), claim(two, 'b'), claim(three, 'a'), claim(three, 'b'), claim(three, 'c')])
    const asked = [
      [three, 'b'],
      [two, 'a'],
      [two, 'x'],
      [three, 'b'],
      [three, 'a'],
    ] as const
    const answers = await releaseSlots(
      validator,
      asked.map(([id, name]) => ({ licenseId: uuidToBytes(id), machineId: Buffer.from(name) })),
    )
    expect(answers.map(({ outcome, used }) => `${outcome} ${used}`)).toEqual([
      'released 1',
      'released 1',
      'unknown null',
      'unknown null',
      'released 1',
    ])
    expect(new Set(answers.flatMap(({ xid }) => xid ?? [])).size).toBe(1)
    expect([await stored(two), await stored(three)]).toMatchObject([
      { used: 1, rows: 1 },
      { used: 1, rows: 1 },
    ])
    expect((await entries(three)).slice(3).toSorted()).toEqual(['MACHINE_RELEASED a', 'MACHINE_RELEASED b'])
  })

  test('reports a locked license as busy and releases the slots of the others', async () => {
    const [locked, free] = [await license(1), await license(1)]
    await outcomes([claim(locked, 'a'), claim(free, 'a')])
    const client = await database.pool.connect()
    try {
      await client.query('begin')
      await client.query('select from license_slots where license_id = $1 for update', [locked])
      const both = [locked, free].map((id) => ({ licenseId: uuidToBytes(id), machineId: Buffer.from('a') }))
      const answers = await releaseSlots(validator, both)
      expect(answers.map(({ outcome }) => outcome)).toEqual(['busy', 'released'])
      // A release for a machine without a slot needs no lock.
      expect(await release(locked, 'b')).toEqual(['unknown null'])
    } finally {
      await client.query('rollback')
      client.release()
    }
    expect(await release(locked, 'a')).toEqual(['released 0'])
  })

  test('writes nothing for machines that hold no slot', async () => {
    const id = await license(1)
    const client = await validator.connect()
    try {
      await client.query('begin')
      await releaseSlots(client, [{ licenseId: uuidToBytes(id), machineId: Buffer.from('a') }])
      const { rows } = await client.query('select pg_current_xact_id_if_assigned() as xid')
      expect(rows).toEqual([{ xid: null }])
      const locks = `select count(*)::int as n from pg_locks
        where pid = pg_backend_pid() and relation = 'license_slots'::regclass and mode = 'RowShareLock'`
      expect((await client.query(locks)).rows).toEqual([{ n: 0 }])
      await client.query('rollback')
    } finally {
      client.release()
    }
  })

  test('keeps the count of slots equal to the number of rows when rows are deleted manually', async () => {
    const id = await license(3)
    await outcomes([claim(id, 'a'), claim(id, 'b'), claim(id, 'c')])
    await database.pool.query(`delete from machines where license_id = $1 and machine_id in ('a', 'b')`, [id])
    expect(await stored(id)).toMatchObject({ used: 1, rows: 1 })
    await database.pool.query('delete from licenses where id = $1', [id])
    expect(await stored(id)).toMatchObject({ used: -1 })
  })
})

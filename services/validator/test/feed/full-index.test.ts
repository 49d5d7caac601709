/** Tests a validator whose index is too small for all rows. */

import { afterAll, beforeAll, expect, test } from 'vitest'

import { configFor, createWorld, matching, send, startValidator, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
let world: World

beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world.database.drop())

/** Inserts organizations. A small index has a capacity of 2,047 organizations. */
const addOrganizations = (count: number): Promise<unknown> =>
  world.database.pool.query(
    `insert into organizations (id, name, plan) select new_id(), 'Filler ' || i, 'FREE' from generate_series(1, $1::int) i`,
    [count],
  )

test('is not ready while rows do not fit, and begins to decide checks only when all rows fit', async () => {
  const { pool, validatorUrl } = world.database
  const license = await world.license({ maxMachines: null })
  await addOrganizations(1_000)
  const serving = await startValidator(configFor(validatorUrl), 'small')
  await serving.loaded
  await addOrganizations(2_000)
  const late = await startValidator(configFor(validatorUrl), 'small')
  const check = (port: number) => send(port, V2, { body: { license: license.key }, secret: world.secret })
  const ready = (port: number) => send(port, '/readyz', { method: 'GET' })
  try {
    await until(async () => (await ready(late.adminPort)).text.includes('full'))
    const reasons = [matching(/^The index is full: \d+ rows do not fit\.$/)]
    expect(await ready(late.adminPort)).toMatchObject({ status: 503, body: { reasons } })
    expect((await check(late.port)).status).toBe(503)
    expect((await check(serving.port)).status).toBe(200)

    for (const sql of ['select 1', 'select void_change_log()']) {
      await pool.query(sql)
      await pool.query(`update licenses set status = 'suspended' where id = $1`, [license.id])
      await until(async () => (await check(serving.port)).text.includes('SUSPENDED'))
      expect(await ready(serving.adminPort)).toMatchObject({ status: 503, body: { reasons } })
      await pool.query(`update licenses set status = 'active' where id = $1`, [license.id])
      await until(async () => (await check(serving.port)).text.includes('VALID'))
    }
    // The heartbeat does not report a snapshot as applied if it contains a change that does not fit.
    const { rows } = await pool.query<{ snapshot: string }>('select pg_current_snapshot()::text as snapshot')
    const applied = await pool.query(
      'select from validators where pg_snapshot_xmax(applied::pg_snapshot) >= pg_snapshot_xmax($1::pg_snapshot)',
      [rows[0]?.snapshot],
    )
    expect(applied.rows).toEqual([])
    expect((await check(late.port)).status).toBe(503)

    await pool.query(`delete from organizations where name like 'Filler %'`)
    await until(async () => (await ready(serving.adminPort)).status === 200)
    await until(async () => (await ready(late.adminPort)).status === 200)
    expect((await check(late.port)).status).toBe(200)
  } finally {
    await Promise.all([serving.close(), late.close()])
  }
})

/** Tests the release of machines by ref through validators (docs/api.md#u2). */

import { insertApiKey, insertMachine } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, until, type World } from '../harness.ts'

const UNKNOWN_REF = '01912d68-783e-7a03-8467-5661c1243ad4'
const RELEASED = '200 {"deactivated":true}'
const NOT_RELEASED = '200 {"deactivated":false}'

let world: World
let validators: RunningValidator[]

beforeAll(async () => {
  world = await createWorld()
  validators = await Promise.all([
    startLoaded(world.database.validatorUrl),
    startLoaded(world.database.validatorUrl, { workers: 2 }),
  ])
})
afterAll(async () => {
  await Promise.all(validators.map((validator) => validator.close()))
  await world.database.drop()
})

const outcomeOf = ({ status, text }: Reply): string =>
  status === 200 ? `${status} ${text}` : `${status} ${/"code":"(\w+)"/.exec(text)?.[1]}`

/** Releases through the validator with this number. Repeats what a busy validator refuses. */
async function release(i: number, licenseKey: string, ref: unknown, secret = world.secret): Promise<string> {
  const request = { body: { licenseKey, ref }, secret }
  let reply = await send(validators[i]!.port, '/api/v1/deactivate', request)
  for (; reply.status === 503;) reply = await send(validators[i]!.port, '/api/v1/deactivate', request)
  return outcomeOf(reply)
}

async function check(i: number, license: string, fingerprint: string): Promise<string> {
  const reply = await send(validators[i]!.port, '/api/v2/license/validate', {
    body: { license, fingerprint },
    secret: world.secret,
  })
  return /"code":"(\w+)"/.exec(reply.text)?.[1] ?? reply.text
}

interface Given {
  maxReleases?: number | null
  leaseSeconds?: number
  status?: 'suspended'
  machines?: readonly string[]
}

/** Creates a license whose slots are all taken, and waits until both validators have loaded it. */
async function taken({ maxReleases = 5, machines = ['a', 'b'], ...given }: Given = {}) {
  const license = await world.license({ ...given, maxMachines: machines.length })
  await world.database.pool.query('update licenses set max_releases = $2 where id = $1', [license.id, maxReleases])
  const refs: string[] = []
  for (const machineId of machines)
    refs.push(await insertMachine(world.database.pool, { licenseId: license.id, machineId }))
  const expected = given.status === undefined ? 'TOO_MANY_MACHINES' : 'SUSPENDED'
  for (const i of [0, 1]) await until(async () => (await check(i, license.key, 'new')) === expected)
  return { ...license, refs }
}

test('releases a machine by ref once, and frees its slot at once on the same validator', async () => {
  const { key, refs } = await taken()
  expect(await release(0, key, refs[0])).toBe(RELEASED)
  expect(await check(0, key, 'new')).toBe('VALID')
  for (const i of [0, 1]) expect(await release(i, key, refs[0])).toBe(NOT_RELEASED)
  expect(await check(0, key, 'b')).toBe('VALID')
  await until(async () => (await check(1, key, 'a')) === 'TOO_MANY_MACHINES')
  expect(await release(1, key.toLowerCase(), refs[1])).toBe(NOT_RELEASED)
  expect(await release(1, key, refs[1]?.toUpperCase())).toBe(RELEASED)
})

test('releases one slot for concurrent requests with one ref through two validators', async () => {
  const { id, key, refs } = await taken()
  const replies = await Promise.all(Array.from({ length: 12 }, (_, i) => release(i % 2, key, refs[0])))
  expect(replies.filter((reply) => reply === RELEASED)).toHaveLength(1)
  expect(replies.filter((reply) => reply === NOT_RELEASED)).toHaveLength(11)
  const { rows } = await world.database.pool.query('select used from license_slots where license_id = $1', [id])
  expect(rows).toEqual([{ used: 1 }])
})

test('returns the same response for refs of other licenses and for unknown refs, keys and products', async () => {
  const { key, refs, productId } = await taken()
  const other = await taken()
  for (const ref of [other.refs[0], UNKNOWN_REF]) expect(await release(0, key, ref)).toBe(NOT_RELEASED)
  expect(await release(0, 'no such key', refs[0])).toBe(NOT_RELEASED)
  const foreign = await createWorld(world.database)
  const bound = await insertApiKey(world.database.pool, {
    organizationId: world.organizationId,
    productId: other.productId,
  })
  const own = await insertApiKey(world.database.pool, { organizationId: world.organizationId, productId })
  for (const { secret } of [foreign, bound, own])
    await until(async () => (await release(0, 'no such key', UNKNOWN_REF, secret)) === NOT_RELEASED)
  for (const { secret } of [foreign, bound])
    for (const ref of [refs[0], UNKNOWN_REF]) expect(await release(0, key, ref, secret)).toBe(NOT_RELEASED)
  expect(await release(0, key, refs[0], own.secret)).toBe(RELEASED)
})

test('releases by ref only as many slots as the license allows, whatever its status', async () => {
  const { key, refs } = await taken({ maxReleases: 1, status: 'suspended' })
  expect(await release(0, key, refs[0])).toBe(RELEASED)
  expect(await release(1, key, refs[1])).toBe(NOT_RELEASED)
})

test('returns 403 without a limit of releases and without leases', async () => {
  const off = await taken({ maxReleases: null })
  for (const ref of [off.refs[0], UNKNOWN_REF]) expect(await release(0, off.key, ref)).toBe('403 NOT_ENABLED')
  const leased = await taken({ maxReleases: null, leaseSeconds: 600 })
  expect(await release(0, leased.key, leased.refs[0])).toBe(RELEASED)
})

test('keeps the slot of a file, and reads a ref only without a machine id', async () => {
  const { id, key, refs } = await taken({ machines: ['a', 'b', 'c'] })
  const { pool } = world.database
  await pool.query(`update machines set file_ends_at = now() + interval '1 hour' where id = $1`, [refs[0]])
  expect(await release(0, key, refs[0])).toBe(NOT_RELEASED)
  const deactivate = async (body: object): Promise<string> =>
    outcomeOf(await send(validators[0]!.port, '/api/v1/deactivate', { body, secret: world.secret }))
  expect(await deactivate({ licenseKey: key, fingerprint: 'b', ref: refs[2] })).toBe(RELEASED)
  expect(await deactivate({ licenseKey: key, fingerprint: '', ref: refs[2] })).toBe(RELEASED)
  const { rows } = await pool.query('select id from machines where license_id = $1', [id])
  expect(rows).toEqual([{ id: refs[0] }])
  for (const ref of ['', 'x', 7, null, undefined, `${UNKNOWN_REF}0`])
    expect(await release(0, key, ref)).toBe('422 INVALID_REQUEST')
})

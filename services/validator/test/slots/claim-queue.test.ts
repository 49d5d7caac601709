import { setTimeout as sleep } from 'node:timers/promises'

import { uuidToBytes } from '@keyward/database'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { type Claim, ClaimQueue } from '../../src/slots/claim-queue.ts'
import { PostgresSlots } from '../../src/slots/postgres-slots.ts'
import { createWorld, type World } from '../harness.ts'

let world: World
let slots: PostgresSlots
let batches: number[]
let errors: unknown[]
let queue: ClaimQueue

beforeAll(async () => {
  world = await createWorld()
  slots = new PostgresSlots(world.database.validatorUrl, () => undefined)
  queue = new ClaimQueue({
    executor: slots,
    limitMs: 60_000,
    onBatch: (size) => batches.push(size),
    onError: (error) => errors.push(error),
  })
})
afterAll(async () => {
  queue.close()
  await slots.close()
  await world.database.drop()
})

const claim = (licenseId: string, machine: string): Claim => ({
  organization: 1,
  licenseId: uuidToBytes(licenseId),
  machineId: Buffer.from(machine),
  hostname: null,
  isRecheck: false,
  lease: null,
})

function claimAll(claims: readonly Claim[]): Promise<(string | null)[]> {
  batches = []
  errors = []
  return Promise.all(
    claims.map(
      (one) => new Promise<string | null>((resolve) => queue.claim(one, (result) => resolve(result?.outcome ?? null))),
    ),
  )
}

test('executes the claims of one window for many licenses as one statement', async () => {
  const licenses = await Promise.all(Array.from({ length: 10 }, () => world.license({ maxMachines: 3 })))
  const outcomes = await claimAll(licenses.flatMap(({ id }) => ['a', 'b', 'c', 'd'].map((name) => claim(id, name))))
  expect(batches).toEqual([40])
  expect(outcomes.filter((outcome) => outcome === 'granted')).toHaveLength(30)
  expect(outcomes.filter((outcome) => outcome === 'limit')).toHaveLength(10)
})

test('treats claims of the same machine and license as one claim', async () => {
  const { id } = await world.license({ maxMachines: 1 })
  expect(await claimAll([claim(id, 'a'), claim(id, 'a'), claim(id, 'a')])).toEqual(['granted', 'granted', 'granted'])
  expect(batches).toEqual([1])
  expect(await claimAll([claim(id, 'a'), claim(id, 'b')])).toEqual(['known', 'limit'])
})

test('returns null for a claim that Postgres rejects, and grants the other claims of the batch', async () => {
  const { id } = await world.license({ maxMachines: 100 })
  const claims = Array.from({ length: 20 }, (_, i) => claim(id, i === 13 ? 'x'.repeat(513) : `machine ${i}`))
  const outcomes = await claimAll(claims)
  expect(outcomes).toEqual(claims.map((_, i) => (i === 13 ? null : 'granted')))
  expect(errors.length).toBeGreaterThan(1)
  expect(errors.every((error) => !slots.isHopeless(error))).toBe(true)
})

test('rejects claims of unknown, suspended and revoked licenses', async () => {
  const suspended = await world.license({ status: 'suspended' })
  const revoked = await world.license({ status: 'revoked' })
  const unknown = '0190d9c0-0000-7000-8000-000000000000'
  const outcomes = await claimAll([suspended.id, revoked.id, unknown].map((id) => claim(id, 'm')))
  expect(outcomes).toEqual(['suspended', 'revoked', 'no_license'])
})

test('distinguishes an unavailable server from rejected data', () => {
  const withCode = (code?: string): Error => Object.assign(new Error('no'), code === undefined ? {} : { code })
  for (const code of [undefined, 'ECONNREFUSED', '08006', '53300', '57014', '57P01', '58030', '25006', '55P03'])
    expect(slots.isHopeless(withCode(code)), String(code)).toBe(true)
  for (const code of ['22P02', '23514', '40001', '40P01']) expect(slots.isHopeless(withCode(code)), code).toBe(false)
})

describe('during a flood of claims from another organization', () => {
  const HOSTILE = 1
  const QUIET = 2
  /** The statements so far, each with the organizations of its claims and a function that ends the statement. */
  let statements: { organizations: number[]; end: () => void }[]
  let fair: ClaimQueue

  beforeEach(() => {
    statements = []
    fair = new ClaimQueue({
      executor: {
        execute: (claims) =>
          new Promise((resolve) => {
            const outcomes = claims.map(() => ({
              outcome: 'granted' as const,
              used: 1,
              max: 5,
              xid: '7',
              expiresAtMs: Infinity,
              leaseSeconds: null,
            }))
            statements.push({
              organizations: claims.map(({ organization }) => organization),
              end: () => resolve(outcomes),
            })
          }),
        isHopeless: () => true,
      },
      limitMs: 60_000,
      windowMs: 0,
    })
  })
  afterEach(() => fair.close())

  const add = (organization: number, machine: number): Promise<string | null> => {
    const { licenseId, machineId } = claim('0190d9c0-0000-7000-8000-000000000000', `${organization} ${machine}`)
    const one = { organization, licenseId, machineId, hostname: null, isRecheck: false, lease: null }
    return new Promise((resolve) => fair.claim(one, (result) => resolve(result?.outcome ?? null)))
  }

  test('executes the claims of a quiet organization in the next batch', async () => {
    const hostile = Array.from({ length: 5_000 }, (_, i) => add(HOSTILE, i))
    await expect.poll(() => statements.length).toBe(2)
    await sleep(20)
    expect(statements.map(({ organizations }) => organizations.length)).toEqual([64, 64])
    const quiet = Array.from({ length: 10 }, (_, i) => add(QUIET, i))
    await expect.poll(() => statements.length).toBe(3)
    expect(new Set(statements[2]?.organizations)).toEqual(new Set([QUIET]))
    statements[2]?.end()
    expect(await Promise.all(quiet)).toEqual(Array<string>(10).fill('granted'))
    statements[0]?.end()
    const next = add(QUIET, 10)
    await expect.poll(() => statements.length).toBe(4)
    expect(statements[3]?.organizations.filter((row) => row === QUIET)).toHaveLength(1)
    expect(statements[3]?.organizations).toHaveLength(65)
    statements[3]?.end()
    expect(await next).toBe('granted')
    fair.close()
    await Promise.all(hostile)
  })

  test('returns null for claims beyond the limit of an organization', async () => {
    const hostile = Array.from({ length: 10_001 }, (_, i) => add(HOSTILE, i))
    expect(await hostile.at(-1)).toBeNull()
    expect(fair.size).toBe(10_000)
    void add(QUIET, 0)
    expect(fair.size).toBe(10_001)
  })
})

import { expect, test } from 'vitest'

import { type Change, createCheck, createIndex, HASH_WORDS, MATCHED_CAPACITY, openIndex } from '../../src/index.ts'
import { decideHashed, decideNow, differences, fillCheck } from '../support/comparison.ts'
import { History, NOW } from '../support/history.ts'
import { worlds } from '../support/worlds.ts'

const WORLDS = worlds(300, 2_000)
const CHECKS = 50
const OUTCOMES = [
  'VALID',
  'VALID excluded',
  'NOT_FOUND',
  'BLACKLISTED',
  'BLACKLISTED restricted',
  'REVOKED',
  'REVOKED excluded',
  'SUSPENDED',
  'SUSPENDED excluded',
  'EXPIRED',
  'EXPIRED excluded',
  'FINGERPRINT_REQUIRED',
  'TOO_MANY_MACHINES',
]

test('the engine agrees with the naive model over random worlds', () => {
  const counts = new Map<string, number>()
  for (let seed = 1; seed <= WORLDS; seed++) {
    const world = new History(seed)
    for (let i = 0; i < 30 + (seed % 60); i++) world.step()
    const writer = createIndex({ reserve: 'tiny', hashKey: world.random.bytes(16) })
    expect(writer.apply(world.snapshot())).toEqual([])
    const found = differences(openIndex(writer.shared), world, CHECKS, ({ code, excluded, restricted }) => {
      const name = excluded ? `${code} excluded` : restricted.length > 0 ? `${code} restricted` : code
      counts.set(name, (counts.get(name) ?? 0) + 1)
    })
    expect(found, `seed ${seed}`).toEqual([])
  }
  // The worlds must lead to every outcome.
  for (const name of OUTCOMES) expect(counts.get(name), name).toBeGreaterThan(WORLDS / 10)
})

test('decides the hashed checks of a batch like single checks over random worlds', () => {
  const hashes = new Int32Array(CHECKS * HASH_WORDS)
  for (let seed = 1; seed <= WORLDS / 10; seed++) {
    const world = new History(seed)
    for (let i = 0; i < 30 + (seed % 60); i++) world.step()
    const writer = createIndex({ reserve: 'tiny', hashKey: world.random.bytes(16) })
    expect(writer.apply(world.snapshot())).toEqual([])
    const reader = openIndex(writer.shared)
    const checks = Array.from({ length: CHECKS }, () => world.randomCheck())
    for (const [n, check] of checks.entries()) {
      const filled = createCheck()
      fillCheck(reader, check, filled)
      reader.hashCheck(filled, hashes, n)
    }
    reader.prefetchChecks(hashes, CHECKS)
    for (const [n, check] of checks.entries())
      expect(decideHashed(reader, check, hashes, n, NOW), `seed ${seed}`).toEqual(decideNow(reader, check, NOW))
  }
})

test('rules that repeat the effect of other rules, also later than the others, do not change a verdict', () => {
  for (let seed = 1; seed <= WORLDS / 5; seed++) {
    const world = new History(seed)
    for (let i = 0; i < 60; i++) world.step()
    const copies = world.rules
      .filter(() => world.random.chance(0.5))
      .map((rule) =>
        Object.assign({}, rule, { id: world.random.bytes(16), expiresAtMs: rule.expiresAtMs - world.random.int(2) }),
      )
    const once = createIndex({ reserve: 'tiny', hashKey: world.random.bytes(16) })
    expect(once.apply(world.snapshot())).toEqual([])
    world.rules.push(...copies)
    const repeated = createIndex({ reserve: 'tiny', hashKey: world.random.bytes(16) })
    expect(repeated.apply(world.snapshot())).toEqual([])
    for (let i = 0; i < CHECKS; i++) {
      const check = world.randomCheck()
      const [expected, actual] = [once, repeated].map((index) => decideNow(openIndex(index.shared), check, NOW))
      const { code, restricted, excluded, slot } = expected!
      expect(actual, `seed ${seed}`).toMatchObject({ code, restricted, excluded, slot })
    }
  }
})

test('a rule decides even if more rules match than a verdict can contain', () => {
  const id = (byte: number, more = 0): Uint8Array =>
    Uint8Array.from({ length: 16 }, (_, i) => (i === 0 ? byte : i === 1 ? more >> 8 : i === 2 ? more & 255 : 0))
  const organizationId = id(1)
  const key = new TextEncoder().encode('KEY')
  const rule = (
    n: number,
    prefixLength: number,
    kind: 'BLACKLIST' | 'EXCLUSION',
    mode: 'ENFORCE' | 'MONITOR',
  ): Change => {
    const network = { family: 6, words: [0, 0, 0, 0], prefixLength } as const
    const scope = { organizationId, scope: 'ORGANIZATION', scopeId: null } as const
    const row = {
      id: id(9, n),
      kind,
      mode,
      type: 'IP',
      network,
      expiresAtMs: Infinity,
      allowSuspendedOrExpired: false,
    } as const
    return { entity: 'rule', id: row.id, row: { ...row, ...scope } }
  }
  const license = { id: id(4), organizationId, productId: id(2), customerId: id(3), key, status: 'active' as const }
  const term = {
    expiresAtMs: Infinity,
    maxMachines: null,
    used: 0,
    entitlements: null,
    leaseSeconds: null,
    graceDays: null,
  }
  const writer = createIndex({ hashKey: id(0) })
  const rejected = writer.apply([
    { entity: 'organization', id: organizationId, row: { id: organizationId } },
    { entity: 'product', id: id(2), row: { id: id(2), organizationId, entitlements: null } },
    { entity: 'customer', id: id(3), row: { id: id(3), organizationId } },
    { entity: 'license', id: id(4), row: { ...license, ...term } },
    ...Array.from({ length: 129 * 32 }, (_, n) => rule(n, n % 129, 'BLACKLIST', 'MONITOR')),
    rule(60_000, 128, 'BLACKLIST', 'ENFORCE'),
  ])
  expect(rejected).toEqual([])
  const reader = openIndex(writer.shared)
  const check = { organizationId, productId: null, licenseKey: key, machineId: null, country: null }
  const address = { family: 6, words: [0, 0, 0, 0], prefixLength: 128 } as const
  const outcome = decideNow(reader, { ...check, address }, NOW)
  expect(outcome).toMatchObject({ code: 'BLACKLISTED', decidedBy: Buffer.from(id(9, 60_000)).toString('hex') })
  expect(outcome.matched).toHaveLength(MATCHED_CAPACITY)
})

import { expect, test } from 'vitest'

import { createCheck, createIndex, HASH_WORDS, openIndex } from '../../src/index.ts'
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
    const writer = createIndex({ reserve: 'small', hashKey: world.random.bytes(16) })
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
    const writer = createIndex({ reserve: 'small', hashKey: world.random.bytes(16) })
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

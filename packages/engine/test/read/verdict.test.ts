import { expect, test } from 'vitest'

import { createIndex, openIndex } from '../../src/index.ts'
import { differences } from '../support/comparison.ts'
import { History } from '../support/history.ts'
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
}, 60_000)

import { expect, test } from 'vitest'

import { createIndex, openIndex } from '../src/index.ts'
import { ask, expected } from './support/comparison.ts'
import { History, NOW } from './support/history.ts'
import { naiveDecide } from './support/naive.ts'

const WORLDS = 2000
const CHECKS = 50

test('the engine agrees with the naive model over random worlds', () => {
  const codes = new Map<string, number>()
  for (let seed = 1; seed <= WORLDS; seed++) {
    const world = new History(seed)
    for (let i = 0; i < 30 + (seed % 60); i++) world.step()
    const writer = createIndex({ reserve: 'small', hashKey: world.random.bytes(16) })
    expect(writer.apply(world.snapshot())).toEqual([])
    const reader = openIndex(writer.shared)
    for (let i = 0; i < CHECKS; i++) {
      const check = world.randomCheck()
      const now = NOW + world.random.int(3) - 1
      const naive = naiveDecide(world, check, now)
      const outcome = ask(reader, check, now)
      if (JSON.stringify(outcome) !== JSON.stringify(expected(naive))) {
        expect({ seed, check, ...outcome }).toEqual({ seed, check, ...expected(naive) })
      }
      const name = `${outcome.code}${outcome.excluded ? ' excluded' : ''}`
      codes.set(name, (codes.get(name) ?? 0) + 1)
    }
  }
  // The worlds are worth nothing if they do not lead everywhere.
  for (const name of [
    'VALID',
    'VALID excluded',
    'NOT_FOUND',
    'BLACKLISTED',
    'REVOKED',
    'REVOKED excluded',
    'SUSPENDED',
    'SUSPENDED excluded',
    'EXPIRED',
    'EXPIRED excluded',
    'FINGERPRINT_REQUIRED',
    'TOO_MANY_MACHINES',
  ]) {
    expect(codes.get(name) ?? 0, name).toBeGreaterThan(200)
  }
}, 60_000)

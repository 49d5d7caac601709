/**
 * Tests that the machine limit of leased licenses holds under faults (docs/api.md#l4). `KEYWARD_LONG=1` simulates 10,000
 * minutes instead of 200.
 */

import { random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { VirtualTime } from '../simulation/virtual-time.ts'
import { LeaseWorld } from './lease-world.ts'

const isLong = process.env['KEYWARD_LONG'] === '1'
const MINUTES = isLong ? 1_000 : 50
const SEEDS = isLong ? [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] : [1, 2, 3, 4]

test.each(SEEDS)(
  'returns VALID to at most 5 of 200 machines at one instant, with seed %i',
  { timeout: 600_000 },
  async (seed) => {
    const source = random(seed)
    const time = new VirtualTime(source)
    const world = new LeaseWorld(time, source)
    await time.run(MINUTES * 60_000, () => undefined)
    expect(world.most).toBe(5)
    expect(world.validChecks).toBeGreaterThan(5 * MINUTES)
  },
)

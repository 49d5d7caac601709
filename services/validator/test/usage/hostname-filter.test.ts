import { expect, test } from 'vitest'

import { HostnameFilter } from '../../src/usage/hostname-filter.ts'

test('records the host name of a machine once per period for each of its licenses', () => {
  const filter = new HostnameFilter()
  for (const nowMs of [1_000_000, 1_000_000 + 6 * 60_000])
    for (const [license, isDue] of [
      [0, true],
      [1, true],
      [0, false],
      [1, false],
      [70_000, true],
      [1, false],
    ] as const)
      expect([license, filter.isDue(license, 12_345, 678, nowMs)]).toEqual([license, isDue])
})

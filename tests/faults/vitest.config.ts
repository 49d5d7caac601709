import { defineConfig } from 'vitest/config'

import { startingWith } from '../longest-first.ts'
import { RETRIES_OF_PROGRAMS } from '../retries.ts'
import { cacheModules, keepTemporaryFilesInMemory } from '../test-programs.ts'
import { isLong } from './support/length.ts'

cacheModules()
keepTemporaryFilesInMemory()

const LONGEST = [
  'tests/faults/process.test.ts',
  'tests/faults/neighbours.test.ts',
  'tests/faults/hostile-http.test.ts',
  'tests/faults/security.test.ts',
  'tests/faults/history.test.ts',
  'tests/faults/limits.test.ts',
]

/** Configures `npm run test:faults`. KEYWARD_LONG=1 runs the long forms, one file at a time so that figures are comparable. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['tests/faults/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: isLong ? 1 : 2,
    retry: RETRIES_OF_PROGRAMS,
    sequence: { sequencer: startingWith(LONGEST) },
    testTimeout: isLong ? 3_600_000 : 120_000,
    hookTimeout: isLong ? 1_200_000 : 120_000,
  },
})

import { defineConfig } from 'vitest/config'

import { isLong } from './support/length.ts'

/** Configures `npm run test:faults`. KEYWARD_LONG=1 runs the long forms, one file at a time so that figures are comparable. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['tests/faults/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: isLong ? 1 : 3,
    testTimeout: isLong ? 3_600_000 : 120_000,
    hookTimeout: isLong ? 1_200_000 : 120_000,
  },
})

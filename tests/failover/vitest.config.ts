import { defineConfig } from 'vitest/config'

/** Configures `npm run test:failover`, which tests the failovers of a Patroni cluster one after the other. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['tests/failover/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})

import { defineConfig } from 'vitest/config'

/** `npm run test:failover`: the failovers of a Patroni cluster, one after the other. */
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

import { defineConfig } from 'vitest/config'

/** Configures `npm run test:containers`, which builds the images and runs the topology of compose.yaml. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['tests/containers/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 900_000,
    hookTimeout: 1_800_000,
    expect: { poll: { timeout: 300_000, interval: 500 } },
  },
})

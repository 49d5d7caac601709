import { defineConfig } from 'vitest/config'

/** Configures `npm run test:kubernetes`, which applies the manifests of Kubernetes to a cluster with one node. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['tests/kubernetes/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 600_000,
    hookTimeout: 3_600_000,
    expect: { poll: { timeout: 120_000, interval: 500 } },
  },
})

import { availableParallelism } from 'node:os'

import { defineConfig } from 'vitest/config'

import { startingWith } from './tests/longest-first.ts'
import { globalSettings, PROPERTY_TESTS, settings, SLOW_TESTS } from './vitest.config.ts'

const LONGEST = [
  'tests/console/console.test.ts',
  'packages/client/test/other-languages.slow.test.ts',
  'infra/test/start.slow.test.ts',
  'tests/console/tasks.test.ts',
  'infra/test/release.slow.test.ts',
  'services/management/test/crud/list-plans.slow.test.ts',
  'tests/console/security.test.ts',
  'infra/test/npm-scripts.slow.test.ts',
  'tests/records/privacy.test.ts',
  'services/validator/test/feed/large-change.slow.test.ts',
  'services/management/test/neighbours.slow.test.ts',
  'packages/cli/test/service.slow.test.ts',
]

/** Configures `npm run test:slow`, which runs the tests that start whole programs, wait in real time, or check very many cases. */
export default defineConfig({
  test: {
    ...globalSettings,
    ...settings,
    // These tests start programs that need the cores themselves.
    maxWorkers: availableParallelism(),
    include: [...SLOW_TESTS, ...PROPERTY_TESTS],
    env: { KEYWARD_SLOW: '1' },
    sequence: { sequencer: startingWith(LONGEST) },
  },
})

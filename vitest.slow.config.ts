import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

import { globalSettings, PROPERTY_TESTS, settings, SLOW_TESTS } from './vitest.config.ts'

/** The files that take longest. They start first, because one that starts last would run alone at the end. */
const LONGEST = [
  'tests/console/console.test.ts',
  'packages/client/test/other-languages.slow.test.ts',
  'infra/test/start.slow.test.ts',
  'tests/console/tasks.test.ts',
  'services/management/test/crud/list-plans.slow.test.ts',
  'tests/console/security.test.ts',
  'infra/test/npm-scripts.slow.test.ts',
  'services/management/test/neighbours.slow.test.ts',
  'packages/cli/test/service.slow.test.ts',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = LONGEST.findIndex((path) => moduleId.endsWith(path))
      return place === -1 ? LONGEST.length : place
    }
    // oxlint-disable-next-line unicorn/no-array-sort -- this is the method of the sequencer
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

/** Configures `npm run test:slow`, which runs the tests that start whole programs, wait in real time, or check very many cases. */
export default defineConfig({
  test: {
    ...globalSettings,
    ...settings,
    include: [...SLOW_TESTS, ...PROPERTY_TESTS],
    env: { KEYWARD_SLOW: '1' },
    sequence: { sequencer: LongestFirst },
  },
})

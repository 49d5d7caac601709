import { defineConfig } from 'vitest/config'

import { globalSettings, PROPERTY_TESTS, settings, SLOW_TESTS } from './vitest.config.ts'

/** `npm run test:slow`: tests that start whole programs, wait in real time, or check very many cases. */
export default defineConfig({
  test: {
    ...globalSettings,
    ...settings,
    include: [...SLOW_TESTS, ...PROPERTY_TESTS],
    env: { KEYWARD_SLOW: '1' },
  },
})

import { defineConfig } from 'vitest/config'

import base, { SLOW_TESTS } from './vitest.config.ts'

/** `npm run test:slow`: tests that start whole programs, wait in real time, or try very many cases. */
export default defineConfig({
  ...base,
  test: { ...base.test, include: SLOW_TESTS, exclude: ['**/node_modules/**'] },
})

import { defineConfig } from 'vitest/config'

import { globalSettings, settings } from './vitest.config.ts'

/**
 * Configures `npm run test:http-libraries`, which runs the tests of all code that uses uWebSockets.js, from connections to worker
 * threads and processes.
 */
export default defineConfig({
  test: {
    ...globalSettings,
    ...settings,
    include: [
      'packages/uwebsockets/test/*.test.ts',
      'services/validator/test/{answers,http,endpoints,public-keys,workers}/*.test.ts',
      'services/validator/test/*.test.ts',
      'infra/test/http-clients/*.test.ts',
    ],
  },
})

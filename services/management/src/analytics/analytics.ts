/** Defines the endpoint that returns counts of checks (docs/api.md#d2). */

import { analytics as operations } from '@keyward/contract/management/analytics'

import { implement } from '../operations/implement.ts'
import { countChecks } from './count-checks.ts'

export const analytics = implement({ name: 'Analytics', description: 'Counts of checks.' }, operations, {
  countChecks: {
    summary: 'Count checks over time',
    description:
      'Each interval has an entry, even when its count is 0. Checks that an exclusion decides are not counted.',
    handle: (call) => countChecks(call, call.query),
  },
})

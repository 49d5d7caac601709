/** Defines the endpoint that returns counts of checks (docs/api.md#d2). */

import { analyticsQuery, checkCounts } from '@keyward/contract/management/analytics'

import { vendorEndpoint } from '../http/endpoint.ts'
import { countChecks } from './count-checks.ts'

export const analytics = [
  vendorEndpoint(
    'analytics.read',
    {
      method: 'get',
      path: '/analytics/checks',
      tag: { name: 'Analytics', description: 'Counts of checks.' },
      operationId: 'countChecks',
      summary: 'Count checks over time',
      description:
        'Each interval has an entry, even when its count is 0. Checks that an exclusion decides are not counted.',
      query: analyticsQuery,
      status: 200,
      response: checkCounts,
    },
    (call) => countChecks(call, call.query),
  ),
]

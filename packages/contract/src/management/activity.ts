/**
 * The activity feed of licenses (docs/api.md#d3) and alerts (docs/api.md#d4). Neither activity nor alerts contain an address or a country.
 */

import { z } from 'zod'

import { code } from '../codes.ts'
import { exactText, MAX_MACHINE_ID_BYTES } from '../text.ts'
import { actor, EXAMPLE_ID, exportedRows, exportQuery, id, listQuery, moment, page, timestamp } from './common.ts'
import { operations } from './operations.ts'

export const activityType = z
  .enum([
    'CHECK',
    'MACHINE_ACTIVATED',
    'MACHINE_RELEASED',
    'LICENSE_CREATED',
    'LICENSE_CHANGED',
    'LICENSE_SUSPENDED',
    'LICENSE_REINSTATED',
    'LICENSE_RENEWED',
    'LICENSE_REVOKED',
    'LICENSE_KEY_REPLACED',
    'FILE_ISSUED',
    'TERM_STARTED',
    'RELEASE_LIMIT_REACHED',
    'LEASE_ENDED',
  ])
  .meta({ description: 'The type of the entry: `CHECK`, `FILE_ISSUED`, or a change of the license.', example: 'CHECK' })
export type ActivityType = z.infer<typeof activityType>

export const activityEntry = z
  .object({
    id: z.uuid().meta({ description: 'The id of the entry.', example: EXAMPLE_ID }),
    at: timestamp(
      'The time of recording, by which the list is sorted. Checks are recorded about a second after the first. The files of a day ' +
        'are recorded at its beginning in UTC.',
    ),
    type: activityType,
    licenseId: z.uuid().meta({ description: 'The id of the license.', example: EXAMPLE_ID }),
    code: code.optional(),
    machineId: z.string().optional().meta({ description: 'The machine id.', example: 'A4-F1-00-12' }),
    count: z.int().meta({ description: 'The number of aggregated checks or files.', example: 17 }),
    firstAt: timestamp('The time of the first one.'),
    lastAt: timestamp('The time of the last one.'),
    actor: actor.optional(),
  })
  .meta({ id: 'ActivityEntry', description: 'An entry in the activity of a license.' })

export const alert = z
  .object({
    id: z.uuid().meta({ description: 'The id of the alert.', example: EXAMPLE_ID }),
    kind: z.enum(['OVERUSE', 'WEBHOOK_DISABLED', 'EVENT_WAITING']).meta({
      description:
        'The type of the alert. `OVERUSE`: more machines check the license than it has slots. `WEBHOOK_DISABLED`: Keyward has disabled a webhook endpoint. `EVENT_WAITING`: an event of a shop names a price that no template lists.',
      example: 'OVERUSE',
    }),
    licenseId: z
      .uuid()
      .nullable()
      .meta({ description: 'The id of the license; null unless the kind is `OVERUSE`.', example: EXAMPLE_ID }),
    webhookEndpointId: z.uuid().nullable().meta({
      description: 'The id of the webhook endpoint; null unless the kind is `WEBHOOK_DISABLED`.',
      example: null,
    }),
    connectionId: z
      .uuid()
      .nullable()
      .meta({ description: 'The id of the connection; null unless the kind is `EVENT_WAITING`.', example: null }),
    count: z.int().meta({
      description: 'The number of rejected checks or of waiting events, or how many times the endpoint was disabled.',
      example: 9,
    }),
    firstAt: timestamp('The time of the first one.'),
    lastAt: timestamp('The time of the last one.'),
    acknowledgedAt: timestamp('The time of acknowledgement; null while the alert is open.').nullable(),
  })
  .meta({
    id: 'Alert',
    description:
      'An alert that more machines check a license than it has slots, that a webhook endpoint is disabled, or that events of a shop wait.',
  })

const alertFilter = {
  open: z
    .enum(['true', 'false'])
    .transform((given) => given === 'true')
    .optional()
    .meta({ description: 'Returns only open alerts (`true`) or only acknowledged alerts (`false`).', example: 'true' }),
  licenseId: id('Returns only alerts of this license.').optional(),
}

const activityFilter = {
  type: activityType.optional(),
  code: code.optional(),
  machineId: exactText(MAX_MACHINE_ID_BYTES)
    .optional()
    .meta({ description: 'Returns only entries of this machine.', example: 'A4-F1-00-12' }),
  from: moment('Returns only entries from this time on.').optional(),
  to: moment('Returns only entries before this time.').optional(),
}

const activityPage = { query: listQuery(activityFilter), returns: page(activityEntry) } as const

export const activity = operations({
  listLicenseActivity: { route: 'GET /licenses/{id}/activity', needs: 'licenses.read', ...activityPage },
  listActivity: { route: 'GET /activity', needs: 'licenses.read', ...activityPage },
  exportActivity: {
    route: 'GET /activity/export',
    needs: 'licenses.read',
    query: exportQuery(activityFilter),
    returns: exportedRows,
    file: 'text/csv',
  },
})

export const alerts = operations({
  listAlerts: { route: 'GET /alerts', needs: 'licenses.read', query: listQuery(alertFilter), returns: page(alert) },
  acknowledgeAlert: { route: 'POST /alerts/{id}/acknowledge', needs: 'licenses.write', returns: alert },
})

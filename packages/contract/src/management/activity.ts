/** The activity feed of licenses (docs/api.md#d3) and overuse alerts (docs/api.md#d4). Neither contains an address or a country. */

import { z } from 'zod'

import { code } from '../codes.ts'
import { exactText, MAX_MACHINE_ID_BYTES } from '../text.ts'
import { actor, EXAMPLE_ID, id, moment, timestamp } from './common.ts'

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
  .meta({ description: '`CHECK`, `FILE_ISSUED`, or the change that was made.', example: 'CHECK' })

export const activityEntry = z
  .object({
    id: z.uuid().meta({ description: 'The id of the entry.', example: EXAMPLE_ID }),
    at: timestamp(
      'When it was recorded; the list is in this order. Checks are recorded within about a second of the first, files of a day at its ' +
        'beginning in UTC.',
    ),
    type: activityType,
    licenseId: z.uuid().meta({ description: 'The license.', example: EXAMPLE_ID }),
    code: code.optional(),
    machineId: z.string().optional().meta({ description: 'The machine id.', example: 'A4-F1-00-12' }),
    count: z.int().meta({ description: 'How many checks or files it aggregates.', example: 17 }),
    firstAt: timestamp('The first of them.'),
    lastAt: timestamp('The last of them.'),
    actor: actor.optional(),
  })
  .meta({ id: 'ActivityEntry', description: 'Something that happened to a license.' })

export const alert = z
  .object({
    id: z.uuid().meta({ description: 'The id of the alert.', example: EXAMPLE_ID }),
    kind: z
      .literal('OVERUSE')
      .meta({ description: 'More machines checked than the license has slots.', example: 'OVERUSE' }),
    licenseId: z.uuid().meta({ description: 'The license.', example: EXAMPLE_ID }),
    count: z.int().meta({ description: 'How many checks were rejected.', example: 9 }),
    firstAt: timestamp('The first of them.'),
    lastAt: timestamp('The last of them.'),
    acknowledgedAt: timestamp('When somebody acknowledged it; null: open.').nullable(),
  })
  .meta({ id: 'Alert', description: 'More machines checked a license than it has slots.' })

export const alertFilter = {
  open: z
    .enum(['true', 'false'])
    .transform((given) => given === 'true')
    .optional()
    .meta({ description: 'Only open, or only acknowledged alerts.', example: 'true' }),
  licenseId: id('Only alerts of this license.').optional(),
}

export const activityFilter = {
  type: activityType.optional(),
  code: code.optional(),
  machineId: exactText(MAX_MACHINE_ID_BYTES)
    .optional()
    .meta({ description: 'Only entries of this machine.', example: 'A4-F1-00-12' }),
  from: moment('Only entries from this time on.').optional(),
  to: moment('Only entries before this time.').optional(),
}

/** Jobs: actions on many licenses, which the service performs after the request (docs/api.md#j1). */

import { z } from 'zod'

import { actor, EXAMPLE_ID, id, listQuery, page, timestamp } from './common.ts'
import { licenseFilter } from './license-operations.ts'
import { extendLicense, licenseKey, reason, renewLicense } from './licenses.ts'
import { operations } from './operations.ts'

/** The maximum number of licenses of a job, and of ids in a request. */
export const MAX_JOB_LICENSES = 100_000
export const MAX_JOB_IDS = 1_000
/** The number of days after its end for which a job is kept and can be undone. */
export const JOB_DAYS = 7

const typed = <Type extends string>(type: Type) =>
  z.literal(type).meta({ description: 'The type of the action.', example: type })

/** Returns the schema of an action. Its expiry is a time of a request or of a response. */
function actionWith<Expiry extends z.ZodType>(expiresAt: Expiry) {
  return z
    .discriminatedUnion('type', [
      z.strictObject({ type: typed('suspend'), reason }),
      z.strictObject({ type: typed('reinstate') }),
      z.strictObject({ type: typed('revoke'), reason }),
      z.strictObject({ type: typed('renew'), expiresAt, allowEarlier: renewLicense.shape.allowEarlier }),
      z.strictObject({ type: typed('extend'), ...extendLicense.shape }),
      z.strictObject({ type: typed('delete') }),
    ])
    .meta({
      description: 'The action, with the parameters of the action on one license.',
      example: { type: 'suspend', reason: 'Chargeback of order A-1001' },
    })
}
export const licenseAction = actionWith(renewLicense.shape.expiresAt)
export type LicenseAction = z.output<typeof licenseAction>
export const shownAction = actionWith(timestamp('The new expiry.'))

const REASONS = [
  'IN_EFFECT',
  'REVOKED',
  'PERPETUAL',
  'EXPIRY_PAST',
  'EXPIRY_EARLIER',
  'TERM_TOO_LONG',
  'DELETED',
  'CHANGED',
] as const
/** The reason for which a job leaves a license as it is. */
const jobReason = z.enum(REASONS).meta({
  description:
    '`IN_EFFECT`: the action is already in effect. `CHANGED`: the license has changed since the job. The others are errors of the action.',
  example: 'REVOKED',
})
export type JobReason = z.infer<typeof jobReason>

/** The filter of a job: the conditions of the list of licenses. */
export const jobFilter = z
  .strictObject(licenseFilter)
  .refine((given) => Object.keys(given).length > 0, 'must have a condition; for all licenses, give `all` instead')

const expectedTotal = z.int().min(0).max(MAX_JOB_LICENSES).optional().meta({
  description:
    'The number of licenses that the dry run returned. The request fails when another number is selected now.',
  example: 203,
})

const selected = {
  action: licenseAction,
  ids: z
    .array(id('The id of a license.'))
    .min(1)
    .max(MAX_JOB_IDS)
    .transform((list) => [...new Set(list)])
    .optional()
    .meta({ description: 'The ids of the licenses, at most 1,000.', example: [EXAMPLE_ID] }),
  filter: jobFilter
    .optional()
    .meta({ description: 'Selects the licenses that the list returns with these parameters.' }),
  all: z.literal(true).optional().meta({ description: 'Selects all licenses of the organization.', example: true }),
}
type Selected = Partial<Record<'ids' | 'filter' | 'all', unknown>>
const selectsOnce = ({ ids, filter, all }: Selected) =>
  [ids, filter, all].filter((one) => one !== undefined).length === 1
const ONCE = {
  path: ['filter'],
  message: 'is required unless ids or all is given; exactly one of the three is allowed',
}
const SUSPENDS_EXPIRED = { action: { type: 'suspend' }, filter: { status: 'expired' } }
const target = z.strictObject(selected).refine(selectsOnce, ONCE).meta({ example: SUSPENDS_EXPIRED })
const startedTarget = z
  .strictObject({ ...selected, expectedTotal })
  .refine(selectsOnce, ONCE)
  .meta({ example: SUSPENDS_EXPIRED })
export type JobTarget = z.output<typeof target>
export type StartedTarget = z.output<typeof startedTarget>

const count = (description: string, example: number) => z.int().meta({ description, example })

export const MAX_JOB_ERRORS = 100
export const jobError = z.object({
  id: z.uuid().meta({ description: 'The id of the license.', example: EXAMPLE_ID }),
  key: licenseKey.nullable().meta({ description: 'The license key; null for a deleted license.' }),
  reason: jobReason,
})

const jobState = z.enum(['running', 'completed', 'canceled', 'undoing', 'undone']).meta({
  description: 'The state of the job.',
  example: 'running',
})

export const licenseJob = z
  .object({
    id: z.uuid().meta({ description: 'The id of the job.', example: EXAMPLE_ID }),
    action: shownAction,
    state: jobState,
    total: count('The number of licenses that were selected.', 203),
    done: count('The number of licenses that the job has handled.', 120),
    changed: count('The number of licenses that the job has changed or deleted.', 115),
    skipped: count('The number of licenses in which the action was already in effect.', 3),
    failed: count('The number of licenses that do not allow the action.', 2),
    restored: count('The number of licenses that the undo has restored.', 0),
    kept: count('The number of licenses that the undo left as they are, because they have changed since the job.', 0),
    errors: z
      .array(jobError)
      .max(MAX_JOB_ERRORS)
      .meta({ description: 'The first 100 licenses that failed, or that the undo kept.' }),
    problem: z.string().nullable().meta({
      description:
        'The quota of bytes that the job waits for, or that the next licenses cannot be changed; null otherwise.',
      example: null,
    }),
    actor,
    createdAt: timestamp('The time of the request.'),
    endedAt: timestamp('The time at which the job or its undo ended; null while it runs.').nullable(),
    undoableUntil: timestamp('The time until which the job can be undone; null when it cannot.').nullable(),
  })
  .meta({ id: 'LicenseJob', description: 'An action on many licenses, with its progress.' })
export type LicenseJob = z.infer<typeof licenseJob>

const effect = z.object({
  total: count('The number of selected licenses.', 203),
  changed: count('The number of licenses that would change.', 198),
  skipped: count('The number of licenses in which the action is already in effect.', 3),
  failed: count('The number of licenses that do not allow the action.', 2),
  reasons: z
    .array(z.object({ reason: jobReason, count: count('The number of licenses.', 3) }))
    .meta({ description: 'The reasons for which licenses would not change.' }),
  examples: z
    .object({
      changed: z.array(jobError.omit({ reason: true })),
      others: z.array(jobError),
    })
    .meta({ description: 'Some of the licenses that would change, and some of the others.' }),
})
export type JobEffect = z.infer<typeof effect>

export const licenseJobs = operations({
  dryRunLicenseJob: {
    route: 'POST /license-jobs/dry-run',
    needs: 'licenses.write',
    body: target,
    returns: effect,
    readOnly: true,
  },
  startLicenseJob: {
    route: 'POST /license-jobs',
    needs: 'licenses.write',
    body: startedTarget,
    returns: licenseJob,
    creates: true,
    continues: true,
  },
  listLicenseJobs: {
    route: 'GET /license-jobs',
    needs: 'licenses.read',
    query: listQuery({ state: jobState.optional() }),
    returns: page(licenseJob),
  },
  readLicenseJob: { route: 'GET /license-jobs/{id}', needs: 'licenses.read', returns: licenseJob },
  cancelLicenseJob: { route: 'POST /license-jobs/{id}/cancel', needs: 'licenses.write', returns: licenseJob },
  undoLicenseJob: { route: 'POST /license-jobs/{id}/undo', needs: 'licenses.write', returns: licenseJob },
})

/** Reads rows of jobs, and converts them to the representation of the API. */

import {
  JOB_DAYS,
  jobError,
  type LicenseAction,
  licenseAction,
  type LicenseJob,
  shownAction,
} from '@keyward/contract/management/license-jobs'
import { z } from 'zod'

import { listedActor } from '../../audit/actors.ts'
import type { OwnedRows, Row } from '../../crud/owned-rows.ts'
import { MS_PER_DAY } from '../licenses/license-rows.ts'

export type JobRow = Row<'licenseJobs'>
const storedErrors = z.array(jobError)

export function contentOf({ action, errors }: JobRow) {
  return { action: licenseAction.parse(action), errors: storedErrors.parse(errors) }
}

/** Returns whether the action ends licenses, which the quotas of bytes allow like a request without a body (docs/api.md#m13). */
export function endsLicenses({ type }: LicenseAction): boolean {
  return type === 'suspend' || type === 'revoke' || type === 'delete'
}

/** Returns the time until which the job can be undone, or null. A deletion is final. */
export function undoableUntil({ action, state, endedAt }: JobRow): Date | null {
  if (endedAt === null || state === 'undone' || action['type'] === 'delete') return null
  return new Date(endedAt.getTime() + JOB_DAYS * MS_PER_DAY)
}

export const jobRows: OwnedRows<'licenseJobs', LicenseJob> = {
  table: 'licenseJobs',
  type: 'license_job',
  show: (row) => {
    const { id, state, total, done, changed, skipped, failed, restored, kept, problem, createdAt, endedAt } = row
    return {
      id,
      ...contentOf(row),
      action: shownAction.parse(row.action),
      actor: listedActor(row.actor),
      state,
      total,
      done,
      changed,
      skipped,
      failed,
      restored,
      kept,
      problem,
      createdAt: createdAt.toISOString(),
      endedAt: endedAt?.toISOString() ?? null,
      undoableUntil: undoableUntil(row)?.toISOString() ?? null,
    }
  },
}

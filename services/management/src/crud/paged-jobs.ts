/**
 * Runs jobs that change many rows of an organization. A job changes its rows in pages, each in a transaction with its events and the
 * progress, so that neither memory nor locks depend on the number of rows, and a crash neither loses nor repeats a page. Any number of
 * processes may run the jobs. Organizations take turns.
 */

import type { Database } from '@keyward/database'
import { type RawBuilder, sql } from 'kysely'

import type { Db, WriteContext } from '../context.ts'
import { ApiError } from '../http/problem.ts'
import { requireBytes } from '../quotas/quotas.ts'
import type { Row } from './owned-rows.ts'

/** The number of rows of a page. */
export const PAGE_ROWS = 200

/** A kind of job. A row of the table contains the progress of a job. */
export interface PagedJobs<Table extends keyof Database & ('licenseTemplates' | 'licenseJobs')> {
  table: Table
  /** The condition for rows whose job runs. */
  isRunning: RawBuilder<unknown>
  /** The order in which an organization's jobs run. */
  order: RawBuilder<unknown>
  /** Handles the next page of the job of a locked row. Returns false when the job has to wait. */
  handlePage: (db: Db, row: Row<Table>) => Promise<boolean>
  /** Shows in the row that its page failed. */
  showFailure?: (db: Db, row: Row<Table>) => Promise<void>
}

/** Returns the error of the quota of bytes that the organization has reached, or null. */
export async function bytesExceededOf(context: WriteContext, needsBody: boolean): Promise<ApiError | null> {
  try {
    await requireBytes(context, needsBody)
    return null
  } catch (error) {
    if (error instanceof ApiError && error.code === 'QUOTA_EXCEEDED') return error
    throw error
  }
}

const NO_ORGANIZATION = '00000000-0000-0000-0000-000000000000'

/**
 * Handles the pages of all jobs of a kind. A job that waits or whose page fails, and an organization whose jobs another process runs, is
 * left to the next run.
 */
export async function runJobs<Table extends 'licenseTemplates' | 'licenseJobs'>(
  db: Db,
  { table, isRunning, order, handlePage, showFailure }: PagedJobs<Table>,
  signal?: AbortSignal,
): Promise<void> {
  const skipped = { jobs: new Set<string>(), organizations: new Set<string>() }
  const errors: unknown[] = []
  /** The row that the current page has locked, if there is one. */
  let taken: (Row<Table> & { id: string })[] = []
  const handleNext = (organizationId: string) =>
    db.transaction().execute(async (transaction) => {
      const { rows } = await sql<Row<Table> & { id: string }>`
        select * from ${sql.table(table)} where organization_id = ${organizationId} and ${isRunning}
          and id <> all(${[...skipped.jobs]}::uuid[])
        order by ${order} limit 1 for no key update skip locked`.execute(transaction)
      taken = rows
      const [row] = rows
      if (row === undefined) skipped.organizations.add(organizationId)
      else if (!(await handlePage(transaction, row))) skipped.jobs.add(row.id)
    })
  let last = NO_ORGANIZATION
  for (;;) {
    if (signal?.aborted === true) break
    const { rows } = await sql<{ organizationId: string }>`
      select organization_id from ${sql.table(table)} where ${isRunning} and organization_id <> all(${[...skipped.organizations]}::uuid[])
      order by organization_id <= ${last}, organization_id limit 1`.execute(db)
    if (rows[0] === undefined) break
    last = rows[0].organizationId
    taken = []
    try {
      await handleNext(last)
    } catch (error) {
      errors.push(error)
      const [row] = taken
      if (row === undefined) skipped.organizations.add(last)
      else {
        skipped.jobs.add(row.id)
        // In an outage, this fails for the same reason as the page.
        await showFailure?.(db, row).catch(() => undefined)
      }
    }
  }
  if (errors.length > 0) throw errors[0]
}

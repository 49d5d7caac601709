import type { Generated } from 'kysely'

import type { DefaultJsonColumn, JsonColumn } from './columns.ts'

/** Actions on many licenses. */
export interface LicenseJobTable {
  id: string
  organizationId: string
  /** The action with its parameters. */
  action: JsonColumn
  actor: JsonColumn
  state: Generated<'running' | 'completed' | 'canceled' | 'undoing' | 'undone'>
  total: number
  done: Generated<number>
  changed: Generated<number>
  skipped: Generated<number>
  failed: Generated<number>
  restored: Generated<number>
  kept: Generated<number>
  /** The first licenses that failed or that an undo kept. */
  errors: DefaultJsonColumn
  /** The id of the last license that was handled. */
  after: string | null
  /** The quota that the job waits for, or that its last page failed. */
  problem: string | null
  createdAt: Generated<Date>
  endedAt: Date | null
}

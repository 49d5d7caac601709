/**
 * Records changes of licenses in their activity (docs/api.md#d3). Claims and releases are recorded by the functions of the database that
 * slots/slots.ts calls, and checks by write-behind.ts.
 */

import { type Kysely, sql } from 'kysely'

import { executeLast } from '../last-statements.ts'
import type { Database } from '../schema.ts'

export type ActivityType =
  | 'CHECK'
  | 'MACHINE_ACTIVATED'
  | 'MACHINE_RELEASED'
  | 'LICENSE_CREATED'
  | 'LICENSE_CHANGED'
  | 'LICENSE_SUSPENDED'
  | 'LICENSE_REINSTATED'
  | 'LICENSE_RENEWED'
  | 'LICENSE_REVOKED'
  | 'LICENSE_KEY_REPLACED'
  | 'FILE_ISSUED'
  | 'TERM_STARTED'
  | 'RELEASE_LIMIT_REACHED'
  | 'LEASE_ENDED'

export interface ActivityEntry {
  readonly type: Exclude<ActivityType, 'CHECK' | 'FILE_ISSUED'>
  readonly organizationId: string
  /** The licenses, each of which gets one entry. Licenses that are unknown or belong to another organization are skipped. */
  readonly licenseIds: readonly string[]
  readonly machineId?: Uint8Array
  readonly actor: object | null
}

/** Records a change of licenses in the transaction that makes the change, at its end. */
export async function recordActivity(transaction: Kysely<Database>, entry: ActivityEntry): Promise<void> {
  const { type, organizationId, licenseIds, machineId = null } = entry
  const actor = entry.actor === null ? null : JSON.stringify(entry.actor)
  const statement = sql`select record_activity(${organizationId}::uuid, ${licenseIds}::uuid[], ${type}, ${machineId}::bytea,
    ${actor}::jsonb)`
  await executeLast(transaction, statement)
}

export interface IssuedFile {
  readonly organizationId: string
  readonly licenseId: string
  /** The machine id of the request. The entry contains it only if the machine is recorded for the license. */
  readonly machineId: Uint8Array | null
  readonly actor: object
}

/**
 * Counts each issued license file in the entry for its license, machine and day. Machines that are not recorded for the license share an
 * entry. Concurrent statements lock the entries in the same order, so they cannot deadlock.
 */
export async function recordFilesIssued(db: Kysely<Database>, files: readonly IssuedFile[]): Promise<void> {
  const column = <Name extends keyof IssuedFile>(name: Name) => files.map((file) => file[name])
  const actors = column('actor').map((actor) => JSON.stringify(actor))
  await sql`
    select record_file_issued(organization, license, machine, actor) from (
      select * from unnest(${column('organizationId')}::uuid[], ${column('licenseId')}::uuid[], ${column('machineId')}::bytea[],
        ${actors}::jsonb[]) as issued (organization, license, machine, actor)
      order by license, (select m.machine_id from machines m join licenses l on l.id = m.license_id
        where l.organization_id = organization and l.id = license and m.machine_id = machine)
    ) ordered`.execute(db)
}

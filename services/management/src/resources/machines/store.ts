import { audit, type Change, recordChange } from '../../audit/writer.ts'
import type { Db } from '../../http/context.ts'
/** The machines of a license. Removing one gives its slot back; the database counts the slots. */
import { type PageQuery, readPage } from '../../http/pagination.ts'
import { notFound } from '../../http/problem.ts'
import { readLicenseRow } from '../licenses/store.ts'

export async function listMachines(db: Db, organizationId: string, licenseId: string, query: PageQuery) {
  await readLicenseRow(db, organizationId, licenseId)
  const list = { name: `machines of ${licenseId}`, organizationId }
  const select = db.selectFrom('machines').selectAll().where('licenseId', '=', licenseId)
  return readPage(list, query, select, (row) => ({
    id: row.id,
    machineId: row.machineId.toString('utf8'),
    hostname: row.hostname,
    firstSeenAt: row.firstSeenAt.toISOString(),
    lastSeenAt: row.lastSeenAt.toISOString(),
  }))
}

export async function removeMachine(change: Change, licenseId: string, id: string): Promise<void> {
  const { db, organizationId } = change
  await readLicenseRow(db, organizationId, licenseId)
  const row = await db
    .deleteFrom('machines')
    .where('licenseId', '=', licenseId)
    .where('id', '=', id)
    .returning('machineId')
    .executeTakeFirst()
  if (!row) throw notFound('machine')
  const changes = { licenseId, machineId: row.machineId.toString('utf8') }
  await audit(change, { action: 'machine.removed', resourceType: 'machine', resourceId: id, changes })
  await recordChange(change, 'MACHINE_RELEASED', [licenseId], row.machineId)
}

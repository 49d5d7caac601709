/** Reading what is recorded: the activity feed, alerts and the audit log; and acknowledging an alert. */
import { actor, type alert, type auditEntry, code, type activityEntry, activityType } from '@keyward/contract'
import type { Database } from '@keyward/database'
import type { Selectable } from 'kysely'
import { z } from 'zod'

import { audit, type Change } from '../audit/writer.ts'
import type { Db } from '../http/context.ts'
import { type PageQuery, readPage } from '../http/pagination.ts'
import { notFound } from '../http/problem.ts'
import { readLicenseRow } from '../resources/licenses/store.ts'

type ActivityEntry = z.output<typeof activityEntry>
type Alert = z.output<typeof alert>
type AuditEntry = z.output<typeof auditEntry>

/** The moment that an id of version 7 begins with: when the entry was written down, so that `at` and the order of the list agree. */
function momentOf(id: string): string {
  return new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString()
}

function showActivity(row: Selectable<Database['activity']>): ActivityEntry {
  return {
    id: row.id,
    at: momentOf(row.id),
    type: activityType.parse(row.type),
    licenseId: row.licenseId,
    ...(row.code !== null && { code: code.parse(row.code) }),
    ...(row.machineId !== null && { machineId: row.machineId.toString('utf8') }),
    count: row.count,
    firstAt: row.firstAt.toISOString(),
    lastAt: row.lastAt.toISOString(),
    ...(row.actor !== null && { actor: actor.parse(row.actor) }),
  }
}

/** Of one license, or of all. */
export async function listActivity(db: Db, organizationId: string, licenseId: string | null, query: PageQuery) {
  if (licenseId !== null) await readLicenseRow(db, organizationId, licenseId)
  const list = { name: `activity ${licenseId ?? ''}`, organizationId }
  let select = db.selectFrom('activity').selectAll().where('organizationId', '=', organizationId)
  if (licenseId !== null) select = select.where('licenseId', '=', licenseId)
  return readPage(list, query, select, showActivity)
}

function showAlert(row: Selectable<Database['alerts']>): Alert {
  return {
    id: row.id,
    kind: row.kind,
    licenseId: row.licenseId,
    count: row.count,
    firstAt: row.firstAt.toISOString(),
    lastAt: row.lastAt.toISOString(),
    acknowledgedAt: row.acknowledgedAt?.toISOString() ?? null,
  }
}

export async function listAlerts(db: Db, organizationId: string, query: PageQuery) {
  const list = { name: 'alerts', organizationId }
  const select = db.selectFrom('alerts').selectAll().where('organizationId', '=', organizationId)
  return readPage(list, query, select, showAlert)
}

/** The next refused check opens a new alert. Acknowledging twice changes nothing. */
export async function acknowledgeAlert(change: Change, id: string): Promise<Alert> {
  const { db, organizationId } = change
  const row = await db
    .selectFrom('alerts')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  if (!row) throw notFound('alert')
  if (row.acknowledgedAt !== null) return showAlert(row)
  const changed = await db
    .updateTable('alerts')
    .set({ acknowledgedAt: new Date() })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await audit(change, { action: 'alert.acknowledged', resourceType: 'alert', resourceId: id })
  return showAlert(changed)
}

function showAuditEntry(row: Selectable<Database['auditLog']>): AuditEntry {
  const { id, action, resourceType, resourceId } = row
  const changes = z.record(z.string(), z.unknown()).nullable().parse(row.changes)
  return { id, at: row.at.toISOString(), actor: actor.parse(row.actor), action, resourceType, resourceId, changes }
}

export async function listAuditLog(db: Db, organizationId: string, query: PageQuery) {
  const list = { name: 'audit-log', organizationId }
  const select = db.selectFrom('auditLog').selectAll().where('organizationId', '=', organizationId)
  return readPage(list, query, select, showAuditEntry)
}

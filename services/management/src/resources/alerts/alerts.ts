/**
 * Defines the endpoints of alerts (docs/api.md#d4). Validators write the alerts about licenses that more machines try to use than the limit
 * allows. The workers of management write the alerts about disabled endpoints, and about events of shops that wait.
 */

import { type alert, alerts as operations } from '@keyward/contract/management/activity'
import { sql } from 'kysely'
import type { z } from 'zod'

import { audit } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { listRows, lockRow, type OwnedRows, updateRow } from '../../crud/owned-rows.ts'
import type { Page, PageQuery } from '../../http/pagination.ts'
import { implement } from '../../operations/implement.ts'

type Alert = z.output<typeof alert>

const rows: OwnedRows<'alerts', Alert> = {
  table: 'alerts',
  type: 'alert',
  show: ({ id, kind, licenseId, endpointId, connectionId, count, firstAt, lastAt, acknowledgedAt }) => ({
    id,
    kind,
    licenseId,
    webhookEndpointId: endpointId,
    connectionId,
    count,
    firstAt: firstAt.toISOString(),
    lastAt: lastAt.toISOString(),
    acknowledgedAt: acknowledgedAt?.toISOString() ?? null,
  }),
}

interface AlertQuery extends PageQuery {
  open?: boolean | undefined
  licenseId?: string | undefined
}

export async function listAlerts(
  context: ReadContext,
  { open, licenseId, ...query }: AlertQuery,
): Promise<Page<Alert>> {
  return listRows(rows, context, query, [
    ...(open === undefined ? [] : [open ? sql`acknowledged_at is null` : sql`acknowledged_at is not null`]),
    ...(licenseId === undefined ? [] : [sql`license_id = ${licenseId}`]),
  ])
}

/** Acknowledges an alert. A repeated acknowledgement changes nothing. */
async function acknowledgeAlert(context: WriteContext, id: string): Promise<Alert> {
  const row = await lockRow(rows, context, id)
  if (row.acknowledgedAt !== null) return rows.show(row)
  const changed = await updateRow(rows, context, id, { acknowledgedAt: new Date() })
  await audit(context, { action: 'alert.acknowledged', resourceType: 'alert', resourceId: id })
  return rows.show(changed)
}

const tag = {
  name: 'Alerts',
  description:
    'Licenses that more machines try to use than their limit allows, disabled webhook endpoints, and events of shops that wait.',
}

export const alerts = implement(tag, operations, {
  listAlerts: { summary: 'List alerts', handle: (call) => listAlerts(call, call.query) },
  acknowledgeAlert: {
    summary: 'Acknowledge an alert',
    description:
      'A new alert is created when a check exceeds the limit of the license again, or when the endpoint is disabled again.',
    handle: (call) => acknowledgeAlert(call, call.params.id),
  },
})

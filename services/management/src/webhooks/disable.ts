/** Disables endpoints that return 410 or have failed for five days (docs/api.md#w5). Writes an alert, an audit entry and an event. */

import { uuidv7 } from '@keyward/database'
import { sql } from 'kysely'

import { audit } from '../audit/writer.ts'
import type { Db } from '../context.ts'
import { updateRow } from '../crud/owned-rows.ts'
import { endpointRows, showEndpoint } from './endpoint-rows.ts'

const MAX_FAILING_DAYS = 5

type Reason = 'GONE' | 'FAILING'

/**
 * Opens an alert, or increases the count of the alert that the vendor has not acknowledged yet. The caller has locked the endpoint, so an
 * endpoint has at most one open alert.
 */
async function alertVendor(db: Db, organizationId: string, endpointId: string): Promise<void> {
  await sql`
    with counted as (
      update alerts set count = count + 1, last_at = now()
      where endpoint_id = ${endpointId} and acknowledged_at is null returning id
    )
    insert into alerts (id, organization_id, endpoint_id, kind, count, first_at, last_at)
    select ${uuidv7()}::uuid, ${organizationId}::uuid, ${endpointId}::uuid, 'WEBHOOK_DISABLED', 1, now(), now()
    where not exists (select from counted)`.execute(db)
}

/** Disables the endpoint. Returns false if it is already disabled or, for the reason `FAILING`, has not failed for long enough. */
export async function disableEndpoint(db: Db, endpointId: string, reason: Reason): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    const row = await transaction
      .selectFrom('webhookEndpoints')
      .selectAll()
      .where('id', '=', endpointId)
      .where('enabled', '=', true)
      .$if(reason === 'FAILING', (query) =>
        query.where('failingSince', '<', sql<Date>`now() - ${MAX_FAILING_DAYS} * interval '1 day'`),
      )
      .forNoKeyUpdate()
      .executeTakeFirst()
    if (!row) return false
    const context = { db: transaction, organizationId: row.organizationId, actor: { type: 'SYSTEM' } as const }
    const changes = { enabled: false, disabledReason: reason }
    const changed = await updateRow(endpointRows, context, endpointId, { ...changes, updatedAt: new Date() })
    await alertVendor(transaction, row.organizationId, endpointId)
    await audit(context, {
      action: 'webhook_endpoint.disabled',
      resourceType: 'webhook_endpoint',
      resourceId: endpointId,
      changes,
      event: { type: 'webhook_endpoint.disabled', resource: showEndpoint(changed), more: { reason } },
    })
    return true
  })
}

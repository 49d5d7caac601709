/** Defines the rows of webhook endpoints. The representation of a row contains no secret. */

import type { WebhookEndpoint } from '@keyward/contract/management/webhooks'

import type { OwnedRows } from '../crud/owned-rows.ts'
import type { EndpointRow } from './secrets.ts'

export function showEndpoint(row: EndpointRow): WebhookEndpoint {
  return {
    id: row.id,
    url: row.url,
    types: row.types,
    description: row.description,
    enabled: row.enabled,
    disabledReason: row.disabledReason,
    failingSince: row.failingSince?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }
}

export const endpointRows: OwnedRows<'webhookEndpoints', WebhookEndpoint> = {
  table: 'webhookEndpoints',
  type: 'webhook_endpoint',
  quota: 'webhookEndpoints',
  show: showEndpoint,
}

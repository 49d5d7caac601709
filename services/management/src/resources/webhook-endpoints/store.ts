/** Creates and changes webhook endpoints, and replaces their secrets (docs/api.md#w3). No audit entry contains a secret. */

import { EVENT_TYPES } from '@keyward/contract/management/events'
import type {
  createWebhookEndpoint,
  updateWebhookEndpoint,
  WebhookEndpoint,
} from '@keyward/contract/management/webhooks'
import { uuidv7 } from '@keyward/database'
import { sql } from 'kysely'
import type { z } from 'zod'

import { audit, valuesBefore } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { differences } from '../../crud/differences.ts'
import { lockRow, updateRow } from '../../crud/owned-rows.ts'
import { invalid, invalidRequest, quote, type ValidationError } from '../../http/problem.ts'
import type { Keyring } from '../../keyring/keyring.ts'
import { urlError, type WebhookNetwork } from '../../outbound/network.ts'
import { createWebhookSecret } from '../../outbound/signature.ts'
import { requireWithinQuota } from '../../quotas/quotas.ts'
import { endpointRows, showEndpoint } from '../../webhooks/endpoint-rows.ts'
import { openSecrets, sealSecret } from '../../webhooks/secrets.ts'

type Created = WebhookEndpoint & { secret: string }

/** The number of hours after a rotation for which deliveries are also signed with the previous secret. */
const PREVIOUS_HOURS = 24
const MS_PER_HOUR = 3_600_000
const GROUPS = new Set(EVENT_TYPES.map((type) => `${type.split('.')[0]}.*`))
const TYPES: ReadonlySet<string> = new Set(EVENT_TYPES)

/** Returns an error for every pattern that matches no event type. */
export function unknownTypes(types: readonly string[]): ValidationError[] {
  return types.flatMap((type, i) => {
    if (type === '*' || TYPES.has(type) || GROUPS.has(type)) return []
    const detail = `must be *, an event type or a group such as license.*; got ${quote(type)}`
    return [{ pointer: `#/types/${i}`, detail }]
  })
}

function requireValid(
  network: WebhookNetwork,
  { url, types }: { url?: string | undefined; types?: readonly string[] | undefined },
): void {
  const wrong = url === undefined ? null : urlError(url, network)
  const errors = [
    ...(wrong === null ? [] : [{ pointer: '#/url', detail: wrong }]),
    ...(types === undefined ? [] : unknownTypes(types)),
  ]
  if (errors.length > 0) throw invalidRequest(errors)
}

export async function addEndpoint(
  context: WriteContext,
  keyring: Keyring,
  network: WebhookNetwork,
  input: z.output<typeof createWebhookEndpoint>,
): Promise<Created> {
  requireValid(network, input)
  await requireWithinQuota(context, 'webhookEndpoints')
  const { db, organizationId } = context
  const id = uuidv7()
  const { bytes, text } = createWebhookSecret()
  const { url, types, description = null, enabled = true } = input
  const fields = { url, types, description, enabled }
  const row = await db
    .insertInto('webhookEndpoints')
    .values({
      id,
      organizationId,
      ...fields,
      secretEncrypted: sealSecret(keyring, { id, organizationId }, bytes),
      masterKeyId: keyring.currentId,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  await audit(context, {
    action: 'webhook_endpoint.created',
    resourceType: 'webhook_endpoint',
    resourceId: id,
    changes: fields,
  })
  return { ...showEndpoint(row), secret: text }
}

/** Changes an endpoint. A change of `enabled` clears `disabledReason` and `failingSince`. */
export async function changeEndpoint(
  context: WriteContext,
  network: WebhookNetwork,
  id: string,
  input: z.output<typeof updateWebhookEndpoint>,
): Promise<WebhookEndpoint> {
  const before = await lockRow(endpointRows, context, id)
  requireValid(network, input)
  const changed = differences(before, input)
  if (changed === null) return showEndpoint(before)
  const state = changed.enabled === undefined ? {} : { disabledReason: null, failingSince: null }
  const row = await updateRow(endpointRows, context, id, { ...changed, ...state, updatedAt: new Date() })
  // By enabling the endpoint, the vendor also acknowledges its alert.
  if (changed.enabled === true)
    await context.db
      .updateTable('alerts')
      .set({ acknowledgedAt: new Date() })
      .where('organizationId', '=', context.organizationId)
      .where('endpointId', '=', id)
      .where('acknowledgedAt', 'is', null)
      .execute()
  await audit(context, {
    action: 'webhook_endpoint.changed',
    resourceType: 'webhook_endpoint',
    resourceId: id,
    changes: input,
    before: valuesBefore(before, changed),
  })
  return showEndpoint(row)
}

/** Replaces the secret of the endpoint. For 24 hours, deliveries are also signed with the former secret, but not with earlier ones. */
export async function rotateSecret(context: WriteContext, keyring: Keyring, id: string): Promise<Created> {
  const before = await lockRow(endpointRows, context, id)
  const { bytes, text } = createWebhookSecret()
  const [former] = openSecrets(keyring, before)
  if (former === undefined) throw invalid('/id', 'has no secret')
  const row = await updateRow(endpointRows, context, id, {
    secretEncrypted: sealSecret(keyring, before, bytes),
    previousEncrypted: sealSecret(keyring, before, former),
    previousUntil: new Date(Date.now() + PREVIOUS_HOURS * MS_PER_HOUR),
    masterKeyId: keyring.currentId,
    updatedAt: new Date(),
  })
  await audit(context, { action: 'webhook_endpoint.secret_rotated', resourceType: 'webhook_endpoint', resourceId: id })
  return { ...showEndpoint(row), secret: text }
}

/** Returns the ids of the endpoints that a member has created, directly or through others, according to the audit log. */
export async function endpointsOf({ db, organizationId }: WriteContext, memberId: string): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from webhook_endpoints where organization_id = ${organizationId} and exists (
      select from audit_log a where a.organization_id = ${organizationId} and a.resource_id = webhook_endpoints.id
        and a.action = 'webhook_endpoint.created'
        and (a.actor ->> 'memberId' = ${memberId} or a.actor -> 'issuedBy' ->> 'memberId' = ${memberId}))
    order by id`.execute(db)
  return rows.map(({ id }) => id)
}

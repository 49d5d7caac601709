/** Defines the endpoints of webhooks (docs/api.md#w3). */

import { idParams, listQuery, page } from '@keyward/contract'
import {
  createdWebhookEndpoint,
  createWebhookEndpoint,
  delivery,
  deliveryFilter,
  deliveryParams,
  replayedEvents,
  replayEvents,
  updateWebhookEndpoint,
  webhookEndpoint,
} from '@keyward/contract/management/webhooks'

import { crudEndpoints } from '../../crud/endpoints.ts'
import { deleteRow, listRows, readRow } from '../../crud/rows.ts'
import { vendorEndpoint } from '../../http/endpoint.ts'
import { endpointRows } from '../../webhooks/endpoint-rows.ts'
import { listDeliveries, replay, resendDelivery, testEndpoint } from './deliveries.ts'
import { addEndpoint, changeEndpoint, rotateSecret } from './store.ts'

const tag = { name: 'Webhooks', description: 'The URLs to which events are sent, and the deliveries.' }
const crud = crudEndpoints({
  tag,
  path: '/webhook-endpoints',
  operation: 'WebhookEndpoint',
  noun: 'a webhook endpoint',
  readPermission: 'webhooks.read',
  writePermission: 'webhooks.write',
  schema: webhookEndpoint,
})

const item = { tag, method: 'post', params: idParams } as const

const actions = [
  vendorEndpoint(
    'webhooks.write',
    {
      ...item,
      path: '/webhook-endpoints/{id}/rotate-secret',
      operationId: 'rotateWebhookSecret',
      summary: 'Replace the secret of a webhook endpoint',
      description: 'Returns the new secret. For 24 hours, deliveries are also signed with the former secret.',
      status: 200,
      response: createdWebhookEndpoint,
      secrets: ['secret'],
    },
    (call) => rotateSecret(call, call.dependencies.keyring, call.params.id),
  ),
  vendorEndpoint(
    'webhooks.write',
    {
      ...item,
      path: '/webhook-endpoints/{id}/test',
      operationId: 'testWebhookEndpoint',
      summary: 'Send a test event to a webhook endpoint',
      description: 'Sends an event of the type `ping` to this endpoint alone.',
      status: 201,
      response: delivery,
      errors: ['ENDPOINT_DISABLED'],
    },
    (call) => testEndpoint(call, call.params.id),
  ),
  vendorEndpoint(
    'webhooks.write',
    {
      ...item,
      path: '/webhook-endpoints/{id}/replay',
      operationId: 'replayEvents',
      summary: 'Send the events of a period again',
      description: 'Sends only events of the types of the endpoint, at most 10,000 in one request.',
      body: replayEvents,
      status: 200,
      response: replayedEvents,
      errors: ['ENDPOINT_DISABLED'],
    },
    (call) => replay(call, call.params.id, call.body),
  ),
]

const deliveries = [
  vendorEndpoint(
    'webhooks.read',
    {
      method: 'get',
      path: '/webhook-endpoints/{id}/deliveries',
      tag,
      operationId: 'listWebhookDeliveries',
      summary: 'List the deliveries of a webhook endpoint',
      description: 'Returns the deliveries of the last 30 days with their attempts.',
      params: idParams,
      query: listQuery(deliveryFilter),
      status: 200,
      response: page(delivery),
    },
    (call) => listDeliveries(call, call.params.id, call.query),
  ),
  vendorEndpoint(
    'webhooks.write',
    {
      tag,
      method: 'post',
      path: '/webhook-endpoints/{id}/deliveries/{deliveryId}/resend',
      operationId: 'resendWebhookDelivery',
      summary: 'Send the event of a delivery again',
      description: 'Creates another delivery, whether this delivery has succeeded, failed or not ended.',
      params: deliveryParams,
      status: 201,
      response: delivery,
      errors: ['ENDPOINT_DISABLED'],
    },
    (call) => resendDelivery(call, call.params.id, call.params.deliveryId),
  ),
]

export const webhookEndpoints = [
  crud.list({}, (call) => listRows(endpointRows, call, call.query)),
  crud.create(
    {
      description: 'Only this response contains the secret that signs deliveries.',
      body: createWebhookEndpoint,
      response: createdWebhookEndpoint,
      secrets: ['secret'],
      errors: ['QUOTA_EXCEEDED'],
    },
    (call) => addEndpoint(call, call.dependencies.keyring, call.dependencies.webhookNetwork, call.body),
  ),
  crud.read({}, (call) => readRow(endpointRows, call, call.params.id)),
  crud.change(
    { description: 'An endpoint that is enabled receives the events from then on.', body: updateWebhookEndpoint },
    (call) => changeEndpoint(call, call.dependencies.webhookNetwork, call.params.id, call.body),
  ),
  crud.delete({ description: 'Events that have not been delivered are no longer sent.' }, (call) =>
    deleteRow(endpointRows, call, call.params.id, { audited: ({ url, types }) => ({ url, types }) }),
  ),
  ...actions,
  ...deliveries,
]

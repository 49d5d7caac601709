/** Defines the endpoints of webhooks (docs/api.md#w3). */

import { webhookEndpoints as operations } from '@keyward/contract/management/webhooks'

import { deleteRow, listRows, readRow } from '../../crud/owned-rows.ts'
import { implement } from '../../operations/implement.ts'
import { endpointRows } from '../../webhooks/endpoint-rows.ts'
import { listDeliveries, replay, resendDelivery, testEndpoint } from './deliveries.ts'
import { addEndpoint, changeEndpoint, rotateSecret } from './store.ts'

const tag = { name: 'Webhooks', description: 'The URLs to which events are sent, and the deliveries.' }

export const webhookEndpoints = implement(tag, operations, {
  listWebhookEndpoints: {
    summary: 'List webhook endpoints',
    handle: (call) => listRows(endpointRows, call, call.query),
  },
  createWebhookEndpoint: {
    summary: 'Create a webhook endpoint',
    description: 'Only this response contains the secret that signs deliveries.',
    handle: (call) => addEndpoint(call, call.dependencies.keyring, call.dependencies.webhookNetwork, call.body),
  },
  readWebhookEndpoint: {
    summary: 'Read a webhook endpoint',
    handle: (call) => readRow(endpointRows, call, call.params.id),
  },
  updateWebhookEndpoint: {
    summary: 'Change a webhook endpoint',
    description: 'An endpoint that is enabled receives the events from then on.',
    handle: (call) => changeEndpoint(call, call.dependencies.webhookNetwork, call.params.id, call.body),
  },
  deleteWebhookEndpoint: {
    summary: 'Delete a webhook endpoint',
    description: 'Events that have not been delivered are no longer sent.',
    handle: (call) => deleteRow(endpointRows, call, call.params.id, { audited: ({ url, types }) => ({ url, types }) }),
  },
  rotateWebhookSecret: {
    summary: 'Replace the secret of a webhook endpoint',
    description: 'Returns the new secret. For 24 hours, deliveries are also signed with the former secret.',
    handle: (call) => rotateSecret(call, call.dependencies.keyring, call.params.id),
  },
  testWebhookEndpoint: {
    summary: 'Send a test event to a webhook endpoint',
    description: 'Sends an event of the type `ping` to this endpoint alone.',
    errors: ['ENDPOINT_DISABLED'],
    handle: (call) => testEndpoint(call, call.params.id),
  },
  replayEvents: {
    summary: 'Send the events of a period again',
    description: 'Sends only events of the types of the endpoint, at most 10,000 in one request.',
    errors: ['ENDPOINT_DISABLED'],
    handle: (call) => replay(call, call.params.id, call.body),
  },
  listWebhookDeliveries: {
    summary: 'List the deliveries of a webhook endpoint',
    description: 'Returns the deliveries of the last 30 days with their attempts.',
    handle: (call) => listDeliveries(call, call.params.id, call.query),
  },
  resendWebhookDelivery: {
    summary: 'Send the event of a delivery again',
    description: 'Creates another delivery, whether this delivery has succeeded, failed or not ended.',
    errors: ['ENDPOINT_DISABLED'],
    handle: (call) => resendDelivery(call, call.params.id, call.params.deliveryId),
  },
})

/** Webhook endpoints and their deliveries (docs/api.md#w3). The secret of an endpoint is shown once. */

import { z } from 'zod'

import { text } from '../text.ts'
import { EXAMPLE_ID, id, listQuery, moment, page, timestamp } from './common.ts'
import { operations } from './operations.ts'

const url = text(2_000).meta({
  description:
    'The URL that receives events with POST. It must use https, port 443 or 8443 and a public address, without user, password or fragment. The operator can allow other URLs.',
  example: 'https://hooks.example.com/keyward',
})
/** The service checks that the types exist. */
const pattern = text(100).meta({ example: 'license.*' })
const types = z
  .array(pattern)
  .min(1)
  .max(50)
  .transform((list) => [...new Set(list)])
  .meta({ description: 'Types of events, groups such as `license.*`, or `*` for all.', example: ['license.*'] })
const shownTypes = z
  .array(z.string())
  .meta({ description: 'The types of events that the endpoint receives.', example: ['license.*'] })
const description = text(200, 0).nullable().meta({ description: 'The purpose of the endpoint.', example: 'CRM' })
const enabled = z.boolean().meta({ description: 'Whether events are sent to the endpoint.', example: true })

export const webhookEndpoint = z
  .object({
    id: z.uuid().meta({ description: 'The id of the endpoint.', example: EXAMPLE_ID }),
    url,
    types: shownTypes,
    description,
    enabled,
    disabledReason: z.enum(['GONE', 'FAILING']).nullable().meta({
      description:
        'The reason why Keyward disabled the endpoint: a response with 410, or five days without success. Null otherwise.',
      example: null,
    }),
    failingSince: timestamp('Since when every attempt has failed; null: the last one succeeded.').nullable(),
    createdAt: timestamp('When it was created.'),
    updatedAt: timestamp('When it was last changed.'),
  })
  .meta({ id: 'WebhookEndpoint', description: 'A URL that receives events.' })
export type WebhookEndpoint = z.infer<typeof webhookEndpoint>

const secret = z.string().optional().meta({
  description: 'The secret that signs deliveries. It is shown once, and a replayed response omits it.',
  example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw0123456789a=',
})
export const createdWebhookEndpoint = webhookEndpoint
  .extend({ secret })
  .meta({ id: 'CreatedWebhookEndpoint', description: 'A webhook endpoint with a new secret.' })

export const createWebhookEndpoint = z
  .strictObject({ url, types, description: description.optional(), enabled: enabled.optional() })
  .meta({ example: { url: 'https://hooks.example.com/keyward', types: ['license.*'] } })
export const updateWebhookEndpoint = createWebhookEndpoint.partial().meta({ example: { enabled: true } })

const deliveryStatus = z.enum(['PENDING', 'SUCCEEDED', 'FAILED']).meta({
  description: 'The status of the delivery. `PENDING`: another attempt follows.',
  example: 'SUCCEEDED',
})
export const delivery = z
  .object({
    id: z.uuid().meta({ description: 'The id of the delivery.', example: EXAMPLE_ID }),
    eventId: z
      .uuid()
      .meta({ description: 'The id of the event, which is the `webhook-id` of every attempt.', example: EXAMPLE_ID }),
    eventType: z.string().meta({ description: 'The type of the event.', example: 'license.suspended' }),
    cause: z
      .enum(['EVENT', 'RESEND', 'REPLAY', 'TEST'])
      .meta({ description: 'The cause of the delivery.', example: 'EVENT' }),
    status: deliveryStatus,
    nextAttemptAt: timestamp('The time of the next attempt; null if there is none.').nullable(),
    attempts: z
      .array(
        z.object({
          at: timestamp('The start of the attempt.'),
          durationMs: z.int().meta({ description: 'The duration of the attempt in milliseconds.', example: 120 }),
          status: z
            .int()
            .nullable()
            .meta({ description: 'The HTTP status of the response; null without a response.', example: 200 }),
          error: z
            .string()
            .nullable()
            .meta({ description: 'The reason for the failure; null after a success.', example: null }),
          response: z.string().nullable().meta({
            description:
              'The first 2 KiB of the body of the response; null without a response, and beyond the daily limit of stored responses.',
            example: 'ok',
          }),
        }),
      )
      .meta({ description: 'The attempts, oldest first.' }),
  })
  .meta({ id: 'WebhookDelivery', description: 'An event for one endpoint.' })
export type Delivery = z.infer<typeof delivery>

const deliveryFilter = {
  status: deliveryStatus.optional(),
  eventType: text(100)
    .optional()
    .meta({ description: 'Returns only deliveries of events of this type.', example: 'license.suspended' }),
  eventId: id('Only of this event.').optional(),
}
const deliveryParams = z.strictObject({
  id: id('The id of the endpoint.'),
  deliveryId: id('The id of the delivery.'),
})

export const MAX_REPLAYED = 10_000
export const replayEvents = z
  .strictObject({
    from: moment('The first time.'),
    to: moment('The time after the last. Default: now.').optional(),
    types: types.optional(),
  })
  .meta({ example: { from: '2026-11-20T09:00:00Z', to: '2026-11-20T10:00:00Z' } })
const replayedEvents = z.object({
  deliveries: z.int().meta({ description: 'The number of events that are sent again.', example: 42 }),
})

export const webhookEndpoints = operations({
  listWebhookEndpoints: {
    route: 'GET /webhook-endpoints',
    needs: 'webhooks.read',
    query: listQuery({}),
    returns: page(webhookEndpoint),
  },
  createWebhookEndpoint: {
    route: 'POST /webhook-endpoints',
    needs: 'webhooks.write',
    body: createWebhookEndpoint,
    returns: createdWebhookEndpoint,
    creates: true,
    secrets: ['secret'],
  },
  readWebhookEndpoint: { route: 'GET /webhook-endpoints/{id}', needs: 'webhooks.read', returns: webhookEndpoint },
  updateWebhookEndpoint: {
    route: 'PATCH /webhook-endpoints/{id}',
    needs: 'webhooks.write',
    body: updateWebhookEndpoint,
    returns: webhookEndpoint,
  },
  deleteWebhookEndpoint: { route: 'DELETE /webhook-endpoints/{id}', needs: 'webhooks.write' },
  rotateWebhookSecret: {
    route: 'POST /webhook-endpoints/{id}/rotate-secret',
    needs: 'webhooks.write',
    returns: createdWebhookEndpoint,
    secrets: ['secret'],
  },
  testWebhookEndpoint: {
    route: 'POST /webhook-endpoints/{id}/test',
    needs: 'webhooks.write',
    returns: delivery,
    creates: true,
  },
  replayEvents: {
    route: 'POST /webhook-endpoints/{id}/replay',
    needs: 'webhooks.write',
    body: replayEvents,
    returns: replayedEvents,
  },
  listWebhookDeliveries: {
    route: 'GET /webhook-endpoints/{id}/deliveries',
    needs: 'webhooks.read',
    query: listQuery(deliveryFilter),
    returns: page(delivery),
  },
  resendWebhookDelivery: {
    route: 'POST /webhook-endpoints/{id}/deliveries/{deliveryId}/resend',
    needs: 'webhooks.write',
    params: deliveryParams,
    returns: delivery,
    creates: true,
  },
})

/** Webhook endpoints and their deliveries (docs/api.md#w3). The secret of an endpoint is shown once. */

import { z } from 'zod'

import { text } from '../text.ts'
import { EXAMPLE_ID, id, moment, timestamp } from './common.ts'

const url = text(2_000).meta({
  description:
    'Where events are sent with POST: https, port 443 or 8443, a public address, no user, password or fragment. The operator can allow more.',
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
const shownTypes = z.array(z.string()).meta({ description: 'What it receives.', example: ['license.*'] })
const description = text(200, 0).nullable().meta({ description: 'What the endpoint is for.', example: 'CRM' })
const enabled = z.boolean().meta({ description: 'Whether events are sent to it.', example: true })

export const webhookEndpoint = z
  .object({
    id: z.uuid().meta({ description: 'The id of the endpoint.', example: EXAMPLE_ID }),
    url,
    types: shownTypes,
    description,
    enabled,
    disabledReason: z.enum(['GONE', 'FAILING']).nullable().meta({
      description: 'Why Keyward has disabled it: a response 410, or five days without success; null otherwise.',
      example: null,
    }),
    failingSince: timestamp('Since when every attempt has failed; null: the last one succeeded.').nullable(),
    createdAt: timestamp('When it was created.'),
    updatedAt: timestamp('When it was last changed.'),
  })
  .meta({ id: 'WebhookEndpoint', description: 'Where events are sent.' })
export type WebhookEndpoint = z.infer<typeof webhookEndpoint>

const secret = z.string().optional().meta({
  description: 'The secret that signs, shown once; a replayed response omits it.',
  example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw0123456789a=',
})
export const createdWebhookEndpoint = webhookEndpoint
  .extend({ secret })
  .meta({ id: 'CreatedWebhookEndpoint', description: 'A webhook endpoint with a new secret.' })

export const createWebhookEndpoint = z
  .strictObject({ url, types, description: description.optional(), enabled: enabled.optional() })
  .meta({ example: { url: 'https://hooks.example.com/keyward', types: ['license.*'] } })
export const updateWebhookEndpoint = createWebhookEndpoint.partial().meta({ example: { enabled: true } })

export const deliveryStatus = z.enum(['PENDING', 'SUCCEEDED', 'FAILED']).meta({
  description: '`PENDING`: there will be another attempt.',
  example: 'SUCCEEDED',
})
export const delivery = z
  .object({
    id: z.uuid().meta({ description: 'The id of the delivery.', example: EXAMPLE_ID }),
    eventId: z
      .uuid()
      .meta({ description: 'The event, which is the `webhook-id` of every attempt.', example: EXAMPLE_ID }),
    eventType: z.string().meta({ description: 'The type of the event.', example: 'license.suspended' }),
    cause: z.enum(['EVENT', 'RESEND', 'REPLAY', 'TEST']).meta({ description: 'Why it is sent.', example: 'EVENT' }),
    status: deliveryStatus,
    nextAttemptAt: timestamp('When the next attempt is due; null: there is none.').nullable(),
    attempts: z
      .array(
        z.object({
          at: timestamp('When it began.'),
          durationMs: z.int().meta({ description: 'How long it took.', example: 120 }),
          status: z
            .int()
            .nullable()
            .meta({ description: 'The status of the response; null: there was none.', example: 200 }),
          error: z.string().nullable().meta({ description: 'Why it failed; null: it succeeded.', example: null }),
          response: z.string().nullable().meta({ description: 'The first 2 kB of the response.', example: 'ok' }),
        }),
      )
      .meta({ description: 'The attempts, the first one first.' }),
  })
  .meta({ id: 'WebhookDelivery', description: 'An event for one endpoint.' })
export type Delivery = z.infer<typeof delivery>

export const deliveryFilter = {
  status: deliveryStatus.optional(),
  eventType: text(100).optional().meta({ description: 'Only of this type.', example: 'license.suspended' }),
  eventId: id('Only of this event.').optional(),
}
export const deliveryParams = z.strictObject({
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
export const replayedEvents = z.object({
  deliveries: z.int().meta({ description: 'How many events are sent again.', example: 42 }),
})

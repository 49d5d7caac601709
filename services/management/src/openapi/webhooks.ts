/** The request that Keyward sends to webhook endpoints (docs/api.md#w4), as a webhook of `/openapi.json`. */

import { EVENT_TYPES, event, type EventType, eventTypes } from '@keyward/contract/management/events'
import { z } from 'zod'
import type { ZodOpenApiPathItemObject } from 'zod-openapi'

function header(name: string, description: string, example: string) {
  return { in: 'header', name, required: true, description, schema: { type: 'string' }, example } as const
}

/** The schema of each type. Later versions may add types, so the last alternative accepts any event. */
const ofType = (type: EventType) =>
  event
    .extend({
      type: z.literal(type).meta({ description: 'The type of the event.', example: type }),
      data: eventTypes[type].data.meta({ description: 'The members of this type.' }),
    })
    .meta({ id: schemaName(type), title: type, description: eventTypes[type].description })

/** Returns `LicenseKeyReplacedEvent` for `license.key_replaced`. */
function schemaName(type: EventType): string {
  return `${type.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())}Event`
}

export const WEBHOOKS: Record<string, ZodOpenApiPathItemObject> = {
  event: {
    post: {
      operationId: 'receiveEvent',
      tags: ['Webhooks'],
      summary: 'Receive an event',
      description:
        'Keyward sends this request to the URL of each webhook endpoint whose types include the type of the event. The signature follows ' +
        'Standard Webhooks 1.0.0. An event is sent at least once, and events are in no particular order. `type` determines the members of `data`.',
      security: [],
      parameters: [
        header(
          'webhook-id',
          'The id of the event, which is the same in every attempt.',
          '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b',
        ),
        header('webhook-timestamp', 'The time of the attempt in seconds since 1970.', '1763631000'),
        header(
          'webhook-signature',
          'One or two signatures, separated by a space: `v1,` and the base64 of the HMAC-SHA256 over `id.timestamp.body`.',
          'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
        ),
      ],
      requestBody: {
        required: true,
        content: { 'application/json': { schema: z.union([...EVENT_TYPES.map(ofType), event]) } },
      },
      responses: {
        '204': { description: 'The event was received. Any 2xx status is a success.' },
        '410': { description: 'The endpoint exists no longer. Keyward disables it.' },
        '4XX': { description: 'The event was not received. Keyward sends it again.' },
        '5XX': {
          description: 'The event was not received. Keyward sends it again, after `Retry-After` in a 429 or 503.',
        },
      },
    },
  },
}

/** Connections to shops, and their inboxes of events, which become orders (docs/api.md#b4). The secret of a connection is never returned. */

import { z } from 'zod'

import { text } from '../text.ts'
import { EXAMPLE_ID, id, listQuery, name, page, timestamp } from './common.ts'
import { operations } from './operations.ts'
import { orderState } from './orders.ts'

export const shop = z.enum(['stripe', 'paddle', 'polar', 'lemonsqueezy', 'fastspring']).meta({
  description: 'The shop that sends the events.',
  example: 'stripe',
})
export type Shop = z.infer<typeof shop>

const connectionName = name.meta({ description: 'The name of the connection.', example: 'Stripe' })
const mode = z.enum(['live', 'test']).meta({
  description:
    'Whether the events are about real money. The other events are rejected. Test orders have the provider `…-test`.',
  example: 'live',
})
const secret = text(200, 8).meta({
  description: 'The secret with which the shop signs its events. No response contains it.',
  example: 'whsec_0123456789abcdef',
})
const states = z
  .array(orderState)
  .min(1)
  .max(orderState.options.length)
  .transform((list) => [...new Set(list)])
  .meta({ description: 'The states of payments that change orders; default: all.', example: orderState.options })
const unknownPrices = z.enum(['wait', 'ignore']).meta({
  description: 'Whether an event with a price that no template lists waits until a template lists it, or is ignored.',
  example: 'wait',
})

export const connection = z
  .object({
    id: z.uuid().meta({ description: 'The id of the connection.', example: EXAMPLE_ID }),
    name: connectionName,
    shop,
    mode,
    states: z.array(orderState).meta(states.meta() ?? {}),
    unknownPrices,
    createdAt: timestamp('The time of creation.'),
    updatedAt: timestamp('The time of the last change.'),
  })
  .meta({ id: 'CommerceConnection', description: 'A shop whose events become orders.' })
export type Connection = z.infer<typeof connection>

export const createConnection = z
  .strictObject({
    name: connectionName,
    shop,
    mode: mode.default('live'),
    secret,
    states: states.optional(),
    unknownPrices: unknownPrices.optional(),
  })
  .meta({ example: { name: 'Stripe', shop: 'stripe', mode: 'live', secret: 'whsec_0123456789abcdef' } })
export const updateConnection = z
  .strictObject({ name: connectionName, secret, states, unknownPrices })
  .partial()
  .meta({ example: { states: ['paid', 'canceled'] } })

const eventState = z.enum(['PENDING', 'WAITING', 'DONE', 'IGNORED', 'FAILED']).meta({
  description:
    'The state of the event. `PENDING`: another attempt follows. `WAITING`: `error` names what it waits for. `IGNORED`: it changes no order.',
  example: 'DONE',
})
export const shopEvent = z
  .object({
    id: z.uuid().meta({ description: 'The id in the inbox.', example: EXAMPLE_ID }),
    eventId: z.string().meta({ description: 'The id of the event in the shop.', example: 'evt_1042' }),
    type: z.string().meta({ description: 'The type of the event in the shop.', example: 'invoice.paid' }),
    state: eventState,
    orderId: z
      .string()
      .nullable()
      .meta({ description: 'The id of the order; null until it is known.', example: 'cs_1042' }),
    attempts: z.int().meta({ description: 'The number of attempts that did not succeed.', example: 0 }),
    error: z.string().nullable().meta({ description: 'Why the last attempt did not succeed.', example: null }),
    nextAttemptAt: timestamp('The time of the next attempt; null if there is none.').nullable(),
    receivedAt: timestamp('The time at which the event arrived.'),
    handledAt: timestamp('The time at which the event was handled; null before.').nullable(),
  })
  .meta({ id: 'ShopEvent', description: 'An event that a shop has sent.' })
export type ShopEvent = z.infer<typeof shopEvent>

/** Shops list many details of an order in its events. */
const MAX_EVENT_BYTES = 256 * 1024

const eventParams = z.strictObject({ id: id('The id of the connection.'), eventId: id('The id in the inbox.') })

export const commerce = operations({
  listConnections: { route: 'GET /commerce', needs: 'orders.read', query: listQuery({}), returns: page(connection) },
  createConnection: {
    route: 'POST /commerce',
    needs: 'orders.write',
    body: createConnection,
    returns: connection,
    creates: true,
  },
  readConnection: { route: 'GET /commerce/{id}', needs: 'orders.read', returns: connection },
  updateConnection: {
    route: 'PATCH /commerce/{id}',
    needs: 'orders.write',
    body: updateConnection,
    returns: connection,
  },
  deleteConnection: { route: 'DELETE /commerce/{id}', needs: 'orders.write' },
  receiveShopEvents: {
    route: 'POST /commerce/{id}/events',
    needs: 'signature',
    body: z.looseObject({}).meta({ description: 'The event, as the shop sends it.', example: { id: 'evt_1042' } }),
    returns: z.object({ stored: z.int().meta({ description: 'The number of new events.', example: 1 }) }),
    maxBodyBytes: MAX_EVENT_BYTES,
  },
  listShopEvents: {
    route: 'GET /commerce/{id}/events',
    needs: 'orders.read',
    query: listQuery({ state: eventState.optional() }),
    returns: page(shopEvent),
  },
  retryShopEvent: {
    route: 'POST /commerce/{id}/events/{eventId}/retry',
    needs: 'orders.write',
    params: eventParams,
    returns: shopEvent,
  },
})

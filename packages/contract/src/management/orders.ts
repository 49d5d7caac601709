/** Orders: what shops have sold. Each line of an order creates licenses and follows its payment (docs/api.md#b1). */

import { z } from 'zod'

import { text } from '../text.ts'
import { externalIdOf, EXAMPLE_ID, id, listQuery, moment, name, newEmail, page, timestamp } from './common.ts'
import { license } from './licenses.ts'
import { operations } from './operations.ts'

export const MAX_QUANTITY = 100
const provider = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be 1 to 32 lower-case letters, digits and hyphens, and begin with a letter')
  .meta({ description: 'The shop, such as `stripe` or a name of your own.', example: 'stripe' })
const orderId = text(200).meta({ description: 'The id of the order in the shop.', example: 'cs_1042' })
const line = text(100).meta({ description: 'The line of the order.', example: '1' })

export const orderState = z.enum(['paid', 'canceled', 'refunded', 'disputed']).meta({
  description:
    'The state of the payment. `canceled` leaves what is paid for, `refunded` revokes the licenses, `disputed` suspends them.',
  example: 'paid',
})
export type OrderState = z.infer<typeof orderState>

const quantity = z.int().min(1).max(MAX_QUANTITY)

export const order = z
  .object({
    id: z.uuid().meta({ description: 'The id of the line.', example: EXAMPLE_ID }),
    provider,
    orderId,
    line,
    templateId: z.uuid().meta({ description: 'The id of the template that was sold.', example: EXAMPLE_ID }),
    state: orderState,
    quantity: quantity.meta({ description: 'The number that was sold.', example: 1 }),
    paidThrough: timestamp('The time until which the line is paid; null without one.').nullable(),
    occurredAt: timestamp("The time of the latest change, by the shop's clock."),
    licenses: z.array(license).meta({ description: 'The licenses of the line, with their keys.' }),
    createdAt: timestamp('The time of creation.'),
    updatedAt: timestamp('The time of the last change.'),
  })
  .meta({ id: 'Order', description: 'One line of an order of a shop.' })
export type Order = z.infer<typeof order>

export const putOrder = z
  .strictObject({
    templateId: id('The id of the template that was sold. Alternative to `priceId`.').optional(),
    priceId: text(200).optional().meta({
      description: 'The id of the price in the shop, which a template lists in `priceIds`.',
      example: 'price_1',
    }),
    quantity: quantity.optional().meta({ description: 'The number that was sold, up to 100; default 1.', example: 1 }),
    customer: z
      .strictObject({
        externalId: externalIdOf('customer', 'cus_4711').optional(),
        email: newEmail,
        name: name.nullable().optional().meta({ description: 'The name of the customer.', example: 'Ada Lovelace' }),
      })
      .meta({
        description:
          'The buyer. A customer with the external id, or otherwise with the e-mail address, is used if there is one.',
      }),
    state: orderState,
    paidThrough: moment('The time until which the line is paid. The licenses expire at this time.')
      .nullable()
      .optional(),
    occurredAt: moment(
      "The time of the change, by the shop's clock; default: now. An earlier change than the stored one changes nothing.",
    ).optional(),
  })
  .refine(({ templateId, priceId }) => (templateId === undefined) !== (priceId === undefined), {
    path: ['templateId'],
    message: 'is required unless priceId is given, and must be absent otherwise',
  })
  .meta({ example: { priceId: 'price_1', customer: { email: 'ada@example.com' }, state: 'paid' } })

const wait = z
  .string()
  .regex(/^(?:\d|10)$/, 'must be a whole number from 0 to 10')
  .optional()
  .meta({ description: 'The number of seconds, up to 10, to wait for the order; default 0.', example: '5' })

export const orders = operations({
  listOrders: {
    route: 'GET /orders',
    needs: 'orders.read',
    query: listQuery({ provider: provider.optional(), state: orderState.optional() }),
    returns: page(order),
  },
  readOrder: {
    route: 'GET /orders/{provider}/{orderId}',
    needs: 'orders.read',
    params: z.strictObject({ provider, orderId }),
    query: z.strictObject({ wait }),
    returns: z.object({ lines: z.array(order).meta({ description: 'The lines of the order.' }) }),
  },
  putOrder: {
    route: 'PUT /orders/{provider}/{orderId}/{line}',
    needs: 'orders.write',
    params: z.strictObject({ provider, orderId, line }),
    body: putOrder,
    returns: order,
    propagates: true,
  },
})

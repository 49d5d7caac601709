/** Receives events of Lemon Squeezy. They have no id and no time of sending, so the hash of an event is its id. */

import { createHash } from 'node:crypto'

import { z } from 'zod'

import { isHmac, numericId, on, quantity, type Receiver, template, time, translateBy } from '../shop.ts'

const meta = z.object({ event_name: z.string(), test_mode: z.boolean().nullish(), custom_data: template })
const event = z.object({ meta })
const ofData = <Schema extends z.ZodType>(attributes: Schema) =>
  z.object({ meta, data: z.object({ id: numericId, attributes }) })

const buyer = z.object({ customer_id: numericId, user_email: z.string(), user_name: z.string().nullish() })
const customerOf = ({ customer_id: externalId, user_email: email, user_name: name }: z.output<typeof buyer>) => ({
  externalId: `lemonsqueezy-${externalId}`,
  email,
  name,
})
const order = buyer.extend({
  identifier: z.string(),
  status: z.string(),
  created_at: time,
  updated_at: time,
  refunded_at: time.nullish(),
  first_order_item: z.object({ id: numericId, variant_id: numericId, quantity }),
})
const subscription = buyer.extend({
  order_id: numericId,
  order_item_id: numericId,
  variant_id: numericId,
  status: z.string(),
  renews_at: time.nullish(),
  ends_at: time.nullish(),
  updated_at: time,
  first_subscription_item: z.object({ quantity }).nullish(),
})

/** States how long a subscription is paid. A subscription that is past due changes nothing. */
const follow = on(ofData(subscription), ({ meta: { custom_data }, data: { id, attributes } }) => {
  const { status, order_id, updated_at: occurredAt } = attributes
  const given = { order: order_id, references: [`subscription-${id}`], occurredAt }
  if (status === 'cancelled' || status === 'expired') return { ...given, state: 'canceled', lines: null }
  if (status !== 'active') return null
  const line = {
    line: attributes.order_item_id,
    template: custom_data,
    priceId: attributes.variant_id,
    quantity: attributes.first_subscription_item?.quantity ?? 1,
    paidThrough: attributes.renews_at ?? undefined,
  }
  return { ...given, state: 'paid', lines: [line], customer: customerOf(attributes) }
})

const translations = {
  order_created: on(ofData(order), ({ meta: { custom_data }, data: { id, attributes } }) => {
    const { status, identifier, created_at: occurredAt, first_order_item: item } = attributes
    if (status !== 'paid') return null
    const line = { line: item.id, template: custom_data, priceId: item.variant_id, quantity: item.quantity }
    const customer = customerOf(attributes)
    return { order: id, references: [identifier], state: 'paid', occurredAt, lines: [line], customer }
  }),
  order_refunded: on(ofData(order), ({ data: { id, attributes } }) =>
    attributes.status === 'refunded'
      ? {
          order: id,
          references: [],
          state: 'refunded',
          occurredAt: attributes.refunded_at ?? attributes.updated_at,
          lines: null,
        }
      : null,
  ),
  subscription_created: follow,
  subscription_updated: follow,
} as const

export const lemonSqueezy: Receiver = {
  signatureHeader: 'x-signature',
  isSigned: ({ bytes, header }, secret) => isHmac([header('x-signature')], secret, [bytes], 'hex'),
  eventsOf(body, { bytes }) {
    const { event_name: type, test_mode } = event.parse(body).meta
    const id = createHash('sha256').update(bytes).digest('hex')
    return [{ id, type, isLive: test_mode !== true, text: Buffer.from(bytes).toString() }]
  },
  translate: (given) => translateBy(translations, event.parse(given).meta.event_name, given),
}

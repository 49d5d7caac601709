/** Receives events of FastSpring, several in one request. The expansion of webhooks must be switched on, or events contain only ids. */

import { z } from 'zod'

import { isHmac, milliseconds, on, quantity, type Receiver, reference, template, translateBy } from '../shop.ts'

/** The maximum number of events in one request. */
const MAX_EVENTS = 100
const event = z.object({ id: z.string(), type: z.string(), live: z.boolean() })
const ofData = <Schema extends z.ZodType>(data: Schema) => z.object({ created: milliseconds, data })

const subscription = z.object({ id: z.string(), next: milliseconds.nullish() })
const item = z.object({
  product: z.union([z.string(), z.object({ product: z.string() }).transform(({ product }) => product)]),
  quantity,
  subscription: z.union([z.string().transform((id) => ({ id, next: undefined })), subscription]).nullish(),
  attributes: template,
})
const person = z.object({ first: z.string().nullish(), last: z.string().nullish(), email: z.string() })
const customerOf = (externalId: string, { first, last, email }: z.output<typeof person>) => ({
  externalId,
  email,
  name: [first, last].filter(Boolean).join(' ') || null,
})
const order = z.object({
  id: z.string(),
  reference: z.string().nullish(),
  account: reference,
  customer: person,
  items: z.array(item),
  tags: template,
})
const charge = z.object({
  order: reference,
  account: z.object({ id: z.string(), contact: person }),
  subscription: subscription.extend({ product: item.shape.product, quantity }),
})
const returned = z.object({
  original: z.object({ id: z.string(), total: z.number().nullish() }),
  totalReturn: z.number(),
})
const ofSubscription = z.object({ id: z.string() })

const translations = {
  'order.completed': on(ofData(order), ({ created: occurredAt, data }) => ({
    order: data.id,
    references: [data.reference, ...data.items.map((one) => one.subscription?.id)],
    state: 'paid',
    occurredAt,
    lines: data.items.map((one) => ({
      line: one.product,
      template: one.attributes ?? data.tags,
      priceId: one.product,
      quantity: one.quantity,
      paidThrough: one.subscription?.next ?? undefined,
    })),
    customer: customerOf(data.account, data.customer),
  })),
  // A renewal has an order of its own in the shop. It names the subscription, by which the first order is found.
  'subscription.charge.completed': on(ofData(charge), ({ created: occurredAt, data }) => {
    const { id, product, quantity: count, next } = data.subscription
    const line = {
      line: product,
      template: undefined,
      priceId: product,
      quantity: count,
      paidThrough: next ?? undefined,
    }
    const customer = customerOf(data.account.id, data.account.contact)
    return { order: id, references: [data.order], state: 'paid', occurredAt, lines: [line], customer }
  }),
  'subscription.deactivated': on(ofData(ofSubscription), ({ created: occurredAt, data }) => ({
    order: data.id,
    references: [],
    state: 'canceled',
    occurredAt,
    lines: null,
  })),
  'return.created': on(ofData(returned), ({ created: occurredAt, data: { original, totalReturn } }) =>
    totalReturn < (original.total ?? totalReturn)
      ? null
      : { order: original.id, references: [], state: 'refunded', occurredAt, lines: null },
  ),
} as const

export const fastSpring: Receiver = {
  signatureHeader: 'x-fs-signature',
  isSigned: ({ bytes, header }, secret) => isHmac([header('x-fs-signature')], secret, [bytes], 'base64'),
  eventsOf: (body) =>
    z
      .object({ events: z.array(event.loose()).max(MAX_EVENTS) })
      .parse(body)
      .events.map((one) => ({ id: one.id, type: one.type, isLive: one.live, text: JSON.stringify(one) })),
  translate: (given) => translateBy(translations, event.parse(given).type, given),
}

/** Receives events of Stripe. A Checkout Session with an invoice sells through the invoice, whose lines name the prices. */

import { z } from 'zod'

import {
  fieldsOf,
  isHmac,
  isRecent,
  on,
  quantity,
  type Receiver,
  reference,
  seconds,
  template,
  translateBy,
} from '../shop.ts'

const event = z.object({ id: z.string(), type: z.string(), livemode: z.boolean() })
const ofObject = <Schema extends z.ZodType>(object: Schema) =>
  z.object({ created: seconds, data: z.object({ object }) })
const payment = z.object({ payment_intent: reference.nullish() })

const session = payment.extend({
  id: z.string(),
  payment_status: z.string(),
  subscription: reference.nullish(),
  invoice: reference.nullish(),
  invoice_creation: z.object({ enabled: z.boolean() }).nullish(),
  customer: reference.nullish(),
  customer_details: z.object({ email: z.string(), name: z.string().nullish() }).nullish(),
  metadata: template,
})

const sell = on(ofObject(session), ({ created: occurredAt, data: { object } }) => {
  const { id, payment_status, subscription, invoice, customer, customer_details: buyer } = object
  const isInvoiced =
    typeof subscription === 'string' || typeof invoice === 'string' || object.invoice_creation?.enabled === true
  const order = subscription ?? invoice ?? id
  const references = [id, invoice, object.payment_intent]
  if (isInvoiced || payment_status === 'unpaid') return { order, references, state: null, occurredAt, lines: null }
  const line = { line: '1', template: object.metadata, priceId: undefined, quantity: 1 }
  const bought = { externalId: customer ?? undefined, email: buyer?.email, name: buyer?.name }
  return { order, references, state: 'paid', occurredAt, lines: [line], customer: bought }
})

const invoiceLine = z.object({
  id: z.string(),
  quantity,
  price: reference.nullish(),
  pricing: z.object({ price_details: z.object({ price: reference.nullish() }).nullish() }).nullish(),
  period: z.object({ end: seconds }),
  proration: z.boolean().nullish(),
  subscription_item: z.string().nullish(),
  parent: z
    .object({
      subscription_item_details: z
        .object({ subscription_item: z.string().nullish(), proration: z.boolean().nullish() })
        .nullish(),
    })
    .nullish(),
  metadata: template,
})
const invoice = payment.extend({
  id: z.string(),
  charge: reference.nullish(),
  customer: reference.nullish(),
  customer_email: z.string().nullish(),
  customer_name: z.string().nullish(),
  subscription: reference.nullish(),
  subscription_details: z.object({ metadata: template }).nullish(),
  parent: z
    .object({ subscription_details: z.object({ subscription: reference.nullish(), metadata: template }).nullish() })
    .nullish(),
  metadata: template,
  lines: z.object({ data: z.array(invoiceLine) }),
})

const sellInvoice = on(ofObject(invoice), ({ created: occurredAt, data: { object } }) => {
  const ofParent = object.parent?.subscription_details
  const subscription = ofParent?.subscription ?? object.subscription
  const common = object.metadata ?? ofParent?.metadata ?? object.subscription_details?.metadata
  const lines = object.lines.data.flatMap((line, i) => {
    const item = line.parent?.subscription_item_details
    if (line.proration === true || item?.proration === true) return []
    return {
      line: item?.subscription_item ?? line.subscription_item ?? String(i + 1),
      template: line.metadata ?? common,
      priceId: line.pricing?.price_details?.price ?? line.price ?? undefined,
      quantity: line.quantity,
      ...(typeof subscription === 'string' && { paidThrough: line.period.end }),
    }
  })
  const { customer, customer_email: email, customer_name: name } = object
  const references = [object.id, object.payment_intent, object.charge]
  const bought = { externalId: customer ?? undefined, email: email ?? undefined, name }
  return { order: subscription ?? object.id, references, state: 'paid', occurredAt, lines, customer: bought }
})

/** Names the payment of an invoice, by which a refund refers to it. */
const invoicePayment = z.object({ invoice: reference, payment })
const paidBy = (given: { payment_intent?: string | null | undefined; charge?: string | null | undefined }) =>
  given.payment_intent ?? given.charge ?? ''
const whole = { references: [], lines: null }
const dispute = payment.extend({ charge: reference.nullish(), status: z.string() })

const translations = {
  'checkout.session.completed': sell,
  'checkout.session.async_payment_succeeded': sell,
  'invoice.paid': sellInvoice,
  'invoice_payment.paid': on(ofObject(invoicePayment), ({ created: occurredAt, data: { object } }) => {
    const references = [object.payment.payment_intent]
    return { order: object.invoice, references, state: null, occurredAt, lines: null }
  }),
  'customer.subscription.deleted': on(
    ofObject(z.object({ id: z.string() })),
    ({ created: occurredAt, data: { object } }) => ({ ...whole, order: object.id, state: 'canceled', occurredAt }),
  ),
  'charge.refunded': on(
    ofObject(payment.extend({ id: z.string(), refunded: z.boolean() })),
    ({ created: occurredAt, data: { object } }) =>
      object.refunded ? { ...whole, order: object.payment_intent ?? object.id, state: 'refunded', occurredAt } : null,
  ),
  'charge.dispute.created': on(ofObject(dispute), ({ created: occurredAt, data: { object } }) =>
    object.status.startsWith('warning') ? null : { ...whole, order: paidBy(object), state: 'disputed', occurredAt },
  ),
  'charge.dispute.closed': on(ofObject(dispute), ({ created: occurredAt, data: { object } }) =>
    object.status === 'won' ? { ...whole, order: paidBy(object), state: 'paid', occurredAt } : null,
  ),
} as const

export const stripe: Receiver = {
  signatureHeader: 'stripe-signature',
  isSigned({ bytes, header }, secret, nowMs) {
    const fields = fieldsOf(header('stripe-signature'), ',')
    const [sentAt] = fields.get('t') ?? []
    return isRecent(sentAt, nowMs) && isHmac(fields.get('v1') ?? [], secret, [`${sentAt}.`, bytes], 'hex')
  },
  eventsOf(body, { bytes }) {
    const { id, type, livemode } = event.parse(body)
    return [{ id, type, isLive: livemode, text: Buffer.from(bytes).toString() }]
  },
  translate: (given) => translateBy(translations, event.parse(given).type, given),
}

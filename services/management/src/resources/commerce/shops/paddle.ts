/**
 * Receives events of Paddle Billing. A transaction names its customer by id only, so an event of the customer, which Paddle sends before, has
 * the address.
 */

import { z } from 'zod'

import { fieldsOf, isHmac, isRecent, on, quantity, type Receiver, template, time, translateBy } from '../shop.ts'

const event = z.object({ event_id: z.string(), event_type: z.string() })
const ofData = <Schema extends z.ZodType>(data: Schema) => z.object({ occurred_at: time, data })

const item = z.object({ price: z.object({ id: z.string(), custom_data: template }), quantity })
const transaction = z.object({
  id: z.string(),
  customer_id: z.string(),
  subscription_id: z.string().nullish(),
  billing_period: z.object({ ends_at: time }).nullish(),
  custom_data: template,
  items: z.array(item),
})
const sell = on(ofData(transaction), ({ occurred_at: occurredAt, data }) => ({
  order: data.subscription_id ?? data.id,
  references: [data.id],
  state: 'paid',
  occurredAt,
  lines: data.items.map(({ price, quantity: count }) => ({
    line: price.id,
    template: price.custom_data ?? data.custom_data,
    priceId: price.id,
    quantity: count,
    paidThrough: data.billing_period?.ends_at,
  })),
  customer: { externalId: data.customer_id },
}))

const adjustment = z.object({
  action: z.string(),
  transaction_id: z.string(),
  status: z.string(),
  type: z.string().nullish(),
  items: z.array(z.object({ type: z.string() })),
})
const STATES = { refund: 'refunded', chargeback: 'disputed', chargeback_reverse: 'paid' } as const
const adjust = on(ofData(adjustment), ({ occurred_at: occurredAt, data }) => {
  const { action, status, type, items, transaction_id: order } = data
  const isFull = type === 'full' || items.every((one) => one.type === 'full')
  const state =
    action === 'refund' || action === 'chargeback' || action === 'chargeback_reverse' ? STATES[action] : null
  if (state === null || status !== 'approved' || (action === 'refund' && !isFull)) return null
  return { order, references: [], state, occurredAt, lines: null }
})

const customer = z.object({ id: z.string(), email: z.string(), name: z.string().nullish() })
const know = on(ofData(customer), ({ data: { id, email, name = null } }) => ({
  customer: { externalId: id, email, name },
}))

const translations = {
  'transaction.completed': sell,
  'adjustment.created': adjust,
  'adjustment.updated': adjust,
  'customer.created': know,
  'customer.updated': know,
  'subscription.canceled': on(ofData(z.object({ id: z.string() })), ({ occurred_at: occurredAt, data }) => ({
    order: data.id,
    references: [],
    state: 'canceled',
    occurredAt,
    lines: null,
  })),
} as const

export const paddle: Receiver = {
  signatureHeader: 'paddle-signature',
  isSigned({ bytes, header }, secret, nowMs) {
    const fields = fieldsOf(header('paddle-signature'), ';')
    const [sentAt] = fields.get('ts') ?? []
    return isRecent(sentAt, nowMs) && isHmac(fields.get('h1') ?? [], secret, [`${sentAt}:`, bytes], 'hex')
  },
  // The sandbox is another account with another secret, so an event does not state its mode.
  eventsOf(body, { bytes }) {
    const { event_id: id, event_type: type } = event.parse(body)
    return [{ id, type, isLive: null, text: Buffer.from(bytes).toString() }]
  },
  translate: (given) => translateBy(translations, event.parse(given).event_type, given),
}

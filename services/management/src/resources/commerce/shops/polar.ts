/** Receives events of Polar, which are signed as Standard Webhooks describes. A renewal is another order of the same subscription. */

import { z } from 'zod'

import { isHmac, isRecent, on, type Receiver, template, time, translateBy } from '../shop.ts'

const event = z.object({ type: z.string() })
const ofData = <Schema extends z.ZodType>(data: Schema) => z.object({ timestamp: time.optional(), data })

const order = z.object({
  id: z.string(),
  status: z.string(),
  modified_at: time.nullish(),
  created_at: time,
  product_id: z.string(),
  subscription_id: z.string().nullish(),
  checkout_id: z.string().nullish(),
  customer: z.object({ id: z.string(), email: z.string(), name: z.string().nullish() }),
  subscription: z.object({ current_period_end: time.nullish() }).nullish(),
  product: z.object({ metadata: template }).nullish(),
  metadata: template,
})
const timeOf = (given: { timestamp?: Date | undefined; data: z.output<typeof order> }) =>
  given.timestamp ?? given.data.modified_at ?? given.data.created_at
const orderOf = ({ subscription_id, id }: z.output<typeof order>) => subscription_id ?? id

const translations = {
  'order.paid': on(ofData(order), (given) => {
    const { data } = given
    const paidThrough = data.subscription?.current_period_end ?? undefined
    const { id: externalId, email, name } = data.customer
    return {
      order: orderOf(data),
      references: [data.id, data.checkout_id],
      state: 'paid',
      occurredAt: timeOf(given),
      lines: [
        {
          line: data.product_id,
          template: data.product?.metadata ?? data.metadata,
          priceId: data.product_id,
          quantity: 1,
          paidThrough,
        },
      ],
      customer: { externalId, email, name },
    }
  }),
  'order.refunded': on(ofData(order), (given) =>
    given.data.status === 'refunded'
      ? { order: orderOf(given.data), references: [], state: 'refunded', occurredAt: timeOf(given), lines: null }
      : null,
  ),
  'subscription.revoked': on(
    ofData(z.object({ id: z.string(), modified_at: time.nullish(), created_at: time })),
    ({ timestamp, data }) => ({
      order: data.id,
      references: [],
      state: 'canceled',
      occurredAt: timestamp ?? data.modified_at ?? data.created_at,
      lines: null,
    }),
  ),
} as const

/** Returns the key: the bytes of a secret of Standard Webhooks, and otherwise the text of the secret, as Polar uses it. */
function keyOf(secret: string): string | Uint8Array {
  return secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : secret
}

export const polar: Receiver = {
  signatureHeader: 'webhook-signature',
  isSigned({ bytes, header }, secret, nowMs) {
    const [id, sentAt] = [header('webhook-id'), header('webhook-timestamp')]
    const given = (header('webhook-signature') ?? '').split(' ').map((one) => /^v1,(.+)$/.exec(one)?.[1])
    return isRecent(sentAt, nowMs) && isHmac(given, keyOf(secret), [`${id}.${sentAt}.`, bytes], 'base64')
  },
  // The sandbox is another account with another secret, so an event does not state its mode.
  eventsOf(body, { bytes, header }) {
    const id = z.string().min(1).parse(header('webhook-id'))
    return [{ id, type: event.parse(body).type, isLive: null, text: Buffer.from(bytes).toString() }]
  },
  translate: (given) => translateBy(translations, event.parse(given).type, given),
}

/**
 * The events of one purchase in each shop, in the shapes that the shops document: two lines or a subscription are paid, renewed, disputed where
 * the shop reports it, and refunded. The ids and times are those of a test.
 */

import type { Shop } from '@keyward/contract/management/commerce'

export interface ShopHistory {
  /** The price that the template of the test must list. */
  priceId: string
  /** The id with which a success page requests the order. */
  orderOnPage: string
  /** The event that creates the licenses, those that change them, and the refund of all. In the order of the shop. */
  events: { id: string; body: object }[]
}

const DAY_MS = 86_400_000
const iso = (ms: number) => new Date(ms).toISOString()
const s = (ms: number) => Math.floor(ms / 1_000)

function stripe(id: string, t: number): ShopHistory {
  const [cs, sub, invoice, renewal, pi, cus] = ['cs_test', 'sub', 'in', 'in_r', 'pi', 'cus'].map(
    (one) => `${one}_${id}`,
  )
  const event = (name: string, type: string, at: number, object: object) => ({
    id: `evt_${name}_${id}`,
    body: {
      id: `evt_${name}_${id}`,
      object: 'event',
      api_version: '2026-06-24',
      created: s(at),
      livemode: true,
      pending_webhooks: 1,
      request: { id: null, idempotency_key: null },
      type,
      data: { object },
    },
  })
  const invoiceOf = (of: string, from: number) => ({
    id: of,
    object: 'invoice',
    customer: cus,
    customer_email: 'ada@example.com',
    customer_name: 'Ada Lovelace',
    metadata: {},
    parent: { type: 'subscription_details', subscription_details: { metadata: {}, subscription: sub } },
    status: 'paid',
    lines: {
      object: 'list',
      data: [
        {
          id: `il_${of}`,
          object: 'line_item',
          amount: 4900,
          metadata: {},
          parent: {
            type: 'subscription_item_details',
            subscription_item_details: { proration: false, subscription: sub, subscription_item: `si_${id}` },
          },
          period: { start: s(from), end: s(from + 30 * DAY_MS) },
          pricing: { type: 'price_details', price_details: { price: `price_${id}`, product: 'prod_1' } },
          quantity: 1,
        },
      ],
    },
  })
  const charge = { id: `ch_${id}`, object: 'charge', payment_intent: pi, amount: 4900 }
  const dispute = { id: `du_${id}`, object: 'dispute', charge: `ch_${id}`, payment_intent: pi }
  return {
    priceId: `price_${id}`,
    orderOnPage: cs!,
    events: [
      event('session', 'checkout.session.completed', t, {
        id: cs,
        object: 'checkout.session',
        mode: 'subscription',
        payment_status: 'paid',
        payment_intent: null,
        invoice,
        subscription: sub,
        customer: cus,
        customer_details: { email: 'ada@example.com', name: 'Ada Lovelace', address: { country: 'GB' } },
        metadata: {},
      }),
      event('paid', 'invoice.paid', t + 1_000, invoiceOf(invoice!, t)),
      event('payment', 'invoice_payment.paid', t + 1_000, {
        id: `inpay_${id}`,
        object: 'invoice_payment',
        invoice,
        payment: { type: 'payment_intent', payment_intent: pi },
      }),
      event('renewed', 'invoice.paid', t + 30 * DAY_MS, invoiceOf(renewal!, t + 30 * DAY_MS)),
      event('disputed', 'charge.dispute.created', t + 31 * DAY_MS, { ...dispute, status: 'needs_response' }),
      event('won', 'charge.dispute.closed', t + 32 * DAY_MS, { ...dispute, status: 'won' }),
      event('refunded', 'charge.refunded', t + 33 * DAY_MS, { ...charge, amount_refunded: 4900, refunded: true }),
      event('other', 'payment_method.attached', t, { id: `pm_${id}`, object: 'payment_method' }),
    ],
  }
}

function paddle(id: string, t: number): ShopHistory {
  const [txn, sub, ctm] = ['txn', 'sub', 'ctm'].map((one) => `${one}_${id}`)
  const event = (name: string, type: string, at: number, data: object) => ({
    id: `evt_${name}_${id}`,
    body: {
      event_id: `evt_${name}_${id}`,
      event_type: type,
      occurred_at: iso(at),
      notification_id: `ntf_${name}_${id}`,
      data,
    },
  })
  const transaction = (of: string, from: number) => ({
    id: of,
    status: 'completed',
    customer_id: ctm,
    subscription_id: sub,
    origin: 'web',
    currency_code: 'USD',
    custom_data: null,
    billing_period: { starts_at: iso(from), ends_at: iso(from + 30 * DAY_MS) },
    items: [
      {
        price: { id: `pri_${id}`, product_id: 'pro_1', custom_data: null, unit_price: { amount: '4900' } },
        quantity: 1,
      },
    ],
  })
  const adjustment = { transaction_id: txn, subscription_id: sub, customer_id: ctm, reason: 'fraud' }
  const items = [{ item_id: 'txnitm_1', type: 'full', amount: null }]
  return {
    priceId: `pri_${id}`,
    orderOnPage: txn!,
    events: [
      event('customer', 'customer.created', t, { id: ctm, email: 'ada@example.com', name: null, status: 'active' }),
      event('paid', 'transaction.completed', t + 1_000, transaction(txn!, t)),
      event('renewed', 'transaction.completed', t + 30 * DAY_MS, transaction(`${txn}r`, t + 30 * DAY_MS)),
      event('disputed', 'adjustment.created', t + 31 * DAY_MS, {
        id: `adj_c_${id}`,
        action: 'chargeback',
        status: 'approved',
        type: 'full',
        items,
        ...adjustment,
      }),
      event('won', 'adjustment.created', t + 32 * DAY_MS, {
        id: `adj_v_${id}`,
        action: 'chargeback_reverse',
        status: 'approved',
        type: 'full',
        items,
        ...adjustment,
      }),
      event('asked', 'adjustment.created', t + 33 * DAY_MS, {
        id: `adj_r_${id}`,
        action: 'refund',
        status: 'pending_approval',
        type: 'full',
        items,
        ...adjustment,
      }),
      event('refunded', 'adjustment.updated', t + 34 * DAY_MS, {
        id: `adj_r_${id}`,
        action: 'refund',
        status: 'approved',
        type: 'full',
        items,
        ...adjustment,
      }),
    ],
  }
}

function polar(id: string, t: number): ShopHistory {
  const customer = { id: `customer-${id}`, email: 'ada@example.com', name: 'Ada', external_id: null, metadata: {} }
  const order = (of: string, from: number) => ({
    id: of,
    created_at: iso(from),
    modified_at: null,
    status: 'paid',
    paid: true,
    total_amount: 4900,
    currency: 'usd',
    billing_reason: 'subscription_create',
    checkout_id: `checkout-${id}`,
    product_id: `product-${id}`,
    product: { id: `product-${id}`, name: 'Studio', metadata: {} },
    subscription_id: `subscription-${id}`,
    subscription: {
      id: `subscription-${id}`,
      status: 'active',
      current_period_start: iso(from),
      current_period_end: iso(from + 30 * DAY_MS),
    },
    customer_id: customer.id,
    customer,
    metadata: {},
    items: [{ id: 'item-1', label: 'Studio', amount: 4900, product_price_id: 'price-1' }],
  })
  const event = (name: string, type: string, at: number, data: object) => ({
    id: `msg_${name}_${id}`,
    body: { type, timestamp: iso(at), data },
  })
  const renewal = {
    ...order(`order-r-${id}`, t + 30 * DAY_MS),
    billing_reason: 'subscription_cycle',
    checkout_id: null,
  }
  return {
    priceId: `product-${id}`,
    orderOnPage: `checkout-${id}`,
    events: [
      event('paid', 'order.paid', t, order(`order-${id}`, t)),
      event('renewed', 'order.paid', t + 30 * DAY_MS, renewal),
      event('partial', 'order.refunded', t + 31 * DAY_MS, {
        ...order(`order-${id}`, t),
        status: 'partially_refunded',
        refunded_amount: 100,
      }),
      event('refunded', 'order.refunded', t + 32 * DAY_MS, {
        ...order(`order-${id}`, t),
        status: 'refunded',
        refunded_amount: 4900,
      }),
    ],
  }
}

function lemonsqueezy(id: string, t: number): ShopHistory {
  const number = Number(id)
  const buyer = { store_id: 1, customer_id: number, user_name: 'Ada', user_email: 'ada@example.com' }
  const event = (name: string, type: string, data: object) => ({
    id: `${name}-${id}`,
    body: { meta: { event_name: type, test_mode: false, custom_data: { cart: 'c1' }, webhook_id: '1' }, data },
  })
  const order = (attributes: object) => ({
    type: 'orders',
    id: String(number),
    attributes: {
      ...buyer,
      identifier: `identifier-${id}`,
      order_number: 1,
      currency: 'USD',
      status: 'paid',
      refunded: false,
      refunded_at: null,
      created_at: iso(t),
      updated_at: iso(t),
      first_order_item: {
        id: number + 1,
        order_id: number,
        product_id: 3,
        variant_id: number,
        price_id: 5,
        quantity: 1,
      },
      ...attributes,
    },
    relationships: {},
    links: { self: 'https://api.lemonsqueezy.com/v1/orders/1' },
  })
  const subscription = (attributes: object) => ({
    type: 'subscriptions',
    id: String(number + 2),
    attributes: {
      ...buyer,
      order_id: number,
      order_item_id: number + 1,
      product_id: 3,
      variant_id: number,
      status: 'active',
      cancelled: false,
      ends_at: null,
      renews_at: iso(t + 30 * DAY_MS),
      created_at: iso(t),
      updated_at: iso(t + 1_000),
      first_subscription_item: { id: 1, subscription_id: number + 2, price_id: 5, quantity: 1 },
      ...attributes,
    },
  })
  return {
    priceId: String(number),
    orderOnPage: `identifier-${id}`,
    events: [
      event('paid', 'order_created', order({})),
      event('subscribed', 'subscription_created', subscription({})),
      event(
        'renewed',
        'subscription_updated',
        subscription({ renews_at: iso(t + 60 * DAY_MS), updated_at: iso(t + 30 * DAY_MS) }),
      ),
      event('invoiced', 'subscription_payment_success', {
        type: 'subscription-invoices',
        id: '9',
        attributes: { subscription_id: number + 2, status: 'paid' },
      }),
      event(
        'refunded',
        'order_refunded',
        order({ status: 'refunded', refunded: true, refunded_at: iso(t + 31 * DAY_MS) }),
      ),
    ],
  }
}

function fastspring(id: string, t: number): ShopHistory {
  const account = {
    id: `account-${id}`,
    account: `account-${id}`,
    contact: { first: 'Ada', last: 'L', email: 'ada@example.com' },
  }
  const event = (name: string, type: string, at: number, data: object) => {
    const one = { id: `${name}-${id}`, processed: false, created: at, type, live: true, data }
    return { id: one.id, body: { events: [one] } }
  }
  const subscription = (next: number) => ({
    id: `subscription-${id}`,
    subscription: `subscription-${id}`,
    product: `studio-${id}`,
    quantity: 1,
    state: 'active',
    next,
    nextInSeconds: s(next),
  })
  const order = {
    order: `order-${id}`,
    id: `order-${id}`,
    reference: `ACM${id}`,
    live: true,
    currency: 'USD',
    account,
    customer: account.contact,
    tags: {},
    items: [
      {
        product: `studio-${id}`,
        quantity: 1,
        sku: null,
        attributes: {},
        subtotal: 49,
        subscription: subscription(t + 30 * DAY_MS),
      },
    ],
  }
  const returned = { return: `return-${id}`, reference: `ACM${id}R`, completed: true, account }
  const original = { order: order.id, id: order.id, reference: order.reference, total: 49 }
  return {
    priceId: `studio-${id}`,
    orderOnPage: order.id,
    events: [
      event('paid', 'order.completed', t, order),
      event('renewed', 'subscription.charge.completed', t + 30 * DAY_MS, {
        currency: 'USD',
        total: 49,
        status: 'successful',
        account,
        order: { id: `order-r-${id}`, order: `order-r-${id}` },
        subscription: subscription(t + 60 * DAY_MS),
      }),
      event('partial', 'return.created', t + 31 * DAY_MS, { ...returned, original, totalReturn: 5 }),
      event('refunded', 'return.created', t + 32 * DAY_MS, { ...returned, original, totalReturn: 49 }),
    ],
  }
}

export const HISTORIES: Readonly<Record<Shop, (id: string, startMs: number) => ShopHistory>> = {
  stripe,
  paddle,
  polar,
  lemonsqueezy,
  fastspring,
}

/** Signs the events of shops as the shops do. */

import { createHmac } from 'node:crypto'

import { type Shop, shop as shopSchema } from '@keyward/contract/management/commerce'

export { HISTORIES, type ShopHistory } from './shop-histories.ts'

export const SHOPS = shopSchema.options
export const SHOP_SECRET = 'whsec_c2VjcmV0IG9mIHRoZXNlIHRlc3Rz'

const hmac = (key: string | Buffer, text: string, encoding: 'hex' | 'base64') =>
  createHmac('sha256', key).update(text).digest(encoding)

interface Signing {
  secret?: string
  nowMs?: number
}

/** Returns the headers of a request with this body. */
export function signatureOf(
  shop: Shop,
  raw: string,
  id: string,
  { secret = SHOP_SECRET, nowMs = Date.now() }: Signing = {},
): Record<string, string> {
  const at = String(Math.floor(nowMs / 1_000))
  switch (shop) {
    case 'stripe':
      return { 'stripe-signature': `t=${at},v1=${hmac(secret, `${at}.${raw}`, 'hex')},v0=${'0'.repeat(64)}` }
    case 'paddle':
      return { 'paddle-signature': `ts=${at};h1=${hmac(secret, `${at}:${raw}`, 'hex')}` }
    case 'polar': {
      const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
      const signature = hmac(key, `${id}.${at}.${raw}`, 'base64')
      return { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': `v1,${signature}` }
    }
    case 'lemonsqueezy':
      return { 'x-signature': hmac(secret, raw, 'hex'), 'x-event-name': 'order_created' }
    case 'fastspring':
      return { 'x-fs-signature': hmac(secret, raw, 'base64') }
    default:
      return shop satisfies never
  }
}

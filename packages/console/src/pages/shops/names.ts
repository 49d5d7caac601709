import type { Connection, Shop, ShopEvent } from '@keyward/contract/management/commerce'

export const SHOPS = {
  stripe: 'Stripe',
  paddle: 'Paddle',
  polar: 'Polar',
  lemonsqueezy: 'Lemon Squeezy',
  fastspring: 'FastSpring',
} satisfies Record<Shop, string>

export const MODES = { live: 'Live', test: 'Test' } satisfies Record<Connection['mode'], string>

export const EVENT_STATES = {
  PENDING: 'Pending',
  WAITING: 'Waiting',
  DONE: 'Done',
  IGNORED: 'Ignored',
  FAILED: 'Failed',
} satisfies Record<ShopEvent['state'], string>

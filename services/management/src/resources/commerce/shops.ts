/** The receiver of each shop. */

import type { Shop } from '@keyward/contract/management/commerce'

import type { Receiver } from './shop.ts'
import { fastSpring } from './shops/fastspring.ts'
import { lemonSqueezy } from './shops/lemonsqueezy.ts'
import { paddle } from './shops/paddle.ts'
import { polar } from './shops/polar.ts'
import { stripe } from './shops/stripe.ts'

export const SHOPS: Readonly<Record<Shop, Receiver>> = {
  stripe,
  paddle,
  polar,
  lemonsqueezy: lemonSqueezy,
  fastspring: fastSpring,
}

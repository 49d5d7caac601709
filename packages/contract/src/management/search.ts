/** The search over everything that a caller may read (docs/api.md#m15). */

import { z } from 'zod'

import { text } from '../text.ts'
import { accessRule } from './access-rules.ts'
import { customer } from './customers.ts'
import { license } from './licenses.ts'
import { product } from './products.ts'

export const searchQuery = z.strictObject({
  q: text(200)
    .refine((given) => given.trim() !== '', 'must not be blank')
    .meta({
      description: 'What to look for: at least three characters for customers and products.',
      example: 'ada@example',
    }),
})

const upTo = 'At most 10'
export const searchResults = z.object({
  licenses: z.array(license).meta({ description: `${upTo} licenses whose key begins with it.` }),
  customers: z
    .array(customer)
    .meta({ description: `${upTo} customers whose e-mail address, name or external id contains it.` }),
  products: z.array(product).meta({ description: `${upTo} products whose name contains it.` }),
  accessRules: z
    .array(accessRule)
    .meta({ description: `${upTo} unexpired rules with this value, or that would match it.` }),
})
export type SearchResults = z.infer<typeof searchResults>

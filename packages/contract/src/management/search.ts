/** The search in all resources that a caller may read (docs/api.md#m15). */

import { z } from 'zod'

import { text } from '../text.ts'
import { accessRule } from './access-rules.ts'
import { customer } from './customers.ts'
import { license } from './licenses.ts'
import { foundMachine } from './machines.ts'
import { operations } from './operations.ts'
import { product } from './products.ts'

const searchQuery = z.strictObject({
  q: text(200)
    .refine((given) => given.trim() !== '', 'must not be blank')
    .meta({
      description: 'The text to search for. Customers and products are searched from three characters on.',
      example: 'ada@example',
    }),
})

const upTo = 'At most 10'
export const searchResults = z.object({
  licenses: z.array(license).meta({ description: `${upTo} licenses whose key begins with the text.` }),
  customers: z
    .array(customer)
    .meta({ description: `${upTo} customers whose e-mail address, name or external id contains the text.` }),
  products: z.array(product).meta({ description: `${upTo} products whose name contains the text.` }),
  machines: z
    .array(foundMachine)
    .meta({ description: `${upTo} machines whose machine id or host name begins with the text.` }),
  accessRules: z
    .array(accessRule)
    .meta({ description: `${upTo} unexpired rules whose value equals or matches the text.` }),
})
export type SearchResults = z.infer<typeof searchResults>

export const search = operations({
  search: { route: 'GET /search', needs: 'token', query: searchQuery, returns: searchResults },
})

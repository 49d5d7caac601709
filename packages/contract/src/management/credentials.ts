/** API keys, management tokens, members and their personal access tokens. A secret is shown once, in the response that creates it (docs/api.md#a1). */

import { z } from 'zod'

import { actor, email, EXAMPLE_ID, id, moment, name, newEmail, timestamp } from './common.ts'
import { permissions } from './permissions.ts'

const credentialName = name.meta({ description: 'What the credential is for.', example: 'deploy script' })
const expiresAt = moment('When it stops working; in the future.')
  .refine((value) => value.getTime() > Date.now(), 'must lie in the future')
  .nullable()
  .optional()

const shown = {
  id: z.uuid().meta({ description: 'The id of the credential.', example: EXAMPLE_ID }),
  name: credentialName,
  prefix: z.string().meta({ description: 'The first characters of the secret.', example: 'kwk_0123' }),
  expiresAt: timestamp('When it stops working; null: never.').nullable(),
  lastUsedAt: timestamp('About when it was last used.').nullable(),
  createdAt: timestamp('When it was created.'),
  createdBy: actor.nullable().meta({ description: 'Who created it; null: before this was recorded.' }),
}
const secret = z.string().optional().meta({
  description: 'The secret, shown once; a replayed response omits it.',
  example: 'kwm_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
})
const granted = z.array(z.string()).meta({ description: 'The permissions that it has.', example: ['licenses.read'] })

const boundProduct = 'The product whose licenses it can check; a license of another product is `NOT_FOUND`.'

export const apiKey = z
  .object({
    ...shown,
    productId: z
      .uuid()
      .nullable()
      .meta({ description: `${boundProduct} null: every product.`, example: EXAMPLE_ID }),
  })
  .meta({ id: 'ApiKey', description: "A credential for customers' apps." })
export const createdApiKey = apiKey.extend({ secret }).meta({ id: 'CreatedApiKey', description: 'A new API key.' })
export const createApiKey = z.strictObject({
  name: credentialName,
  productId: id(`${boundProduct} It cannot be changed. Absent or null: every product.`).nullish(),
  expiresAt,
})

export const token = z
  .object({ ...shown, permissions: granted })
  .meta({ id: 'Token', description: 'A credential for the management API.' })
export const createdToken = token.extend({ secret }).meta({ id: 'CreatedToken', description: 'A new token.' })
export const createToken = z.strictObject({ name: credentialName, permissions, expiresAt })

/** Without `expiresAt` it never expires, because the tokens that it makes expire no later than it. */
export const createRecoveryToken = z.strictObject({ name: credentialName.default('recovery token'), expiresAt })

export const member = z
  .object({
    id: z.uuid().meta({ description: 'The id of the member.', example: EXAMPLE_ID }),
    email,
    permissions: granted,
    createdAt: timestamp('When it was created.'),
    updatedAt: timestamp('When it was last changed.'),
  })
  .meta({ id: 'Member', description: 'A person who works for the vendor.' })
export type Member = z.infer<typeof member>
export const createMember = z.strictObject({ email: newEmail, permissions })
export const updateMember = createMember.partial().meta({ example: { permissions: ['licenses.read'] } })

export const accessTokenParams = z.strictObject({
  id: id('The id of the member.'),
  tokenId: id('The id of the token.'),
})

/**
 * API keys, management tokens, members and personal access tokens. Only the response to the request that creates a secret contains the
 * secret (docs/api.md#a1).
 */

import { z } from 'zod'

import { actor, email, EXAMPLE_ID, id, listQuery, moment, name, newEmail, page, timestamp } from './common.ts'
import { operations } from './operations.ts'
import { permissions } from './permissions.ts'

const credentialName = name.meta({ description: 'The purpose of the credential.', example: 'deploy script' })
const expiresAt = moment('The time in the future at which the credential expires. Default: never.')
  .refine((value) => value.getTime() > Date.now(), 'must be in the future')
  .nullable()
  .optional()

const shown = {
  id: z.uuid().meta({ description: 'The id of the credential.', example: EXAMPLE_ID }),
  name: credentialName,
  prefix: z.string().meta({ description: 'The first characters of the secret.', example: 'kwk_0123' }),
  expiresAt: timestamp('The time at which the credential expires; null if it never does.').nullable(),
  lastUsedAt: timestamp('The approximate time of the last use.').nullable(),
  createdAt: timestamp('The time of creation.'),
  createdBy: actor.nullable().meta({ description: 'The caller that created the credential; null if not recorded.' }),
}
const secret = z.string().optional().meta({
  description: 'The secret. It is shown once, and a replayed response omits it.',
  example: 'kwm_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
})
const granted = z.array(z.string()).meta({ description: 'The granted permissions.', example: ['licenses.read'] })

const boundProduct = 'The product whose licenses the key can check. Checks of other licenses return `NOT_FOUND`.'

export const apiKey = z
  .object({
    ...shown,
    productId: z
      .uuid()
      .nullable()
      .meta({ description: `${boundProduct} Null for a key for all products.`, example: EXAMPLE_ID }),
  })
  .meta({ id: 'ApiKey', description: 'A credential for apps.' })
export const createdApiKey = apiKey.extend({ secret }).meta({ id: 'CreatedApiKey', description: 'A new API key.' })
export const createApiKey = z.strictObject({
  name: credentialName,
  productId: id(`${boundProduct} It cannot be changed later. Default: all products.`).nullish(),
  expiresAt,
})

export const token = z
  .object({ ...shown, permissions: granted })
  .meta({ id: 'Token', description: 'A credential for the management API.' })
export const createdToken = token.extend({ secret }).meta({ id: 'CreatedToken', description: 'A new token.' })
export const createToken = z.strictObject({ name: credentialName, permissions, expiresAt })

/**
 * The body of the request that creates a recovery token. By default, the token never expires, because the tokens that it creates may not
 * outlive it.
 */
export const createRecoveryToken = z.strictObject({ name: credentialName.default('recovery token'), expiresAt })

export const member = z
  .object({
    id: z.uuid().meta({ description: 'The id of the member.', example: EXAMPLE_ID }),
    email,
    permissions: granted,
    createdAt: timestamp('The time of creation.'),
    updatedAt: timestamp('The time of the last change.'),
  })
  .meta({ id: 'Member', description: 'A person who works for the vendor.' })
export type Member = z.infer<typeof member>
export const createMember = z.strictObject({ email: newEmail, permissions })
export const updateMember = createMember.partial().meta({ example: { permissions: ['licenses.read'] } })

export const accessTokenParams = z.strictObject({
  id: id('The id of the member.'),
  tokenId: id('The id of the token.'),
})

export const apiKeys = operations({
  listApiKeys: {
    route: 'GET /api-keys',
    needs: 'credentials.write',
    query: listQuery({ productId: id('Returns only API keys that are bound to this product.').optional() }),
    returns: page(apiKey),
  },
  createApiKey: {
    route: 'POST /api-keys',
    needs: 'credentials.write',
    body: createApiKey,
    returns: createdApiKey,
    creates: true,
    secrets: ['secret'],
    propagates: true,
  },
  readApiKey: { route: 'GET /api-keys/{id}', needs: 'credentials.write', returns: apiKey },
  revokeApiKey: { route: 'DELETE /api-keys/{id}', needs: 'credentials.write', propagates: true },
})

export const tokens = operations({
  listTokens: { route: 'GET /tokens', needs: 'credentials.write', query: listQuery({}), returns: page(token) },
  createToken: {
    route: 'POST /tokens',
    needs: 'credentials.write',
    body: createToken,
    returns: createdToken,
    creates: true,
    secrets: ['secret'],
  },
  readToken: { route: 'GET /tokens/{id}', needs: 'credentials.write', returns: token },
  revokeToken: { route: 'DELETE /tokens/{id}', needs: 'credentials.write' },
})

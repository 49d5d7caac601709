import { apiKeys as apiKeyOperations, tokens as tokenOperations } from '@keyward/contract'

import { implement } from '../../operations/implement.ts'
import {
  type CredentialFilter,
  grantCredential,
  listCredentials,
  readCredential,
  revokeCredential,
  type ShownCredential,
} from './store.ts'

const API_KEYS: CredentialFilter = { kind: 'API_KEY', memberId: null }
const TOKENS: CredentialFilter = { kind: 'MANAGEMENT_TOKEN', memberId: null }

/** Returns the representation of an API key, which has no permissions. */
function withoutPermissions(shown: ShownCredential) {
  const { id, name, prefix, productId = null, expiresAt, lastUsedAt, createdAt, createdBy } = shown
  return { id, name, prefix, productId, expiresAt, lastUsedAt, createdAt, createdBy }
}

const keyTag = { name: 'API keys', description: "Credentials for customers' apps." }

export const apiKeys = implement(keyTag, apiKeyOperations, {
  listApiKeys: {
    summary: 'List API keys',
    async handle(call) {
      const list = await listCredentials(call, { ...API_KEYS, productId: call.query.productId }, call.query)
      return { ...list, data: list.data.map(withoutPermissions) }
    },
  },
  createApiKey: {
    summary: 'Create an API key',
    description:
      'Only this response contains the secret. With `productId`, the key checks licenses of this product alone. ' +
      'Deleting the product revokes the key.',
    errors: ['VALIDATORS_OUTDATED'],
    async handle(call) {
      const { secret, ...created } = await grantCredential(call, API_KEYS, call.body)
      return { ...withoutPermissions(created), secret }
    },
  },
  readApiKey: {
    summary: 'Read an API key',
    handle: async (call) => withoutPermissions(await readCredential(call, API_KEYS, call.params.id)),
  },
  revokeApiKey: {
    summary: 'Revoke an API key',
    handle: (call) => revokeCredential(call, API_KEYS, call.params.id),
  },
})

const tokenTag = { name: 'Management tokens', description: "Credentials for the vendor's programs." }

export const tokens = implement(tokenTag, tokenOperations, {
  listTokens: { summary: 'List management tokens', handle: (call) => listCredentials(call, TOKENS, call.query) },
  createToken: {
    summary: 'Create a management token',
    description:
      'Only this response contains the secret. A credential can grant only permissions that it has, and a token expires ' +
      'no later than the credential that creates it.',
    handle: (call) => grantCredential(call, TOKENS, call.body),
  },
  readToken: { summary: 'Read a management token', handle: (call) => readCredential(call, TOKENS, call.params.id) },
  revokeToken: {
    summary: 'Revoke a management token',
    description:
      'A credential can revoke only tokens whose permissions it has. The last token that manages credentials cannot be revoked.',
    errors: ['LAST_CREDENTIAL'],
    handle: (call) => revokeCredential(call, TOKENS, call.params.id),
  },
})

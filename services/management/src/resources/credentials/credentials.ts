import { apiKey, createApiKey, createdApiKey, createdToken, createToken, token } from '@keyward/contract'

import { crudEndpoints } from '../../crud/endpoints.ts'
import {
  type CredentialFilter,
  grantCredential,
  listCredentials,
  readCredential,
  revokeCredential,
  type ShownCredential,
} from './store.ts'

const permissions = { readPermission: 'credentials.write', writePermission: 'credentials.write' } as const

const API_KEYS: CredentialFilter = { kind: 'API_KEY', memberId: null }
const TOKENS: CredentialFilter = { kind: 'MANAGEMENT_TOKEN', memberId: null }

/** Returns the representation of an API key, which has no permissions. */
function withoutPermissions(shown: ShownCredential) {
  const { id, name, prefix, productId = null, expiresAt, lastUsedAt, createdAt, createdBy } = shown
  return { id, name, prefix, productId, expiresAt, lastUsedAt, createdAt, createdBy }
}

const keys = crudEndpoints({
  tag: { name: 'API keys', description: "Credentials for customers' apps." },
  ...permissions,
  path: '/api-keys',
  operation: 'ApiKey',
  noun: 'an API key',
  schema: apiKey,
})

const keyEndpoints = [
  keys.list({}, async (call) => {
    const list = await listCredentials(call, API_KEYS, call.query)
    return { ...list, data: list.data.map(withoutPermissions) }
  }),
  keys.create(
    {
      description:
        'Only this response contains the secret. With `productId`, the key checks licenses of this product alone. ' +
        'Deleting the product revokes the key.',
      body: createApiKey,
      response: createdApiKey,
      secrets: ['secret'],
      errors: ['QUOTA_EXCEEDED', 'VALIDATORS_OUTDATED'],
      propagates: true,
    },
    async (call) => {
      const { secret, ...created } = await grantCredential(call, API_KEYS, call.body)
      return { ...withoutPermissions(created), secret }
    },
  ),
  keys.read({}, async (call) => withoutPermissions(await readCredential(call, API_KEYS, call.params.id))),
  keys.delete({ verb: 'revoke', propagates: true }, (call) => revokeCredential(call, API_KEYS, call.params.id)),
]

const REVOKING =
  'A credential can revoke only tokens whose permissions it has. The last token that manages credentials cannot be revoked.'

const tokens = crudEndpoints({
  tag: { name: 'Management tokens', description: "Credentials for the vendor's programs." },
  ...permissions,
  path: '/tokens',
  operation: 'Token',
  noun: 'a management token',
  schema: token,
})

const tokenEndpoints = [
  tokens.list({}, (call) => listCredentials(call, TOKENS, call.query)),
  tokens.create(
    {
      description:
        'Only this response contains the secret. A credential can grant only permissions that it has, and a token expires ' +
        'no later than the credential that creates it.',
      body: createToken,
      response: createdToken,
      secrets: ['secret'],
      errors: ['QUOTA_EXCEEDED'],
    },
    (call) => grantCredential(call, TOKENS, call.body),
  ),
  tokens.read({}, (call) => readCredential(call, TOKENS, call.params.id)),
  tokens.delete({ verb: 'revoke', description: REVOKING, errors: ['LAST_CREDENTIAL'] }, (call) =>
    revokeCredential(call, TOKENS, call.params.id),
  ),
]

export const credentials = [...keyEndpoints, ...tokenEndpoints]

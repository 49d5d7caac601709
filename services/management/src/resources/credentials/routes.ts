/** Endpoints of API keys and management tokens. */
import {
  apiKey,
  createApiKey,
  createdApiKey,
  createdToken,
  createToken,
  idParams,
  listQuery,
  page,
  token,
} from '@keyward/contract'

import { vendorEndpoint } from '../../http/endpoint.ts'
import { basePath } from '../../http/paths.ts'
import {
  addCredential,
  listCredentials,
  readCredential,
  refuseToGrant,
  revokeCredential,
  type Shelf,
  withoutPermissions,
} from './store.ts'

const keys = { tag: 'API keys', path: '/api-keys' } as const
const oneKey = { tag: keys.tag, path: '/api-keys/{id}', params: idParams } as const
const tokens = { tag: 'Management tokens', path: '/tokens' } as const
const oneToken = { tag: tokens.tag, path: '/tokens/{id}', params: idParams } as const

const keyShelf = (organizationId: string): Shelf => ({ organizationId, kind: 'API_KEY', memberId: null })
const tokenShelf = (organizationId: string): Shelf => ({ organizationId, kind: 'MANAGEMENT_TOKEN', memberId: null })

const apiKeys = [
  vendorEndpoint(
    'credentials.write',
    {
      ...keys,
      method: 'get',
      operationId: 'listApiKeys',
      summary: 'List API keys',
      query: listQuery({}),
      status: 200,
      answer: page(apiKey),
    },
    async ({ db, organizationId, query }) => {
      const list = await listCredentials(db, keyShelf(organizationId), query)
      return { ...list, data: list.data.map(withoutPermissions) }
    },
  ),
  vendorEndpoint(
    'credentials.write',
    {
      ...keys,
      method: 'post',
      operationId: 'createApiKey',
      summary: 'Create an API key',
      description: 'The secret is shown in this answer and never again.',
      body: createApiKey,
      status: 201,
      answer: createdApiKey,
      secrets: ['secret'],
      propagates: true,
    },
    async (call) => {
      const { name, expiresAt = null } = call.body
      const created = await addCredential(call, keyShelf(call.organizationId), { name, expiresAt, permissions: [] })
      call.headers['location'] = `${basePath}/api-keys/${created.id}`
      return { ...withoutPermissions(created), secret: created.secret }
    },
  ),
  vendorEndpoint(
    'credentials.write',
    { ...oneKey, method: 'get', operationId: 'readApiKey', summary: 'Read an API key', status: 200, answer: apiKey },
    async ({ db, organizationId, params }) =>
      withoutPermissions(await readCredential(db, keyShelf(organizationId), params.id)),
  ),
  vendorEndpoint(
    'credentials.write',
    {
      ...oneKey,
      method: 'delete',
      operationId: 'revokeApiKey',
      summary: 'Revoke an API key',
      status: 204,
      propagates: true,
    },
    (call) => revokeCredential(call, keyShelf(call.organizationId), call.params.id),
  ),
]

const managementTokens = [
  vendorEndpoint(
    'credentials.write',
    {
      ...tokens,
      method: 'get',
      operationId: 'listTokens',
      summary: 'List management tokens',
      query: listQuery({}),
      status: 200,
      answer: page(token),
    },
    ({ db, organizationId, query }) => listCredentials(db, tokenShelf(organizationId), query),
  ),
  vendorEndpoint(
    'credentials.write',
    {
      ...tokens,
      method: 'post',
      operationId: 'createToken',
      summary: 'Create a management token',
      description: 'The secret is shown in this answer and never again. Nobody can grant a permission that they lack.',
      body: createToken,
      status: 201,
      answer: createdToken,
      secrets: ['secret'],
    },
    async (call) => {
      refuseToGrant(call.body.permissions, call.permissions)
      const { name, permissions, expiresAt = null } = call.body
      const created = await addCredential(call, tokenShelf(call.organizationId), { name, permissions, expiresAt })
      call.headers['location'] = `${basePath}/tokens/${created.id}`
      return created
    },
  ),
  vendorEndpoint(
    'credentials.write',
    { ...oneToken, method: 'get', operationId: 'readToken', summary: 'Read a token', status: 200, answer: token },
    ({ db, organizationId, params }) => readCredential(db, tokenShelf(organizationId), params.id),
  ),
  vendorEndpoint(
    'credentials.write',
    { ...oneToken, method: 'delete', operationId: 'revokeToken', summary: 'Revoke a token', status: 204 },
    (call) => revokeCredential(call, tokenShelf(call.organizationId), call.params.id),
  ),
]

export const credentials = [...apiKeys, ...managementTokens]

/** Endpoints of members and their personal access tokens. */
import {
  accessTokenParams,
  createdToken,
  createMember,
  createToken,
  idParams,
  listQuery,
  member,
  page,
  token,
  updateMember,
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
} from '../credentials/store.ts'
import { addMember, changeMember, deleteMember, listMembers, readMember } from './store.ts'

const tag = 'Members'
const all = { tag, path: '/members' } as const
const one = { tag, path: '/members/{id}', params: idParams } as const
const tokens = { tag, path: '/members/{id}/access-tokens', params: idParams } as const
const oneToken = { tag, path: '/members/{id}/access-tokens/{tokenId}', params: accessTokenParams } as const

const shelf = (organizationId: string, memberId: string): Shelf => ({ organizationId, memberId, kind: 'ACCESS_TOKEN' })

const people = [
  vendorEndpoint(
    'credentials.write',
    {
      ...all,
      method: 'get',
      operationId: 'listMembers',
      summary: 'List members',
      query: listQuery({}),
      status: 200,
      answer: page(member),
    },
    ({ db, organizationId, query }) => listMembers(db, organizationId, query),
  ),
  vendorEndpoint(
    'credentials.write',
    {
      ...all,
      method: 'post',
      operationId: 'createMember',
      summary: 'Add a member',
      description: 'Nobody can grant a permission that they lack.',
      body: createMember,
      status: 201,
      answer: member,
      errors: ['MEMBER_EXISTS'],
    },
    async (call) => {
      const created = await addMember(call, call.permissions, call.body)
      call.headers['location'] = `${basePath}/members/${created.id}`
      return created
    },
  ),
  vendorEndpoint(
    'credentials.write',
    { ...one, method: 'get', operationId: 'readMember', summary: 'Read a member', status: 200, answer: member },
    ({ db, organizationId, params }) => readMember(db, organizationId, params.id),
  ),
  vendorEndpoint(
    'credentials.write',
    {
      ...one,
      method: 'patch',
      operationId: 'updateMember',
      summary: 'Change a member',
      description: "Permissions taken away leave the member's access tokens at the very next call.",
      body: updateMember,
      status: 200,
      answer: member,
      errors: ['MEMBER_EXISTS'],
    },
    (call) => changeMember(call, call.permissions, call.params.id, call.body),
  ),
  vendorEndpoint(
    'credentials.write',
    {
      ...one,
      method: 'delete',
      operationId: 'deleteMember',
      summary: 'Remove a member',
      description: "The member's access tokens go along.",
      status: 204,
    },
    (call) => deleteMember(call, call.params.id),
  ),
]

const accessTokens = [
  vendorEndpoint(
    'credentials.write',
    {
      ...tokens,
      method: 'get',
      operationId: 'listAccessTokens',
      summary: "List a member's access tokens",
      query: listQuery({}),
      status: 200,
      answer: page(token),
    },
    async ({ db, organizationId, params, query }) => {
      await readMember(db, organizationId, params.id)
      return listCredentials(db, shelf(organizationId, params.id), query)
    },
  ),
  vendorEndpoint(
    'credentials.write',
    {
      ...tokens,
      method: 'post',
      operationId: 'createAccessToken',
      summary: 'Create an access token for a member',
      description:
        'The token can do what both it and the member are permitted, whatever the member is permitted later.',
      body: createToken,
      status: 201,
      answer: createdToken,
      secrets: ['secret'],
    },
    async (call) => {
      const { organizationId, params } = call
      await readMember(call.db, organizationId, params.id)
      refuseToGrant(call.body.permissions, call.permissions)
      const { name, permissions, expiresAt = null } = call.body
      const created = await addCredential(call, shelf(organizationId, params.id), { name, permissions, expiresAt })
      call.headers['location'] = `${basePath}/members/${params.id}/access-tokens/${created.id}`
      return created
    },
  ),
  vendorEndpoint(
    'credentials.write',
    {
      ...oneToken,
      method: 'get',
      operationId: 'readAccessToken',
      summary: 'Read an access token',
      status: 200,
      answer: token,
    },
    ({ db, organizationId, params }) => readCredential(db, shelf(organizationId, params.id), params.tokenId),
  ),
  vendorEndpoint(
    'credentials.write',
    { ...oneToken, method: 'delete', operationId: 'revokeAccessToken', summary: 'Revoke an access token', status: 204 },
    (call) => revokeCredential(call, shelf(call.organizationId, call.params.id), call.params.tokenId),
  ),
]

export const members = [...people, ...accessTokens]

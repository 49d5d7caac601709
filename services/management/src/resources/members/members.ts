/** Members: the people of a vendor, and their personal access tokens. A token never does more than its member (docs/api.md#a3). */

import {
  accessTokenParams,
  createdToken,
  createMember,
  createToken,
  idParams,
  type Member,
  member,
  token,
  updateMember,
} from '@keyward/contract'

import { crudEndpoints } from '../../crud/endpoints.ts'
import { changeRow, deleteRow, findRow, insertRow, listRows, type OwnedRows, readRow } from '../../crud/rows.ts'
import {
  addCredentialWithinQuota,
  type CredentialFilter,
  listCredentials,
  readCredential,
  requireGrantable,
  revokeCredential,
} from '../credentials/store.ts'

const rows: OwnedRows<'members', Member> = {
  table: 'members',
  type: 'member',
  quota: 'members',
  show: ({ id, email, permissions, createdAt, updatedAt }) => ({
    id,
    email,
    permissions,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }),
  conflicts: { members_email: { code: 'MEMBER_EXISTS' } },
}

const tag = { name: 'Members', description: "The vendor's people and their personal access tokens." }
const permissions = { readPermission: 'credentials.write', writePermission: 'credentials.write' } as const

const people = crudEndpoints({
  tag,
  ...permissions,
  path: '/members',
  operation: 'Member',
  noun: 'a member',
  schema: member,
})

const memberEndpoints = [
  people.list({}, (call) => listRows(rows, call, call.query)),
  people.create(
    {
      summary: 'Add a member',
      description: 'A credential can grant only permissions that it has.',
      body: createMember,
      errors: ['MEMBER_EXISTS', 'QUOTA_EXCEEDED'],
    },
    (call) => {
      requireGrantable(call.body.permissions, call.permissions)
      return insertRow(rows, call, call.body)
    },
  ),
  people.read({}, (call) => readRow(rows, call, call.params.id)),
  people.change(
    {
      description:
        "A permission that is taken away is missing from the member's access tokens from the next request on. " +
        'Permissions that the member already has may stay, also those that the calling credential does not have.',
      body: updateMember,
      errors: ['MEMBER_EXISTS'],
    },
    (call) =>
      changeRow(rows, call, call.params.id, call.body, (before) => {
        const added = call.body.permissions?.filter((name) => !before.permissions.includes(name))
        requireGrantable(added ?? [], call.permissions)
      }),
  ),
  people.delete({ summary: 'Remove a member', description: "Also revokes the member's access tokens." }, (call) =>
    deleteRow(rows, call, call.params.id, { audited: ({ email }) => ({ email }) }),
  ),
]

const tokens = crudEndpoints({
  tag,
  ...permissions,
  path: '/members/{id}/access-tokens',
  itemPath: '/members/{id}/access-tokens/{tokenId}',
  operation: 'AccessToken',
  noun: 'an access token',
  schema: token,
  params: idParams,
  itemParams: accessTokenParams,
})

const tokensOf = (memberId: string): CredentialFilter => ({ kind: 'ACCESS_TOKEN', memberId })

const tokenEndpoints = [
  tokens.list({}, async (call) => {
    await findRow(rows, call, call.params.id)
    return listCredentials(call, tokensOf(call.params.id), call.query)
  }),
  tokens.create(
    {
      summary: 'Create an access token for a member',
      description:
        'The token has the permissions that both it and the member have, also when those of the member change.',
      body: createToken,
      response: createdToken,
      secrets: ['secret'],
      errors: ['QUOTA_EXCEEDED'],
    },
    async (call) => {
      await findRow(rows, call, call.params.id)
      requireGrantable(call.body.permissions, call.permissions)
      return addCredentialWithinQuota(call, tokensOf(call.params.id), call.body)
    },
  ),
  tokens.read({}, (call) => readCredential(call, tokensOf(call.params.id), call.params.tokenId)),
  tokens.delete({ verb: 'revoke' }, (call) => revokeCredential(call, tokensOf(call.params.id), call.params.tokenId)),
]

export const members = [...memberEndpoints, ...tokenEndpoints]

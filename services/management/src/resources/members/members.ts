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
import { lockManagers, permissionsOf, requireCovered, requireGrantable, requireManager } from '../credentials/bounds.ts'
import {
  type CredentialFilter,
  grantCredential,
  listCredentials,
  readCredential,
  revokeCredential,
  revokeTokensMadeBy,
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
        'A credential can change only members whose permissions it has.',
      body: updateMember,
      errors: ['MEMBER_EXISTS', 'LAST_CREDENTIAL'],
    },
    async (call) => {
      await lockManagers(call)
      const changed = await changeRow(rows, call, call.params.id, call.body, (before) => {
        requireCovered('member', permissionsOf(before.permissions), call.permissions)
        requireGrantable(call.body.permissions ?? [], call.permissions)
      })
      if (call.body.permissions) await requireManager(call)
      return changed
    },
  ),
  people.delete(
    {
      summary: 'Remove a member',
      description:
        "Also revokes the member's access tokens and the tokens that were created with them. API keys that were created " +
        'with them stay valid; the audit entry lists both.',
      errors: ['LAST_CREDENTIAL'],
    },
    async (call) => {
      await lockManagers(call)
      await deleteRow(rows, call, call.params.id, {
        check: (row) => requireCovered('member', permissionsOf(row.permissions), call.permissions),
        audited: ({ email }) => ({ email }),
        cascade: revokeTokensMadeBy,
      })
      await requireManager(call)
    },
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
        'The token has the permissions that both it and the member have, also when those of the member change. It expires ' +
        'no later than the credential that creates it. Unless the member creates it, its actions name its creator.',
      body: createToken,
      response: createdToken,
      secrets: ['secret'],
      errors: ['QUOTA_EXCEEDED'],
    },
    async (call) => {
      await findRow(rows, call, call.params.id)
      return grantCredential(call, tokensOf(call.params.id), call.body)
    },
  ),
  tokens.read({}, (call) => readCredential(call, tokensOf(call.params.id), call.params.tokenId)),
  tokens.delete({ verb: 'revoke', errors: ['LAST_CREDENTIAL'] }, (call) =>
    revokeCredential(call, tokensOf(call.params.id), call.params.tokenId),
  ),
]

export const members = [...memberEndpoints, ...tokenEndpoints]

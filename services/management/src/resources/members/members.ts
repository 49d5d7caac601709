/**
 * Defines the endpoints of members, the people of a vendor, and of their personal access tokens. A token never has more permissions than
 * its member (docs/api.md#a3).
 */

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
import { createdMember, invitation } from '@keyward/contract/management/sign-in'

import { crudEndpoints } from '../../crud/endpoints.ts'
import { changeRow, deleteRow, findRow, insertRow, listRows, type OwnedRows, readRow } from '../../crud/rows.ts'
import { vendorEndpoint } from '../../http/endpoint.ts'
import { lockManagers, permissionsOf, requireCovered, requireGrantable, requireManager } from '../credentials/bounds.ts'
import {
  type CredentialFilter,
  grantCredential,
  listCredentials,
  readCredential,
  revokeCredential,
  revokeTokensMadeBy,
} from '../credentials/store.ts'
import { invite } from './invitations.ts'

export const memberRows: OwnedRows<'members', Member> = {
  table: 'members',
  type: 'member',
  quota: 'members',
  // There is no type for `created`, because the first event about a member is its invitation.
  events: { updated: 'member.updated', deleted: 'member.removed' },
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
  people.list({}, (call) => listRows(memberRows, call, call.query)),
  people.create(
    {
      summary: 'Add a member',
      description:
        'A credential can grant only permissions that it has. The response contains an invitation: a link that signs the member in once within 72 hours.',
      body: createMember,
      response: createdMember,
      secrets: ['invitation'],
      errors: ['MEMBER_EXISTS', 'QUOTA_EXCEEDED'],
    },
    async (call) => {
      requireGrantable(call.body.permissions, call.permissions)
      const created = await insertRow(memberRows, call, call.body)
      return { ...created, invitation: await invite(call, created) }
    },
  ),
  people.read({}, (call) => readRow(memberRows, call, call.params.id)),
  people.change(
    {
      description:
        "The member's access tokens lose a withdrawn permission with the next request. " +
        'A credential can change only members whose permissions it has.',
      body: updateMember,
      errors: ['MEMBER_EXISTS', 'LAST_CREDENTIAL'],
    },
    async (call) => {
      await lockManagers(call)
      const changed = await changeRow(memberRows, call, call.params.id, call.body, (before) => {
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
        'with them stay valid. The audit entry lists both.',
      errors: ['LAST_CREDENTIAL'],
    },
    async (call) => {
      await lockManagers(call)
      await deleteRow(memberRows, call, call.params.id, {
        check: (row) => requireCovered('member', permissionsOf(row.permissions), call.permissions),
        audited: ({ email }) => ({ email }),
        cascade: revokeTokensMadeBy,
      })
      await requireManager(call)
    },
  ),
]

const invitations = [
  vendorEndpoint(
    permissions.writePermission,
    {
      method: 'post',
      path: '/members/{id}/invitation',
      tag,
      operationId: 'createInvitation',
      summary: 'Invite a member again',
      description:
        'Returns a link that signs the member in once within 72 hours. It replaces an earlier link. A credential can invite only ' +
        'members whose permissions it has.',
      params: idParams,
      status: 200,
      response: invitation,
      secrets: ['secret', 'path'],
    },
    async (call) => {
      const row = await findRow(memberRows, call, call.params.id)
      requireCovered('member', permissionsOf(row.permissions), call.permissions)
      return invite(call, memberRows.show(row))
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
    await findRow(memberRows, call, call.params.id)
    return listCredentials(call, tokensOf(call.params.id), call.query)
  }),
  tokens.create(
    {
      summary: 'Create an access token for a member',
      description:
        'At each request, the token has the permissions that both it and the member have. It expires ' +
        'no later than the credential that creates it. Unless the member creates it, the audit log also names its creator.',
      body: createToken,
      response: createdToken,
      secrets: ['secret'],
      errors: ['QUOTA_EXCEEDED'],
    },
    async (call) => {
      await findRow(memberRows, call, call.params.id)
      return grantCredential(call, tokensOf(call.params.id), call.body)
    },
  ),
  tokens.read({}, (call) => readCredential(call, tokensOf(call.params.id), call.params.tokenId)),
  tokens.delete({ verb: 'revoke', errors: ['LAST_CREDENTIAL'] }, (call) =>
    revokeCredential(call, tokensOf(call.params.id), call.params.tokenId),
  ),
]

export const members = [...memberEndpoints, ...invitations, ...tokenEndpoints]

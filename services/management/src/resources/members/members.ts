/**
 * Defines the endpoints of members, the people of a vendor, and of their personal access tokens. A token never has more permissions than
 * its member (docs/api.md#a3).
 */

import type { Member } from '@keyward/contract'
import { members as operations } from '@keyward/contract/management/members'

import { changeRow, deleteRow, findRow, insertRow, listRows, type OwnedRows, readRow } from '../../crud/owned-rows.ts'
import { implement } from '../../operations/implement.ts'
import {
  isManager,
  lockManagers,
  permissionsOf,
  requireCovered,
  requireGrantable,
  requireManager,
  requireManagingMember,
  requireUnlimited,
} from '../credentials/bounds.ts'
import {
  type CredentialFilter,
  grantCredential,
  listCredentials,
  readCredential,
  revokeCredential,
  revokeTokensMadeBy,
} from '../credentials/store.ts'
import { endpointsOf } from '../webhook-endpoints/store.ts'
import { endInvitationsOf, invite } from './invitations.ts'

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
const tokensOf = (memberId: string): CredentialFilter => ({ kind: 'ACCESS_TOKEN', memberId })

export const members = implement(tag, operations, {
  listMembers: { summary: 'List members', handle: (call) => listRows(memberRows, call, call.query) },
  createMember: {
    summary: 'Add a member',
    description:
      'A credential can grant only permissions that it has. The response contains an invitation: a link that signs the member in once within 72 hours.',
    errors: ['MEMBER_EXISTS'],
    async handle(call) {
      requireUnlimited(call.credential)
      requireGrantable(call.body.permissions, call.permissions)
      const created = await insertRow(memberRows, call, call.body)
      return { ...created, invitation: await invite(call, created) }
    },
  },
  readMember: { summary: 'Read a member', handle: (call) => readRow(memberRows, call, call.params.id) },
  updateMember: {
    summary: 'Change a member',
    description:
      "The member's access tokens lose a withdrawn permission with the next request. " +
      'A credential can change only members whose permissions it has.',
    errors: ['MEMBER_EXISTS', 'LAST_CREDENTIAL', 'LAST_MANAGER'],
    async handle(call) {
      await lockManagers(call)
      let wasManager = false
      const changed = await changeRow(memberRows, call, call.params.id, call.body, (before) => {
        wasManager = isManager(before)
        requireCovered('member', permissionsOf(before.permissions), call.permissions)
        requireGrantable(call.body.permissions ?? [], call.permissions)
        const isAdded = call.body.permissions?.some((permission) => !before.permissions.includes(permission)) === true
        if (isAdded) requireUnlimited(call.credential)
      })
      if (call.body.permissions) await requireManager(call)
      if (wasManager) await requireManagingMember(call)
      return changed
    },
  },
  deleteMember: {
    summary: 'Remove a member',
    description:
      "Also revokes the member's access tokens and the tokens that were created with them, and ends the invitations and " +
      'sessions that the member opened for others. API keys that were created with the tokens stay valid, and webhook endpoints stay. The audit entry lists all of them.',
    errors: ['LAST_CREDENTIAL', 'LAST_MANAGER'],
    async handle(call) {
      await lockManagers(call)
      let wasManager = false
      await deleteRow(memberRows, call, call.params.id, {
        check: (row) => {
          requireCovered('member', permissionsOf(row.permissions), call.permissions)
          wasManager = isManager(row)
        },
        audited: ({ email }) => ({ email }),
        async cascade(context, id) {
          const tokens = await revokeTokensMadeBy(context, id)
          const ended = await endInvitationsOf(context, id, tokens.revokedTokens)
          return { ...tokens, ...ended, keptWebhookEndpoints: await endpointsOf(context, id) }
        },
      })
      await requireManager(call)
      if (wasManager) await requireManagingMember(call)
    },
  },
  createInvitation: {
    summary: 'Invite a member again',
    description:
      'Returns a link that signs the member in once within 72 hours. It replaces an earlier link. A credential can invite only ' +
      'members whose permissions it has.',
    async handle(call) {
      requireUnlimited(call.credential)
      const row = await findRow(memberRows, call, call.params.id)
      requireCovered('member', permissionsOf(row.permissions), call.permissions)
      return invite(call, memberRows.show(row))
    },
  },
  listAccessTokens: {
    summary: 'List access tokens',
    async handle(call) {
      await findRow(memberRows, call, call.params.id)
      return listCredentials(call, tokensOf(call.params.id), call.query)
    },
  },
  createAccessToken: {
    summary: 'Create an access token for a member',
    description:
      'At each request, the token has the permissions that both it and the member have. It expires ' +
      'no later than the credential that creates it. Unless the member creates it, the audit log also names its creator.',
    async handle(call) {
      await findRow(memberRows, call, call.params.id)
      return grantCredential(call, tokensOf(call.params.id), call.body)
    },
  },
  readAccessToken: {
    summary: 'Read an access token',
    handle: (call) => readCredential(call, tokensOf(call.params.id), call.params.tokenId),
  },
  revokeAccessToken: {
    summary: 'Revoke an access token',
    errors: ['LAST_CREDENTIAL'],
    handle: (call) => revokeCredential(call, tokensOf(call.params.id), call.params.tokenId),
  },
})

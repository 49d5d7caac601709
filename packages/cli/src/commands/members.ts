import { members } from '@keyward/contract/management/members'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { describe } from '../output.ts'
import { expiryOf, permissionsOf, withExpiry, withPermissions } from './credential-options.ts'
import { addDeletion } from './deletion.ts'
import { addList } from './lists.ts'
import { printToken } from './tokens.ts'

export function addMemberCommands(parent: CliCommand): void {
  const group = parent.command('member').description('members: the people of the organization')
  withPermissions(group.command('create').description('create a member'), 'the permissions of the member')
    .argument('<email>', 'the e-mail address')
    .run(async ({ api, output }, flags, email: string) => {
      const { data } = await api.call(members.createMember, { body: { email, permissions: permissionsOf(flags) } })
      output.result(data, describe({ id: data.id, 'e-mail': data.email, permissions: data.permissions.join(', ') }))
    })
  addList(group, members.listMembers, 'members', (one) => ({
    ID: one.id,
    'E-MAIL': one.email,
    PERMISSIONS: one.permissions.join(', '),
  }))
  addToken(group)
  const consequence = 'the personal access tokens of the member are deleted too'
  addDeletion(group, { verb: 'delete', noun: 'a member', operation: members.deleteMember, consequence })
}

function addToken(group: CliCommand): void {
  const token = group
    .command('token')
    .description('create a personal access token for a member and show its secret once')
    .argument('<id>', 'the id of the member')
    .option('--name <name>', 'the purpose of the token', 'access token')
  withExpiry(withPermissions(token, 'the permissions of the token, which the member must have')).run(
    async (session, flags, id: string) => {
      const { name } = z.object({ name: z.string() }).parse(flags)
      const body = { name, permissions: permissionsOf(flags), ...expiryOf(flags, session) }
      printToken(session, await session.api.call(members.createAccessToken, { params: { id }, body }))
    },
  )
}

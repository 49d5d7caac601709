import { members } from '@keyward/contract/management/members'
import type { Command } from 'commander'
import { z } from 'zod'

import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { expiryOf, permissionsOf, withExpiry, withPermissions } from './credential-options.ts'
import { addDeletion } from './deletion.ts'
import { addList } from './lists.ts'
import { printToken } from './tokens.ts'

export function addMemberCommands(parent: Command, open: (command: Command) => Session): void {
  const group = parent.command('member').description('members: the people of the organization')
  withPermissions(group.command('create').description('create a member'), 'the permissions of the member')
    .argument('<email>', 'the e-mail address')
    .action(async (email: string, flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const { data } = await api.call(members.createMember, { body: { email, permissions: permissionsOf(flags) } })
      output.result(data, describe({ id: data.id, 'e-mail': data.email, permissions: data.permissions.join(', ') }))
    })
  addList(group, open, members.listMembers, 'members', (one) => ({
    ID: one.id,
    'E-MAIL': one.email,
    PERMISSIONS: one.permissions.join(', '),
  }))
  addToken(group, open)
  const consequence = 'the personal access tokens of the member are deleted too'
  addDeletion(group, open, { verb: 'delete', noun: 'a member', operation: members.deleteMember, consequence })
}

function addToken(group: Command, open: (command: Command) => Session): void {
  const token = group
    .command('token')
    .description('create a personal access token for a member and show its secret once')
    .argument('<id>', 'the id of the member')
    .option('--name <name>', 'the purpose of the token', 'access token')
  withExpiry(withPermissions(token, 'the permissions of the token, which the member must have')).action(
    async (id: string, flags: unknown, command: Command) => {
      const session = open(command)
      const { name } = z.object({ name: z.string() }).parse(flags)
      const body = { name, permissions: permissionsOf(flags), ...expiryOf(flags, session) }
      printToken(session, await session.api.call(members.createAccessToken, { params: { id }, body }))
    },
  )
}

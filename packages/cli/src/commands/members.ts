import { ALL_PERMISSIONS, createdToken, member } from '@keyward/contract'
import { type Command, Option } from 'commander'
import { z } from 'zod'

import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'
import { fetchList, listFlags, noContent, printList, withLimit } from './lists.ts'

const createFlags = z.object({ permission: z.array(z.string()) })
const tokenFlags = createFlags.extend({ name: z.string(), expires: z.string().optional() })

export function addMemberCommands(parent: Command, open: (command: Command) => Session): void {
  const group = parent.command('member').description('members: the people of the organization')
  group
    .command('create')
    .description('create a member')
    .argument('<email>', 'the e-mail address')
    .addOption(
      new Option('-p, --permission <permission...>', 'the permissions of the member')
        .choices(ALL_PERMISSIONS)
        .makeOptionMandatory(),
    )
    .action(async (email: string, flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const body = { email, permissions: createFlags.parse(flags).permission }
      const { data } = await api.call({ method: 'POST', path: '/members', body }, member)
      output.result(data, describe({ id: data.id, 'e-mail': data.email, permissions: data.permissions.join(', ') }))
    })
  withLimit(group.command('list').description('list members, newest first')).action(
    async (flags: unknown, command: Command) => {
      const session = open(command)
      const list = await fetchList(session.api, '/members', member, listFlags.parse(flags).limit)
      printList(session, list, ['ID', 'E-MAIL', 'PERMISSIONS'], (one) => [
        one.id,
        one.email,
        one.permissions.join(', '),
      ])
    },
  )
  addToken(group, open)
  group
    .command('delete')
    .description('delete a member and the personal access tokens of that member')
    .argument('<id>', 'the id of the member')
    .action(async (id: string, _flags: unknown, command: Command) => {
      const { api, output } = open(command)
      await api.call({ method: 'DELETE', path: `/members/${encodeURIComponent(id)}` }, noContent)
      output.result({ id, deleted: true }, `Deleted the member ${id}.`)
    })
}

function addToken(group: Command, open: (command: Command) => Session): void {
  group
    .command('token')
    .description('create a personal access token for a member and show its secret once')
    .argument('<id>', 'the id of the member')
    .addOption(
      new Option('-p, --permission <permission...>', 'the permissions of the token, which the member must have')
        .choices(ALL_PERMISSIONS)
        .makeOptionMandatory(),
    )
    .option('--name <name>', 'the purpose of the token', 'access token')
    .option('--expires <when>', 'the expiry: a date, or 30d, 12h, 1y from now (default: never)')
    .action(async (memberId: string, flags: unknown, command: Command) => {
      const { api, output, context } = open(command)
      const { permission, name, expires } = tokenFlags.parse(flags)
      const expiresAt = expires === undefined ? {} : { expiresAt: parseMoment(expires, context.nowMs()) }
      const path = `/members/${encodeURIComponent(memberId)}/access-tokens`
      const body = { name, permissions: permission, ...expiresAt }
      const { data } = await api.call({ method: 'POST', path, body }, createdToken)
      const { id, secret = null, permissions } = data
      output.result(
        data,
        describe({ id, name, secret, permissions: permissions.join(', '), expires: data.expiresAt ?? 'never' }),
      )
      output.note('\nStore the secret now. It is not shown again.')
    })
}

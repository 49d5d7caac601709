/** The commands for management tokens, the credentials of scripts: `token create`, `token list`, `token revoke`. */

import { ALL_PERMISSIONS, createdToken, token as tokenSchema } from '@keyward/contract'
import { type Command, Option } from 'commander'
import { z } from 'zod'

import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'
import { addDeletion } from './deletion.ts'
import { fetchList, listFlags, printList, withLimit } from './lists.ts'

const flagsOf = z.object({ permission: z.array(z.string()), expires: z.string().optional() })

export function addTokenCommands(parent: Command, open: (command: Command) => Session): void {
  const token = parent.command('token').description('management tokens: credentials for scripts')
  token
    .command('create')
    .description('create a management token and show its secret once')
    .argument('<name>', 'the purpose of the token')
    .addOption(
      new Option('-p, --permission <permission...>', 'the permissions of the token')
        .choices(ALL_PERMISSIONS)
        .makeOptionMandatory(),
    )
    .option('--expires <when>', 'the expiry: a date, or 30d, 12h, 1y from now (default: never)')
    .action(async (name: string, flags: unknown, command: Command) => {
      const { api, output, context } = open(command)
      const { permission, expires } = flagsOf.parse(flags)
      const expiresAt = expires === undefined ? {} : { expiresAt: parseMoment(expires, context.nowMs()) }
      const body = { name, permissions: permission, ...expiresAt }
      const { data } = await api.call({ method: 'POST', path: '/tokens', body }, createdToken)
      const { id, secret = null } = data
      output.result(
        data,
        describe({ id, name, secret, permissions: data.permissions.join(', '), expires: data.expiresAt ?? 'never' }),
      )
      output.note('\nStore the secret now. It is not shown again.')
    })
  withLimit(token.command('list').description('list management tokens, newest first')).action(
    async (flags: unknown, command: Command) => {
      const session = open(command)
      const list = await fetchList(session.api, '/tokens', tokenSchema, listFlags.parse(flags).limit)
      printList(session, list, ['ID', 'NAME', 'PREFIX', 'LAST USED', 'EXPIRES', 'PERMISSIONS'], (one) => [
        one.id,
        one.name,
        one.prefix,
        one.lastUsedAt ?? 'never',
        one.expiresAt ?? 'never',
        one.permissions.join(', '),
      ])
    },
  )
  const consequence = 'scripts that use the token lose access at once'
  addDeletion(token, open, { verb: 'revoke', noun: 'a management token', path: '/tokens', consequence })
}

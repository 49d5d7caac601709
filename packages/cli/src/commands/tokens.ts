/** `token create`: a credential for scripts, with the permissions that it is given. */

import { ALL_PERMISSIONS, createdToken } from '@keyward/contract'
import { type Command, Option } from 'commander'
import { z } from 'zod'

import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'

const flagsOf = z.object({ permission: z.array(z.string()), expires: z.string().optional() })

export function addTokenCommands(parent: Command, open: (command: Command) => Session): void {
  const token = parent.command('token').description('management tokens: credentials for scripts')
  token
    .command('create')
    .description('create a management token; shows its secret, only once')
    .argument('<name>', 'what it is for')
    .addOption(
      new Option('-p, --permission <permission...>', 'what it may do').choices(ALL_PERMISSIONS).makeOptionMandatory(),
    )
    .option('--expires <when>', 'when it stops working: a date, or 30d, 12h, 1y from now; default never')
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
      output.note('\nStore the secret now; it is not shown again.')
    })
}

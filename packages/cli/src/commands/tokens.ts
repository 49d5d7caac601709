/** The commands for management tokens, the credentials of scripts: `token create`, `token list`, `token revoke`. */

import { type createdToken, tokens } from '@keyward/contract'
import type { z } from 'zod'

import type { ApiResponse } from '../api.ts'
import type { CliCommand } from '../command.ts'
import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { expiryOf, permissionsOf, printSecret, withExpiry, withPermissions } from './credential-options.ts'
import { addDeletion } from './deletion.ts'
import { addList } from './lists.ts'

export function addTokenCommands(parent: CliCommand): void {
  const token = parent.command('token').description('management tokens: credentials for scripts')
  const create = token.command('create').description('create a management token and show its secret once')
  withExpiry(withPermissions(create, 'the permissions of the token'))
    .argument('<name>', 'the purpose of the token')
    .run(async (session, flags, name: string) => {
      const body = { name, permissions: permissionsOf(flags), ...expiryOf(flags, session) }
      printToken(session, await session.api.call(tokens.createToken, { body }))
    })
  addList(token, tokens.listTokens, 'management tokens', (one) => ({
    ID: one.id,
    NAME: one.name,
    PREFIX: one.prefix,
    'LAST USED': one.lastUsedAt ?? 'never',
    EXPIRES: one.expiresAt ?? 'never',
    PERMISSIONS: one.permissions.join(', '),
  }))
  const consequence = 'scripts that use the token lose access at once'
  addDeletion(token, { verb: 'revoke', noun: 'a management token', operation: tokens.revokeToken, consequence })
}

/** Prints a management token or a personal access token that was created. */
export function printToken(session: Session, created: ApiResponse<z.infer<typeof createdToken>>): void {
  const { id, name, secret = null, permissions, expiresAt } = created.data
  const text = describe({ id, name, secret, permissions: permissions.join(', '), expires: expiresAt ?? 'never' })
  printSecret(session, created, text)
}

/** `keys list`, `keys rotate`: the signing keys of offline files. Files that an older key signed still verify. */

import { signingKey } from '@keyward/contract'
import type { Command } from 'commander'

import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { fetchList, listFlags, printList, withLimit } from './lists.ts'

export function addKeyCommands(parent: Command, open: (command: Command) => Session): void {
  const keys = parent.command('keys').description('signing keys of offline license files')
  keys
    .command('rotate')
    .description('sign new files with a new key; files of older keys still verify')
    .action(async (_flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const { data } = await api.call({ method: 'POST', path: '/signing-keys/rotate' }, signingKey)
      const { keyId, algorithm, publicKey, createdAt } = data
      output.result(data, describe({ 'key id': keyId, algorithm, 'public key': publicKey, created: createdAt }))
    })
  withLimit(keys.command('list').description('list signing keys, newest first')).action(
    async (flags: unknown, command: Command) => {
      const session = open(command)
      const list = await fetchList(session.api, '/signing-keys', signingKey, listFlags.parse(flags).limit)
      printList(session, list, ['KEY ID', 'STATE', 'CREATED', 'PUBLIC KEY'], (one) => [
        one.keyId,
        one.withdrawnAt !== null ? 'withdrawn' : one.retiredAt !== null ? 'retired' : 'signs new files',
        one.createdAt,
        one.publicKey,
      ])
    },
  )
}

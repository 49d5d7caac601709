/** `keys rotate`: creates a new signing key for offline files. Files that an older key signed still verify. */
import { signingKey } from '@keyward/contract'
import type { Command } from 'commander'

import { describe } from '../output.ts'
import type { Session } from '../session.ts'

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
}

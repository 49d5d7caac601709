/** `keys list`, `keys prepare`, `keys rotate`: the signing keys of offline files. Files that an older key signed still verify. */

import { signingKey } from '@keyward/contract/management/signing-keys'
import type { Command } from 'commander'
import type { z } from 'zod'

import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { fetchList, listFlags, printList, withLimit } from './lists.ts'

export function addKeyCommands(parent: Command, open: (command: Command) => Session): void {
  const keys = parent.command('keys').description('signing keys of offline license files')
  const addPost = (name: 'prepare' | 'rotate', description: string): void => {
    keys
      .command(name)
      .description(description)
      .action(async (_flags: unknown, command: Command) => {
        const { api, output } = open(command)
        const { data } = await api.call({ method: 'POST', path: `/signing-keys/${name}` }, signingKey)
        const { keyId, algorithm, publicKey, createdAt } = data
        output.result(data, describe({ 'key id': keyId, algorithm, 'public key': publicKey, created: createdAt }))
      })
  }
  addPost('prepare', 'create the key that the next rotation makes current, so that apps can ship it before')
  addPost('rotate', 'sign new files with the prepared key, or with a new one; files of older keys still verify')
  withLimit(keys.command('list').description('list signing keys, newest first')).action(
    async (flags: unknown, command: Command) => {
      const session = open(command)
      const list = await fetchList(session.api, '/signing-keys', signingKey, listFlags.parse(flags).limit)
      printList(session, list, ['KEY ID', 'STATE', 'CREATED', 'PUBLIC KEY'], (one) => [
        one.keyId,
        stateOf(one),
        one.createdAt,
        one.publicKey,
      ])
    },
  )
}

function stateOf({ withdrawnAt, preparedAt, retiredAt }: z.infer<typeof signingKey>): string {
  if (withdrawnAt !== null) return 'withdrawn'
  if (preparedAt !== null) return 'prepared'
  return retiredAt !== null ? 'retired' : 'signs new files'
}

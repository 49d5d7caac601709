/** The commands for the signing keys of offline license files: `keys list`, `keys prepare`, `keys rotate`, `keys withdraw`. */

import { signingKey } from '@keyward/contract/management/signing-keys'
import type { Command } from 'commander'
import type { z } from 'zod'

import { EXIT, Failure } from '../failure.ts'
import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { fetchList, listFlags, printList, withLimit } from './lists.ts'

const NEXT_STEPS = {
  prepare: `Next step: release your app with this public key in addition to the current one. When your customers have the update,
  n "keyward keys rotate".`,
  rotate: `This key signs new license files. Next step: release your app with this public key. Apps without the key use their
  ored file for up to 30 days, so keep the older key in the app for as long. If the older private key has leaked,
  n "keyward keys withdraw <key id>" and release the app without that key.`,
} as const

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
        output.note(`\n${NEXT_STEPS[name]}`)
      })
  }
  addPost('prepare', 'create the key for the next rotation, so that you can release apps with it first')
  addPost('rotate', 'sign new files with the prepared key or a new one; existing files stay valid')
  addWithdraw(keys, open)
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

function addWithdraw(keys: Command, open: (command: Command) => Session): void {
  keys
    .command('withdraw')
    .description('stop publishing a leaked key; installed apps trust the key until they are updated')
    .argument('<key>', 'the key id in license files, or the id of the record')
    .action(async (given: string, _flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const { items } = await fetchList(api, '/signing-keys', signingKey, Number.MAX_SAFE_INTEGER)
      const found = items.find(({ keyId, id }) => keyId === given || id === given)
      if (found === undefined)
        throw new Failure(EXIT.apiError, `No signing key has the id or key id ${JSON.stringify(given)}`, {
          code: 'NOT_FOUND',
        })
      const { data } = await api.call({ method: 'POST', path: `/signing-keys/${found.id}/withdraw` }, signingKey)
      output.result(data, `Withdrew the key ${data.keyId}.`)
      output.note('\nNext step: release your app without this key.')
    })
}

function stateOf({ withdrawnAt, preparedAt, retiredAt }: z.infer<typeof signingKey>): string {
  if (withdrawnAt !== null) return 'withdrawn'
  if (preparedAt !== null) return 'prepared'
  return retiredAt !== null ? 'retired' : 'signs new files'
}

/** `keys list`, `keys prepare`, `keys rotate`, `keys withdraw`: the signing keys of offline files. Files that an older key signed still verify. */

import { signingKey } from '@keyward/contract/management/signing-keys'
import type { Command } from 'commander'
import type { z } from 'zod'

import { EXIT, Failure } from '../failure.ts'
import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { fetchList, listFlags, printList, withLimit } from './lists.ts'

const NEXT_STEPS = {
  prepare: `Next: build this public key into your app beside the present one, release the app, and wait until your customers
have the update. Then run "keyward keys rotate".`,
  rotate: `New license files are signed with this key. Next: apps must contain this public key; those without it keep their
stored file until it runs out, 30 days at most. Keep the older key in the app as long. If its private key has leaked,
run "keyward keys withdraw <its key id>" and release the app without it.`,
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
  addPost('prepare', 'create the key that the next rotation makes current, so that apps can ship it before')
  addPost('rotate', 'sign new files with the prepared key, or with a new one; files of older keys still verify')
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
    .description('stop publishing a key, for one that has leaked; apps in the field trust it until they are updated')
    .argument('<key>', 'the key id, or the id of the key')
    .action(async (given: string, _flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const { items } = await fetchList(api, '/signing-keys', signingKey, Number.MAX_SAFE_INTEGER)
      const found = items.find(({ keyId, id }) => keyId === given || id === given)
      if (found === undefined)
        throw new Failure(EXIT.apiError, `No signing key is ${JSON.stringify(given)}`, { code: 'NOT_FOUND' })
      const { data } = await api.call({ method: 'POST', path: `/signing-keys/${found.id}/withdraw` }, signingKey)
      output.result(data, `Withdrew the key ${data.keyId}.`)
      output.note('\nNext: release your app without this key.')
    })
}

function stateOf({ withdrawnAt, preparedAt, retiredAt }: z.infer<typeof signingKey>): string {
  if (withdrawnAt !== null) return 'withdrawn'
  if (preparedAt !== null) return 'prepared'
  return retiredAt !== null ? 'retired' : 'signs new files'
}

/** The commands for the signing keys of offline license files: `keys list`, `keys prepare`, `keys rotate`, `keys withdraw`. */

import { signingKeys } from '@keyward/contract/management/signing-keys'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'
import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { addList, type ItemOf, readList } from './lists.ts'
import { printChange, waitOf, withWait } from './wait.ts'

const NEXT_STEPS = {
  prepare: `Next step: release your app with this public key in addition to the current one. When your customers have the update,
run "keyward keys rotate".`,
  rotate: `This key signs new license files. Next step: release your app with this public key. Apps without the key use their
stored file for up to 30 days, so keep the older key in the app for as long. If the older private key has leaked,
run "keyward keys withdraw <key id>" and release the app without that key.`,
} as const
const rotateFlags = z.object({ unprepared: z.boolean().default(false) })
const POSTS = { prepare: signingKeys.prepareSigningKey, rotate: signingKeys.rotateSigningKey } as const

export function addKeyCommands(parent: CliCommand): void {
  const keys = parent.command('keys').description('signing keys of offline license files')
  const addPost = (name: 'prepare' | 'rotate', description: string): CliCommand =>
    withWait(keys.command(name).description(description)).run(async (session, flags) => {
      if (name === 'rotate' && !rotateFlags.parse(flags).unprepared) await requirePrepared(session)
      const created = await session.api.call(POSTS[name], {}, waitOf(flags))
      const { keyId, algorithm, publicKey, createdAt } = created.data
      const text = describe({ 'key id': keyId, algorithm, 'public key': publicKey, created: createdAt })
      printChange(session, created, text)
      session.output.note(`\n${NEXT_STEPS[name]}`)
    })
  addPost('prepare', 'create the key for the next rotation, so that you can release apps with it first')
  addPost('rotate', 'sign new files with the prepared key; existing files stay valid').option(
    '--unprepared',
    'if no key is prepared, sign new files with a new key, which no installed app trusts yet',
  )
  addWithdraw(keys)
  addList(keys, signingKeys.listSigningKeys, 'signing keys', (one) => ({
    'KEY ID': one.keyId,
    STATE: stateOf(one),
    CREATED: one.createdAt,
    'PUBLIC KEY': one.publicKey,
  }))
}

function addWithdraw(keys: CliCommand): void {
  const withdraw = keys.command('withdraw')
  withWait(withdraw.description('stop publishing a leaked key; installed apps trust the key until they are updated'))
    .argument('<key>', 'the key id in license files, or the id of the record')
    .run(async (session, flags, given: string) => {
      const { items } = await readList(session.api, signingKeys.listSigningKeys, {})
      const found = items.find(({ keyId, id }) => keyId === given || id === given)
      if (found === undefined)
        throw new Failure(EXIT.apiError, `No signing key has the id or key id ${JSON.stringify(given)}`, {
          code: 'NOT_FOUND',
        })
      const input = { params: { id: found.id } }
      const withdrawn = await session.api.call(signingKeys.withdrawSigningKey, input, waitOf(flags))
      printChange(session, withdrawn, `Withdrew the key ${withdrawn.data.keyId}.`)
      session.output.note('\nNext step: release your app without this key.')
    })
}

async function requirePrepared({ api }: Session): Promise<void> {
  const { items } = await readList(api, signingKeys.listSigningKeys, {})
  if (items.some((one) => stateOf(one) === 'prepared')) return
  throw new Failure(
    EXIT.usage,
    'No key is prepared, so installed apps would reject all new files. Run "keyward keys prepare" and release your app with that key first. ' +
      'If the current key has leaked, use --unprepared',
  )
}

function stateOf({ withdrawnAt, preparedAt, retiredAt }: ItemOf<typeof signingKeys.listSigningKeys>): string {
  if (withdrawnAt !== null) return 'withdrawn'
  if (preparedAt !== null) return 'prepared'
  return retiredAt !== null ? 'retired' : 'signs new files'
}

import { signingKeys as operations } from '@keyward/contract/management/signing-keys'

import { listRows } from '../../crud/owned-rows.ts'
import { implement } from '../../operations/implement.ts'
import { prepareSigningKey, rotateSigningKey, signingKeyRows, withdrawSigningKey } from './store.ts'

const tag = { name: 'Signing keys', description: 'The keys that sign license files.' }

export const signingKeys = implement(tag, operations, {
  listSigningKeys: { summary: 'List signing keys', handle: (call) => listRows(signingKeyRows, call, call.query) },
  prepareSigningKey: {
    summary: 'Prepare the next signing key',
    description:
      'Prepares the key that the next rotation will use, and returns it. The list of public keys contains it from now on, so that apps ' +
      'can ship it before it signs a file. Repeating the request returns the same key.',
    handle: (call) => prepareSigningKey(call, call.dependencies.keyring),
  },
  rotateSigningKey: {
    summary: 'Rotate the signing key',
    description:
      'Makes the prepared key current, or a new key if none is prepared. It signs files from now on. Files of older keys stay valid.',
    handle: (call) => rotateSigningKey(call, call.dependencies.keyring),
  },
  withdrawSigningKey: {
    summary: 'Withdraw a signing key',
    description:
      'Removes the key from the public keys, so that apps built from now on reject its files. Apps in the field trust the keys that they ' +
      'were built with. A prepared key is discarded. To withdraw the current key, rotate it first.',
    errors: ['SIGNING_KEY_CURRENT'],
    handle: (call) => withdrawSigningKey(call, call.params.id),
  },
})

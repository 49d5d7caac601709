import { idParams, listQuery, page } from '@keyward/contract'
import { signingKey } from '@keyward/contract/management/signing-keys'

import { listRows } from '../../crud/rows.ts'
import { vendorEndpoint } from '../../http/endpoint.ts'
import { prepareSigningKey, rotateSigningKey, signingKeyRows, withdrawSigningKey } from './store.ts'

const tag = { name: 'Signing keys', description: 'The keys that sign license files.' }

export const signingKeys = [
  vendorEndpoint(
    'signing-keys.write',
    {
      method: 'get',
      path: '/signing-keys',
      tag,
      operationId: 'listSigningKeys',
      summary: 'List signing keys',
      query: listQuery({}),
      status: 200,
      response: page(signingKey),
    },
    (call) => listRows(signingKeyRows, call, call.query),
  ),
  vendorEndpoint(
    'signing-keys.write',
    {
      method: 'post',
      path: '/signing-keys/prepare',
      tag,
      operationId: 'prepareSigningKey',
      summary: 'Prepare the next signing key',
      description:
        'Returns the key that the next rotation makes current. The public keys list it from now on, so that apps can ship it before ' +
        'it signs a file. Repeating the request returns the same key.',
      status: 200,
      response: signingKey,
      errors: ['QUOTA_EXCEEDED'],
      propagates: true,
    },
    (call) => prepareSigningKey(call, call.dependencies.keyring),
  ),
  vendorEndpoint(
    'signing-keys.write',
    {
      method: 'post',
      path: '/signing-keys/rotate',
      tag,
      operationId: 'rotateSigningKey',
      summary: 'Rotate the signing key',
      description:
        'Makes the prepared key current, or a new key if none is prepared. It signs files from now on. Files of older keys stay valid.',
      status: 200,
      response: signingKey,
      errors: ['QUOTA_EXCEEDED'],
      propagates: true,
    },
    (call) => rotateSigningKey(call, call.dependencies.keyring),
  ),
  vendorEndpoint(
    'signing-keys.write',
    {
      method: 'post',
      path: '/signing-keys/{id}/withdraw',
      tag,
      operationId: 'withdrawSigningKey',
      summary: 'Withdraw a signing key',
      description:
        'Removes the key from the public keys, so that apps built from now on reject its files. Apps in the field trust the keys that they ' +
        'were built with. A prepared key is discarded. To withdraw the current key, rotate it first.',
      params: idParams,
      status: 200,
      response: signingKey,
      errors: ['SIGNING_KEY_CURRENT'],
      propagates: true,
    },
    (call) => withdrawSigningKey(call, call.params.id),
  ),
]

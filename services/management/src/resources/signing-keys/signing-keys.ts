/** Endpoints of signing keys. */

import { idParams, listQuery, page, signingKey } from '@keyward/contract'

import { listRows } from '../../crud/rows.ts'
import { vendorEndpoint } from '../../http/endpoint.ts'
import { rotateSigningKey, signingKeyRows, withdrawSigningKey } from './store.ts'

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
      path: '/signing-keys/rotate',
      tag,
      operationId: 'rotateSigningKey',
      summary: 'Rotate the signing key',
      description: 'Creates a new key, which signs files from now on. Files of older keys stay valid.',
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
        'Removes the key from the public keys, so that clients reject its files. To withdraw the current key, rotate it first.',
      params: idParams,
      status: 200,
      response: signingKey,
      errors: ['SIGNING_KEY_CURRENT'],
      propagates: true,
    },
    (call) => withdrawSigningKey(call, call.params.id),
  ),
]

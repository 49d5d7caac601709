/** Endpoints of signing keys. */
import { idParams, listQuery, page, signingKey } from '@keyward/contract'

import { vendorEndpoint } from '../../http/endpoint.ts'
import { listSigningKeys, rotateSigningKey, withdrawSigningKey } from './store.ts'

const tag = 'Signing keys'

export const signingKeys = [
  vendorEndpoint(
    'credentials.write',
    {
      method: 'get',
      path: '/signing-keys',
      tag,
      operationId: 'listSigningKeys',
      summary: 'List signing keys',
      query: listQuery({}),
      status: 200,
      answer: page(signingKey),
    },
    ({ db, organizationId, query }) => listSigningKeys(db, organizationId, query),
  ),
  vendorEndpoint(
    'credentials.write',
    {
      method: 'post',
      path: '/signing-keys/rotate',
      tag,
      operationId: 'rotateSigningKey',
      summary: 'Make a new current signing key',
      description: 'Files signed by the older keys still verify.',
      status: 200,
      answer: signingKey,
      propagates: true,
    },
    (call) => rotateSigningKey(call, call.services.keyring),
  ),
  vendorEndpoint(
    'credentials.write',
    {
      method: 'post',
      path: '/signing-keys/{id}/withdraw',
      tag,
      operationId: 'withdrawSigningKey',
      summary: 'Withdraw a signing key',
      description:
        'It leaves the public keys, so its files are no longer trusted. The current key must be rotated first.',
      params: idParams,
      status: 200,
      answer: signingKey,
      errors: ['SIGNING_KEY_CURRENT'],
      propagates: true,
    },
    (call) => withdrawSigningKey(call, call.params.id),
  ),
]

/** The keys that sign an organization's offline license files (docs/api.md#f5). No response contains a private key. */

import { z } from 'zod'

import { EXAMPLE_ID, listQuery, page, timestamp } from './common.ts'
import { operations } from './operations.ts'

export const signingKey = z
  .object({
    id: z.uuid().meta({ description: 'The id of the key.', example: EXAMPLE_ID }),
    keyId: z.string().meta({ description: 'The `kid` of the files that the key signs.', example: '9f2c41d07ab3e655' }),
    algorithm: z.literal('Ed25519').meta({ description: 'The algorithm.', example: 'Ed25519' }),
    publicKey: z.base64().meta({
      description: 'Standard base64 of the X.509 SubjectPublicKeyInfo.',
      example: 'MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=',
    }),
    createdAt: timestamp('The time of creation.'),
    preparedAt: timestamp('The time of preparation; null for a key that signs or has signed files.').nullable(),
    retiredAt: timestamp('The time at which a newer key replaced it; null for a current or prepared key.').nullable(),
    withdrawnAt: timestamp('The time of withdrawal; null for a key that was not withdrawn.').nullable(),
  })
  .meta({ id: 'SigningKey', description: 'A key that signs license files.' })

export const signingKeys = operations({
  listSigningKeys: {
    route: 'GET /signing-keys',
    needs: 'signing-keys.write',
    query: listQuery({}),
    returns: page(signingKey),
  },
  prepareSigningKey: {
    route: 'POST /signing-keys/prepare',
    needs: 'signing-keys.write',
    returns: signingKey,
    propagates: true,
  },
  rotateSigningKey: {
    route: 'POST /signing-keys/rotate',
    needs: 'signing-keys.write',
    returns: signingKey,
    propagates: true,
  },
  withdrawSigningKey: {
    route: 'POST /signing-keys/{id}/withdraw',
    needs: 'signing-keys.write',
    returns: signingKey,
    propagates: true,
  },
})

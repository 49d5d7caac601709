/** The keys that sign an organization's offline license files (docs/api.md#f5). No response contains a private key. */

import { z } from 'zod'

import { EXAMPLE_ID, timestamp } from './common.ts'

export const signingKey = z
  .object({
    id: z.uuid().meta({ description: 'The id of the key.', example: EXAMPLE_ID }),
    keyId: z.string().meta({ description: 'The `kid` of the files it signed.', example: '9f2c41d07ab3e655' }),
    algorithm: z.literal('Ed25519').meta({ description: 'The algorithm.', example: 'Ed25519' }),
    publicKey: z.base64().meta({
      description: 'Standard base64 of the X.509 SubjectPublicKeyInfo.',
      example: 'MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=',
    }),
    createdAt: timestamp('When it was created.'),
    preparedAt: timestamp('When it was prepared; null: it signs files, or has signed some.').nullable(),
    retiredAt: timestamp('When a newer key replaced it; null: it signs new files, or is prepared.').nullable(),
    withdrawnAt: timestamp('When its files stopped being trusted.').nullable(),
  })
  .meta({ id: 'SigningKey', description: 'A key that signs license files.' })

/** The names of resources by their ids (docs/api.md#m15). */

import { z } from 'zod'

import { text } from '../text.ts'
import { EXAMPLE_ID } from './common.ts'
import { operations } from './operations.ts'

export const MAX_NAMES = 100
const UUID_LENGTH = 36

const namesQuery = z.strictObject({
  ids: text(MAX_NAMES * (UUID_LENGTH + 1))
    .transform((given) => [...new Set(given.split(','))])
    .pipe(z.array(z.uuid().toLowerCase()).max(MAX_NAMES))
    .meta({ description: `The ids of resources, at most ${MAX_NAMES}, separated by commas.`, example: EXAMPLE_ID }),
})

export const resourceNames = z.object({
  names: z.record(z.uuid(), z.string()).meta({
    description:
      'The name of each resource by its id: the key of a license, the value of a rule, the name or e-mail address of a customer. ' +
      'Resources that do not exist, or that the credential may not read, are absent.',
    example: { [EXAMPLE_ID]: 'Acme Studio' },
  }),
})

export const names = operations({
  readNames: { route: 'GET /names', needs: 'token', query: namesQuery, returns: resourceNames },
})

/** Mails to customers (docs/api.md#e1). A mail is rendered when it is sent, so no response contains its text. */

import { z } from 'zod'

import { email, EXAMPLE_ID, id, listQuery, page, timestamp } from './common.ts'
import { operations } from './operations.ts'

const status = z.enum(['PENDING', 'SUCCEEDED', 'FAILED']).meta({
  description:
    'The state of the mail. `PENDING`: another attempt follows. `SUCCEEDED`: the mail server has accepted it.',
  example: 'SUCCEEDED',
})

export const mail = z
  .object({
    id: z.uuid().meta({ description: 'The id of the mail.', example: EXAMPLE_ID }),
    template: z.enum(['key', 'ending', 'portal']).meta({
      description:
        'The content: `key` contains the keys of the licenses, `ending` announces the end of a license, and `portal` contains a link to the portal.',
      example: 'key',
    }),
    customerId: z.uuid().nullable().meta({
      description: 'The id of the customer; null if it has been deleted, and before the first attempt of `portal`.',
      example: EXAMPLE_ID,
    }),
    recipient: email.nullable().meta({
      description:
        'The address of the customer when the mail was created, or the requested address of `portal`; null if the customer has been deleted.',
    }),
    licenseIds: z.array(z.uuid()).meta({ description: 'The ids of the licenses.', example: [EXAMPLE_ID] }),
    status,
    attempts: z.int().meta({ description: 'The number of attempts.', example: 1 }),
    error: z.string().nullable().meta({
      description: 'Why the last attempt failed, or why the mail waits; null without such a reason.',
      example: null,
    }),
    attemptedAt: timestamp('The time of the last attempt; null before the first.').nullable(),
    nextAttemptAt: timestamp('The time of the next attempt; null if there is none.').nullable(),
    createdAt: timestamp('The time of creation.'),
  })
  .meta({ id: 'Mail', description: 'A mail to a customer.' })
export type Mail = z.infer<typeof mail>

export const sendMail = z
  .strictObject({
    template: z.literal('key').meta({ description: 'The content.', example: 'key' }),
    licenseId: id('The license whose key is sent to its customer.'),
  })
  .meta({ example: { template: 'key', licenseId: EXAMPLE_ID } })

export const mails = operations({
  listMails: {
    route: 'GET /mails',
    needs: 'customers.read',
    query: listQuery({ status: status.optional(), customerId: id('Returns only mails to this customer.').optional() }),
    returns: page(mail),
  },
  sendMail: { route: 'POST /mails', needs: 'customers.write', body: sendMail, returns: mail, creates: true },
  readMail: { route: 'GET /mails/{id}', needs: 'customers.read', returns: mail },
  retryMail: { route: 'POST /mails/{id}/retry', needs: 'customers.write', returns: mail },
})

/** The import of licenses with their status, machines and customers (docs/api.md#m20). */

import { z } from 'zod'
import { _check as checkWhen } from 'zod/v4/core'

import { exactText, MAX_MACHINE_ID_BYTES, text } from '../text.ts'
import { EXAMPLE_ID, externalIdOf, name, newEmail } from './common.ts'
import { checkNewLicense, licenseKey, newLicense, withJsonText } from './licenses.ts'

export const MAX_IMPORT_ROWS = 1_000
const MAX_ROW_MACHINES = 1_000
/** The maximum number of machines in one import. */
export const MAX_IMPORT_MACHINES = 10_000

const customerOfRow = z
  .strictObject({
    externalId: externalIdOf('customer', 'crm-4711').optional(),
    email: newEmail.optional(),
    name: name.nullable().optional().meta({ description: 'The name of a new customer.', example: 'Ada Lovelace' }),
  })
  .refine(({ externalId: own, email: address }) => (own ?? address) !== undefined, 'needs externalId or email')
  .meta({
    description:
      'Instead of `customerId`: the customer with the external id, or otherwise the oldest one with the e-mail address.',
    example: { email: 'ada@example.com' },
  })

/** Adds the error of a row that names no customer or two, also if other fields are invalid. */
const checkOneCustomer = checkWhen<{ customerId?: string | undefined; customer?: unknown }>(
  ({ value: { customerId, customer }, issues }) => {
    if ((customerId === undefined) !== (customer === undefined)) return
    const message = 'is required unless customer is given, and must be absent otherwise'
    issues.push({ code: 'custom', path: ['customerId'], message, input: customerId })
  },
  {
    when: ({ issues }) => !issues.some(({ path }) => ['customerId', 'customer', ''].includes(String(path?.[0] ?? ''))),
  },
)

/** A row of an import. */
export const importLicense = newLicense
  .extend({
    customerId: newLicense.shape.customerId.optional(),
    customer: customerOfRow.optional(),
    status: z.enum(['active', 'suspended', 'revoked']).optional().meta({
      description: 'The status of the new license. Default: `active`.',
      example: 'suspended',
    }),
    machines: z
      .array(
        z.strictObject({
          machineId: exactText(MAX_MACHINE_ID_BYTES).meta({ description: 'The machine id.', example: 'A4-F1-00-12' }),
          hostname: text(MAX_MACHINE_ID_BYTES).optional().meta({ description: 'The host name.', example: 'build-7' }),
        }),
      )
      .max(MAX_ROW_MACHINES)
      .refine(
        (all) => new Set(all.map(({ machineId }) => machineId)).size === all.length,
        'must name each machine once',
      )
      .optional()
      .meta({ description: 'The machines that take slots at once, at most 1,000.' }),
  })
  .check(checkOneCustomer, checkNewLicense)
export type ImportLicense = z.input<typeof importLicense>

export const importOptions = z.strictObject({
  createCustomers: z.boolean().optional().meta({
    description: 'Whether to create customers that do not exist, which needs `customers.write`. Default: false.',
    example: true,
  }),
  skipExisting: z.boolean().optional().meta({
    description:
      'Whether to skip a row whose key or external id a license has, instead of rejecting it. Default: false.',
    example: true,
  }),
})

/** The rows of an import. More than MAX_IMPORT_ROWS rows result in the error `IMPORT_TOO_LARGE` instead of a validation error. */
export const importLicenses = importOptions.extend({
  licenses: z
    .array(importLicense)
    .min(1)
    .max(MAX_IMPORT_ROWS)
    .meta({
      description: 'The licenses, at most 1,000.',
      example: [
        {
          productId: EXAMPLE_ID,
          customer: { email: 'ada@example.com' },
          policy: { type: 'PERPETUAL', maxMachines: 3 },
          status: 'active',
          machines: [{ machineId: 'A4-F1-00-12', hostname: 'build-7' }],
        },
      ],
    }),
})
export const importedLicenses = z.object({
  created: z.int().meta({ description: 'The number of created licenses.', example: 2 }),
  skipped: z.int().meta({ description: 'The number of rows that a license existed for.', example: 0 }),
  createdCustomers: z.int().meta({ description: 'The number of created customers.', example: 1 }),
  licenses: z
    .array(
      z.object({
        id: z.uuid().meta({ description: 'The id of the license.', example: EXAMPLE_ID }),
        key: licenseKey,
        pointer: z.string().meta({ description: 'The JSON pointer to the row.', example: '#/licenses/17' }),
      }),
    )
    .meta({ description: 'The new licenses, in the order of the rows.' }),
})

/** A row of an import. Its JSON members are converted to text immediately, because text takes less memory than objects. */
export const importedLicense = importLicense.transform(({ customerId = '', customer, status, machines, ...rest }) => ({
  ...withJsonText({ ...rest, customerId }),
  customer,
  status,
  machines,
}))

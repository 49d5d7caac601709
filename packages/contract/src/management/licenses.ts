/**
 * Licenses: their policy, the status that is stored and the status that is shown.
 * A license is expired by time alone; `expired` is never stored.
 */
import { z } from 'zod'

import { maxLicenseKeyBytes, maxMachineIdBytes, optionalExactText, text } from '../text.ts'
import { checkedLicenseKey } from '../validation.ts'
import { exampleId, id, metadata, moment, timestamp } from './common.ts'

export const licenseStatus = z
  .enum(['active', 'suspended', 'expired', 'revoked'])
  .meta({ description: 'The status now: revoked before suspended before expired.', example: 'active' })
export type LicenseStatus = z.infer<typeof licenseStatus>

export const policyType = z
  .enum(['PERPETUAL', 'SUBSCRIPTION', 'TRIAL'])
  .meta({ description: '`PERPETUAL` never expires; the others need `expiresAt`.', example: 'SUBSCRIPTION' })
export type PolicyType = z.infer<typeof policyType>

/** The largest `integer` of Postgres. */
const maxMachines = z
  .int()
  .min(1)
  .max(2_147_483_647)
  .nullable()
  .meta({ description: 'How many machines may use it; null: any number.', example: 5 })
const expiresAt = moment('When it expires; null for `PERPETUAL`. May lie in the past.').nullable()

/** A policy that is whole: the type and the expiry agree. */
export const policyRule = 'must be null for PERPETUAL and a time otherwise'
export function isWholePolicy(policy: { type: PolicyType; expiresAt: Date | null }): boolean {
  return (policy.type === 'PERPETUAL') === (policy.expiresAt === null)
}

export const policyInput = z
  .strictObject({
    type: policyType,
    maxMachines: maxMachines.default(null),
    expiresAt: expiresAt.default(null),
  })
  .refine(isWholePolicy, { path: ['expiresAt'], message: policyRule })
  .meta({ description: 'The terms.' })
export type PolicyInput = z.infer<typeof policyInput>

export const licenseKey = z
  .string()
  .regex(/^[\x20-\x7e]{1,128}$/, 'must be 1 to 128 printable ASCII characters')
  .meta({ description: 'The license key; unique in the organization.', example: 'K7QF-2MXW-9RTB-HD4C' })

export const license = z
  .object({
    id: z.uuid().meta({ description: 'The id of the license.', example: exampleId }),
    key: licenseKey,
    status: licenseStatus,
    productId: z.uuid().meta({ description: 'The product it is for.', example: exampleId }),
    customerId: z.uuid().meta({ description: 'The customer who owns it.', example: exampleId }),
    policy: z
      .object({ type: policyType, maxMachines, expiresAt: timestamp('When it expires; null: never.').nullable() })
      .meta({ description: 'The terms.' }),
    machines: z
      .object({
        used: z.int().meta({ description: 'Machine slots that are taken.', example: 2 }),
        max: z.int().nullable().meta({ description: 'Machine slots there are; null: no limit.', example: 5 }),
      })
      .meta({ description: 'Its machine slots.' }),
    metadata,
    createdAt: timestamp('When it was created.'),
    updatedAt: timestamp('When it was last changed.'),
    suspendedAt: timestamp('When it was suspended.').nullable(),
    revokedAt: timestamp('When it was revoked.').nullable(),
  })
  .meta({ id: 'License', description: 'The right of a customer to use a product.' })
export type License = z.infer<typeof license>

export const createLicense = z.strictObject({
  productId: id('The product it is for.'),
  customerId: id('The customer who owns it.'),
  policy: policyInput,
  key: licenseKey.optional(),
  metadata: metadata.optional(),
})
export type CreateLicense = z.infer<typeof createLicense>

export const updateLicense = z.strictObject({
  productId: id('The product it is for.').optional(),
  customerId: id('The customer who owns it.').optional(),
  policy: z
    .strictObject({ type: policyType.optional(), maxMachines: maxMachines.optional(), expiresAt: expiresAt.optional() })
    .optional()
    .meta({ description: 'The terms to change; the others stay, and the whole must be valid.' }),
  metadata: metadata.optional(),
})

export const renewLicense = z.strictObject({ expiresAt: moment('When it expires from now on.') })

export const maxImportRows = 1_000

/** An import's rows. More than the limit is told apart from other mistakes by `IMPORT_TOO_LARGE`. */
export const importLicenses = z.strictObject({
  licenses: z.array(createLicense).min(1).max(maxImportRows).meta({ description: 'The licenses, at most 1,000.' }),
})
export const importedLicenses = z.object({
  created: z.int().meta({ description: 'How many were created.', example: 2 }),
  licenses: z
    .array(z.object({ id: z.uuid().meta({ description: 'Its id.', example: exampleId }), key: licenseKey }))
    .meta({ description: 'The new licenses, in the order given.' }),
})

export const licenseFilter = {
  productId: id('Only of this product.').optional(),
  customerId: id('Only of this customer.').optional(),
  status: licenseStatus.optional(),
  key: text(maxLicenseKeyBytes)
    .optional()
    .meta({ description: 'The exact license key.', example: 'K7QF-2MXW-9RTB-HD4C' }),
}

export const machine = z
  .object({
    id: z.uuid().meta({ description: 'The id of this record.', example: exampleId }),
    machineId: z.string().meta({ description: 'The machine id as the app sent it.', example: 'A4-F1-00-12' }),
    hostname: z.string().nullable().meta({ description: 'The name the app gave.', example: 'build-7' }),
    firstSeenAt: timestamp('When it took its slot.'),
    lastSeenAt: timestamp('When it was last seen, coarsely.'),
  })
  .meta({ id: 'Machine', description: 'A machine that holds a slot.' })

export const machineParams = z.strictObject({
  id: id('The id of the license.'),
  machineId: id("The id of the machine's record."),
})

export const licenseFile = z.string().meta({
  description: 'The signed file: base64url payload, a dot, base64url Ed25519 signature.',
  example: 'eyJsaWNlbnNlS2V5IjoiLi4uIn0.c2lnbmF0dXJl',
})

/** Taken as a check takes them. */
export const requestLicenseFile = z.strictObject({
  licenseKey: checkedLicenseKey,
  fingerprint: optionalExactText(maxMachineIdBytes).meta({
    description: 'The machine id; null and the empty string count as absent.',
    example: '4C4C4544-0051-3510',
  }),
})

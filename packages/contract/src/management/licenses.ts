/** Licenses: their policy, their status and their machines (docs/api.md#m7). `expired` is computed, never stored (docs/api.md#v9). */

import { z } from 'zod'

import { entitlementOverrides } from '../entitlements.ts'
import { MAX_LICENSE_KEY_BYTES, MAX_MACHINE_ID_BYTES, optionalExactText, text } from '../text.ts'
import { checkedLicenseKey } from '../validation.ts'
import { MAX_MACHINES } from '../vocabulary.ts'
import { EXAMPLE_ID, id, metadata, moment, timestamp } from './common.ts'

const licenseStatus = z
  .enum(['active', 'suspended', 'expired', 'revoked'])
  .meta({ description: 'The status now: revoked before suspended before expired.', example: 'active' })
export type LicenseStatus = z.infer<typeof licenseStatus>

export const policyType = z.enum(['PERPETUAL', 'SUBSCRIPTION', 'TRIAL']).meta({
  description: '`PERPETUAL` never expires; the others need `expiresAt` or `durationDays`.',
  example: 'SUBSCRIPTION',
})
export type PolicyType = z.infer<typeof policyType>

const maxMachines = z
  .int()
  .min(1)
  .max(MAX_MACHINES)
  .nullable()
  .meta({ description: 'How many machines may use it, at most 100,000; null: no limit.', example: 5 })
/** An earlier version accepted any `integer` of Postgres. */
const storedMaxMachines = z.int().min(1).nullable().meta({
  description: 'How many machines may use it; null: no limit. A number above 100,000 counts as 100,000.',
  example: 5,
})
const expiresAt = moment(
  'When it expires; null for `PERPETUAL`, and while a term of `durationDays` has not started. May lie in the past.',
).nullable()
const durationDays = z.int().min(1).max(36_500).nullable().meta({
  description:
    'Instead of `expiresAt`: the term starts with the first check that is `VALID`, and lasts so many days of 24 hours.',
  example: 30,
})

const maxReleases = z.int().min(0).max(1_000).nullable().meta({
  description: 'How many slots apps may release in 30 days with `POST /api/v1/deactivate`; null: no limit.',
  example: 3,
})

const leaseSeconds = z
  .int()
  .min(60)
  .max(31_622_400)
  .nullable()
  .meta({
    description:
      'How long a machine holds its slot after its last renewal, in seconds: checks renew it, and a machine that stops checking loses it. ' +
      'Null: until it is released. No effect without `maxMachines`.',
    example: 600,
  })

interface Policy {
  type: PolicyType
  expiresAt: Date | null
  durationDays: number | null
}

/** Returns which field of a policy is wrong, and why. Returns null when the policy is valid. */
export function policyError({ type, ...term }: Policy): { field: 'expiresAt' | 'durationDays'; detail: string } | null {
  if (type === 'PERPETUAL') {
    if (term.expiresAt !== null) return { field: 'expiresAt', detail: 'must be null for PERPETUAL' }
    return term.durationDays === null ? null : { field: 'durationDays', detail: 'must be null for PERPETUAL' }
  }
  if (term.expiresAt !== null || term.durationDays !== null) return null
  return { field: 'expiresAt', detail: `must be a time for ${type}, unless durationDays is given` }
}

/** Adds the errors of a policy whose fields were all given. */
function checkPolicy({ value, issues }: z.core.ParsePayload<Policy>): void {
  const error =
    value.expiresAt !== null && value.durationDays !== null
      ? { field: 'durationDays', detail: 'must be null when expiresAt is given' }
      : policyError(value)
  if (error !== null) issues.push({ code: 'custom', path: [error.field], message: error.detail, input: value })
}

const policyInput = z
  .strictObject({
    type: policyType,
    maxMachines: maxMachines.default(null),
    expiresAt: expiresAt.default(null),
    durationDays: durationDays.default(null),
    maxReleases: maxReleases.default(null),
    leaseSeconds: leaseSeconds.default(null),
  })
  .check(checkPolicy)
  .meta({
    description: 'The terms.',
    example: { type: 'SUBSCRIPTION', maxMachines: 5, expiresAt: '2030-01-01T00:00:00.000Z' },
  })

export const licenseKey = z
  .string()
  .regex(/^[\x20-\x7e]{1,128}$/, 'must be 1 to 128 printable ASCII characters')
  .meta({ description: 'The license key; unique in the organization.', example: 'K7QF-2MXW-9RTB-HD4C' })

export const license = z
  .object({
    id: z.uuid().meta({ description: 'The id of the license.', example: EXAMPLE_ID }),
    key: licenseKey,
    status: licenseStatus,
    productId: z.uuid().meta({ description: 'The product it is for.', example: EXAMPLE_ID }),
    customerId: z.uuid().meta({ description: 'The customer who owns it.', example: EXAMPLE_ID }),
    policy: z
      .object({
        type: policyType,
        maxMachines: storedMaxMachines,
        expiresAt: timestamp(
          'When it expires; null: never, or not yet known, because the term has not started.',
        ).nullable(),
        durationDays: durationDays.meta({
          description:
            'How many days the term lasts from the first check that is `VALID`; null: it does not start with a check.',
          example: null,
        }),
        maxReleases,
        leaseSeconds,
      })
      .meta({ description: 'The terms.' }),
    machines: z
      .object({
        used: z.int().meta({ description: 'Machine slots that are taken.', example: 2 }),
        max: z.int().nullable().meta({ description: 'Machine slots that it has; null: no limit.', example: 5 }),
      })
      .meta({ description: 'Its machine slots.' }),
    entitlements: entitlementOverrides,
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
  entitlements: entitlementOverrides.optional(),
  metadata: metadata.optional(),
})
export type CreateLicense = z.infer<typeof createLicense>

export const updateLicense = z
  .strictObject({
    productId: id('The product it is for.').optional(),
    customerId: id('The customer who owns it.').optional(),
    policy: z
      .strictObject({
        type: policyType.optional(),
        maxMachines: maxMachines.optional(),
        expiresAt: expiresAt.optional(),
        durationDays: durationDays.optional(),
        maxReleases: maxReleases.optional(),
        leaseSeconds: leaseSeconds.optional(),
      })
      .optional()
      .meta({ description: 'The terms to change. The others stay, and the resulting policy must be valid.' }),
    entitlements: entitlementOverrides.optional(),
    metadata: metadata.optional(),
  })
  .meta({ example: { policy: { maxMachines: 10 } } })

export const renewLicense = z.strictObject({ expiresAt: moment('When it expires from now on.') })

export const replaceLicenseKey = z.strictObject({ key: licenseKey.optional() })

export const MAX_IMPORT_ROWS = 1_000

/** The rows of an import. More than the limit are the error `IMPORT_TOO_LARGE`, not a validation error. */
export const importLicenses = z.strictObject({
  licenses: z.array(createLicense).min(1).max(MAX_IMPORT_ROWS).meta({ description: 'The licenses, at most 1,000.' }),
})
export const importedLicenses = z.object({
  created: z.int().meta({ description: 'How many were created.', example: 2 }),
  licenses: z
    .array(z.object({ id: z.uuid().meta({ description: 'Its id.', example: EXAMPLE_ID }), key: licenseKey }))
    .meta({ description: 'The new licenses, in the order given.' }),
})

export const licenseFilter = {
  productId: id('Only of this product.').optional(),
  customerId: id('Only of this customer.').optional(),
  status: licenseStatus.optional(),
  key: text(MAX_LICENSE_KEY_BYTES)
    .optional()
    .meta({ description: 'The exact license key.', example: 'K7QF-2MXW-9RTB-HD4C' }),
}

export const machine = z
  .object({
    id: z.uuid().meta({ description: 'The id of this record.', example: EXAMPLE_ID }),
    machineId: z.string().meta({ description: 'The machine id as the app sent it.', example: 'A4-F1-00-12' }),
    hostname: z.string().nullable().meta({ description: 'The name the app gave.', example: 'build-7' }),
    firstSeenAt: timestamp('When it took its slot.'),
    lastSeenAt: timestamp('About when it was last seen.'),
    leaseEndsAt: timestamp(
      'Until when it holds its slot unless a check renews it; null: until it is released.',
    ).nullable(),
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

/** Both fields have the form that they have in a check (docs/api.md#f4). */
export const requestLicenseFile = z
  .strictObject({
    licenseKey: checkedLicenseKey,
    fingerprint: optionalExactText(MAX_MACHINE_ID_BYTES).meta({
      description: 'The machine id; null and the empty string count as absent.',
      example: '4C4C4544-0051-3510',
    }),
  })
  .meta({ example: { licenseKey: 'K7QF-2MXW-9RTB-HD4C', fingerprint: 'A4-F1-00-12' } })

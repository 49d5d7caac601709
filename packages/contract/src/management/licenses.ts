/** Licenses: their policy, status and machines (docs/api.md#m7). The status `expired` is computed, never stored (docs/api.md#v9). */

import { z } from 'zod'
import { _check as checkWhen } from 'zod/v4/core'

import { entitlementOverrides, entitlements as grants, storedEntitlements } from '../entitlements.ts'
import { text } from '../text.ts'
import { MAX_MACHINES } from '../vocabulary.ts'
import { EXAMPLE_ID, externalIdOf, id, metadata, moment, timestamp } from './common.ts'

export const licenseStatus = z.enum(['active', 'grace', 'suspended', 'expired', 'revoked']).meta({
  description:
    'The effective status. `revoked` takes precedence over `suspended`, and `suspended` over `grace` and `expired`.',
  example: 'active',
})
export type LicenseStatus = z.infer<typeof licenseStatus>

export const policyType = z.enum(['PERPETUAL', 'SUBSCRIPTION', 'TRIAL']).meta({
  description:
    'The type of the license. `PERPETUAL` never expires. The other types require `expiresAt` or `durationDays`.',
  example: 'SUBSCRIPTION',
})
export type PolicyType = z.infer<typeof policyType>

const maxMachines = z
  .int()
  .min(1)
  .max(MAX_MACHINES)
  .nullable()
  .meta({ description: 'The maximum number of machines, up to 100,000; null for no limit.', example: 5 })
/** The machine limit in responses. It has no maximum, because an earlier version stored any `integer` of Postgres. */
const storedMaxMachines = z.int().min(1).nullable().meta({
  description: 'The maximum number of machines; null for no limit. A number above 100,000 counts as 100,000.',
  example: 5,
})
const expiresAt = moment(
  'The time at which the license expires, which may be in the past. Null for `PERPETUAL`, and until a term of `durationDays` starts.',
).nullable()
export const MAX_DURATION_DAYS = 36_500
const durationDays = z.int().min(1).max(MAX_DURATION_DAYS).nullable().meta({
  description:
    'The length of the term in days of 24 hours, instead of `expiresAt`. The term starts with the first `VALID` check.',
  example: 30,
})

const maxReleases = z.int().min(0).max(1_000).nullable().meta({
  description:
    'The maximum number of slots that apps may release in 30 days with `POST /api/v1/deactivate`; null for no limit.',
  example: 3,
})

const leaseSeconds = z
  .int()
  .min(60)
  .max(31_622_400)
  .nullable()
  .meta({
    description:
      'The number of seconds for which a machine holds its slot after the last renewal. Checks renew the slot. Null for slots that ' +
      'are held until their release. It has no effect without `maxMachines`.',
    example: 600,
  })

const graceDays = z.int().min(0).max(90).meta({
  description: 'The number of days of 24 hours after `expiresAt` for which checks stay valid, from 0 to 90.',
  example: 0,
})

export const DEFAULT_FILE_DAYS = 30
export const MAX_FILE_DAYS = 366
const fileDays = z
  .int()
  .min(1)
  .max(MAX_FILE_DAYS)
  .nullable()
  .meta({
    description:
      'The lifetime of offline license files in days, from 1 to 366. Null: a file ends with the lease of the machine, or after 30 days ' +
      'without leases. A file never outlives the license.',
    example: null,
  })

interface Policy {
  type: PolicyType
  expiresAt: Date | null
  durationDays: number | null
}

/** Returns the first invalid field of a policy with a description of the error, or null when the policy is valid. */
export function policyError({ type, ...term }: Policy): { field: 'expiresAt' | 'durationDays'; detail: string } | null {
  if (type === 'PERPETUAL') {
    if (term.expiresAt !== null) return { field: 'expiresAt', detail: 'must be null for PERPETUAL' }
    return term.durationDays === null ? null : { field: 'durationDays', detail: 'must be null for PERPETUAL' }
  }
  if (term.expiresAt !== null || term.durationDays !== null) return null
  return { field: 'expiresAt', detail: `must be a time for ${type}, unless durationDays is given` }
}

/** The fields of a policy that a template has too. */
export const terms = {
  type: policyType,
  maxMachines,
  durationDays,
  maxReleases,
  leaseSeconds,
  graceDays,
  fileDays,
}

export interface Terms {
  type: PolicyType
  maxMachines: number | null
  durationDays: number | null
  maxReleases: number | null
  leaseSeconds: number | null
  graceDays: number
  fileDays: number | null
}

/** The values of terms that are not given. */
export const TERM_DEFAULTS = {
  type: 'PERPETUAL',
  maxMachines: null,
  durationDays: null,
  maxReleases: null,
  leaseSeconds: null,
  graceDays: 0,
  fileDays: null,
} as const satisfies Terms

/** Returns whether files of a license end with the lease of a machine, because the vendor chose no lifetime (docs/api.md#f2). */
export function filesEndWithLease(policy: Pick<Terms, 'fileDays' | 'leaseSeconds' | 'maxMachines'>): boolean {
  return policy.fileDays === null && policy.leaseSeconds !== null && policy.maxMachines !== null
}

const givenPolicy = z.strictObject({ ...terms, expiresAt }).partial()

/** Returns the given policy, completed with the terms of a template or with the defaults. An expiry replaces the template's `durationDays`. */
export function completePolicy(
  given: z.output<typeof givenPolicy>,
  base: Terms | null,
): Terms & { expiresAt: Date | null } {
  const other: Terms = base ?? TERM_DEFAULTS
  const { type = other.type, maxMachines: machines = other.maxMachines, expiresAt: end = null } = given
  const { maxReleases: releases = other.maxReleases, leaseSeconds: lease = other.leaseSeconds } = given
  const { graceDays: grace = other.graceDays, fileDays: files = other.fileDays } = given
  const { durationDays: days = end === null && type !== 'PERPETUAL' ? other.durationDays : null } = given
  return {
    type,
    maxMachines: machines,
    expiresAt: end,
    durationDays: days,
    maxReleases: releases,
    leaseSeconds: lease,
    graceDays: grace,
    fileDays: files,
  }
}

/** Returns the first invalid field of a new policy with a description of the error, or null when the policy is valid. */
export function newPolicyError(policy: Policy): ReturnType<typeof policyError> {
  return policy.expiresAt !== null && policy.durationDays !== null
    ? { field: 'durationDays', detail: 'must be null when expiresAt is given' }
    : policyError(policy)
}

export const licenseKey = z
  .string()
  .regex(/^[\x20-\x7e]{1,128}$/, 'must be 1 to 128 printable ASCII characters')
  .meta({ description: 'The license key. It is unique in the organization.', example: 'K7QF-2MXW-9RTB-HD4C' })

/** A license key to store. Apps remove surrounding blanks from a typed key, so they could never send such a key. */
const newLicenseKey = licenseKey.refine((key) => key.trim() === key, 'must not begin or end with a blank')

export const storedPolicy = z
  .object({
    type: policyType,
    maxMachines: storedMaxMachines,
    expiresAt: timestamp(
      'The time at which the license expires; null if it never expires or its term has not started.',
    ).nullable(),
    durationDays: durationDays.meta({
      description: 'The length in days of a term that starts with the first `VALID` check; null for other terms.',
      example: null,
    }),
    maxReleases,
    leaseSeconds,
    graceDays,
    fileDays,
  })
  .meta({ description: 'The policy of the license.' })

export const externalId = externalIdOf('license', 'shop-4711')

export const license = z
  .object({
    id: z.uuid().meta({ description: 'The id of the license.', example: EXAMPLE_ID }),
    key: licenseKey,
    status: licenseStatus,
    productId: z.uuid().meta({ description: 'The id of the product.', example: EXAMPLE_ID }),
    customerId: z.uuid().meta({ description: 'The id of the customer.', example: EXAMPLE_ID }),
    externalId: externalId.nullable(),
    templateId: z.uuid().nullable().meta({
      description: 'The id of the template that the license was issued with; null without one.',
      example: null,
    }),
    policy: storedPolicy,
    graceEndsAt: timestamp('The end of the grace period; null without a grace period or an expiry.').nullable(),
    machines: z
      .object({
        used: z.int().meta({ description: 'The number of taken machine slots.', example: 2 }),
        max: z.int().nullable().meta({ description: 'The number of machine slots; null for no limit.', example: 5 }),
      })
      .meta({ description: 'The machine slots of the license.' }),
    entitlements: entitlementOverrides,
    metadata,
    createdAt: timestamp('The time of creation.'),
    updatedAt: timestamp('The time of the last change.'),
    suspendedAt: timestamp('The time of suspension.').nullable(),
    revokedAt: timestamp('The time of revocation.').nullable(),
  })
  .meta({ id: 'License', description: 'The right of a customer to use a product.' })
export type License = z.infer<typeof license>

export const newLicense = z.strictObject({
  templateId: id('The id of a template. Values of the request replace those of the template.').optional(),
  productId: id('The id of the product. Required without `templateId`.').optional(),
  customerId: id('The id of the customer.'),
  policy: givenPolicy.optional().meta({
    description:
      'The policy of the license. Required without `templateId`. Fields that are absent have the values of the template.',
  }),
  key: newLicenseKey.optional(),
  externalId: externalId.nullable().optional(),
  entitlements: entitlementOverrides.optional(),
  metadata: metadata.optional(),
})

type Checked = Pick<z.output<typeof newLicense>, 'templateId' | 'productId' | 'policy'>
const CHECKED: ReadonlySet<unknown> = new Set<keyof Checked | undefined>([
  'templateId',
  'productId',
  'policy',
  undefined,
])

/** Adds the validation errors of a new license without a template, also if other fields are invalid. Only the service knows the templates. */
export const checkNewLicense = checkWhen<Checked>(
  ({ value: { templateId, productId, policy }, issues }) => {
    if (templateId !== undefined) return
    const reject = (path: string[], message: string) => issues.push({ code: 'custom', path, message, input: policy })
    if (productId === undefined) reject(['productId'], 'is required')
    if (policy?.type === undefined) {
      reject(policy === undefined ? ['policy'] : ['policy', 'type'], 'is required')
      return
    }
    const error = newPolicyError(completePolicy(policy, null))
    if (error !== null) reject(['policy', error.field], error.detail)
  },
  { when: ({ issues }) => !issues.some(({ path }) => CHECKED.has(path?.[0])) },
)

export const createLicense = newLicense.check(checkNewLicense).meta({
  example: {
    productId: EXAMPLE_ID,
    customerId: EXAMPLE_ID,
    policy: { type: 'SUBSCRIPTION', maxMachines: 5, expiresAt: '2030-01-01T00:00:00.000Z' },
  },
})
export type CreateLicense = z.infer<typeof createLicense>

export const updateLicense = z
  .strictObject({
    productId: id('The id of the product.').optional(),
    customerId: id('The id of the customer.').optional(),
    externalId: externalId.nullable().optional(),
    templateId: id('The id of a template of the product, or null to detach the license.').nullable().optional(),
    policy: givenPolicy.optional().meta({
      description:
        'The fields of the policy to change. Other fields keep their values. The resulting policy must be valid.',
    }),
    entitlements: entitlementOverrides.optional(),
    metadata: metadata.optional(),
  })
  .meta({ example: { policy: { maxMachines: 10 } } })

export const renewLicense = z.strictObject({
  expiresAt: moment('The new expiry.'),
  allowEarlier: z.boolean().optional().meta({
    description: 'Whether the new expiry may be earlier than the current one; default false.',
    example: false,
  }),
})

export const extendLicense = z.strictObject({
  days: z
    .int()
    .min(1)
    .max(MAX_DURATION_DAYS)
    .meta({ description: 'The number of days of 24 hours to add.', example: 30 }),
})

/** The reason of a suspension or revocation. It is for people: no verdict depends on it, and no app receives it. */
export const reason = text(500).optional().meta({
  description: 'The reason, for the audit log and the event.',
  example: 'Chargeback of order A-1001',
})
export const reasoned = z.strictObject({ reason })

export const effectiveEntitlementsOfLicense = z.object({
  effective: grants.meta({ description: 'The entitlements that apps receive.' }),
  defaults: grants.meta({ description: 'The entitlements of the product.' }),
  overrides: entitlementOverrides,
})

export const replaceLicenseKey = z.strictObject({ key: newLicenseKey.optional() })

/** Returns the license with its JSON members as text, as they are stored. An absent member is undefined, so that a template can supply it. */
export function withJsonText({ metadata: given, entitlements, ...rest }: CreateLicense) {
  const stored = storedEntitlements(entitlements)
  return { ...rest, metadata: given && JSON.stringify(given), entitlements: stored && JSON.stringify(stored) }
}

/** Organizations: the vendors, isolated from each other (docs/api.md#m6, docs/api.md#m12). */

import { z } from 'zod'

import { text } from '../text.ts'
import { EXPIRING_DAYS, MAX_MACHINES } from '../vocabulary.ts'
import { EXAMPLE_ID, listQuery, name, newEmail, page, timestamp } from './common.ts'
import { createdToken, createRecoveryToken } from './credentials.ts'
import { operations } from './operations.ts'

export const plan = z.enum(['FREE', 'LITE', 'STANDARD']).meta({
  description: 'The plan. It limits the number of access rules that can be added, and the bytes of the organization.',
  example: 'STANDARD',
})
export type Plan = z.infer<typeof plan>

const organizationName = name.meta({ description: 'The name of the vendor.', example: 'Acme Software' })

const GIB = 1024 ** 3

/** The default quotas of rows. The operator can change each limit for each organization (docs/api.md#m13). */
export const DEFAULT_QUOTAS = {
  licenses: 1_000_000,
  products: 10_000,
  customers: 1_000_000,
  apiKeys: 1_000,
  tokens: 1_000,
  members: 1_000,
  accessRules: 1_000_000,
  ruleSets: 1_000,
  signingKeys: 100,
  webhookEndpoints: 20,
  portalSessions: 100_000,
  machinesPerLicense: 100_000,
} as const

/** The default quotas that depend on the plan. The SQL function `machine_quota` contains those of `machines` too. */
const PLAN_QUOTAS = {
  FREE: { machines: 2_000_000, storedBytes: 4 * GIB, bytesPerDay: GIB },
  LITE: { machines: 8_000_000, storedBytes: 16 * GIB, bytesPerDay: 4 * GIB },
  STANDARD: { machines: 32_000_000, storedBytes: 64 * GIB, bytesPerDay: 16 * GIB },
} as const satisfies Record<Plan, object>

export type ByteQuota = 'storedBytes' | 'bytesPerDay'
export type Quota = keyof typeof DEFAULT_QUOTAS | keyof (typeof PLAN_QUOTAS)[Plan]

export function defaultQuota(of: Plan, quota: Quota): number {
  return { ...DEFAULT_QUOTAS, ...PLAN_QUOTAS[of] }[quota]
}

const QUOTA_NAMES = [
  'licenses',
  'products',
  'customers',
  'apiKeys',
  'tokens',
  'members',
  'accessRules',
  'ruleSets',
  'signingKeys',
  'webhookEndpoints',
  'portalSessions',
  'machinesPerLicense',
  'machines',
  'storedBytes',
  'bytesPerDay',
] as const satisfies readonly Quota[]

export const quotaName = z.enum(QUOTA_NAMES).meta({ description: 'The name of a quota.', example: 'licenses' })

const quotaUse = z
  .object({
    used: z.int().nullable().meta({
      description: 'The number in use; null for `machinesPerLicense`, which applies to each license separately.',
      example: 1_200,
    }),
    limit: z.int().meta({ description: 'The limit.', example: 1_000_000 }),
  })
  .meta({ id: 'QuotaUse', description: 'The usage and limit of a quota.' })
export type QuotaUse = z.infer<typeof quotaUse>
const quotas = z.record(quotaName, quotaUse).meta({
  description: 'The usage and limit of each quota, by name.',
  example: Object.fromEntries(
    QUOTA_NAMES.map((quota) => [
      quota,
      { used: quota === 'machinesPerLicense' ? null : 3, limit: defaultQuota('STANDARD', quota) },
    ]),
  ),
})

const suspendedAt = timestamp(
  'The time at which the operator suspended access to the management API; null if not suspended.',
)

const signsAnswers = z.boolean().meta({
  description: 'Whether validators sign the responses to requests that ask for it.',
  example: true,
})

const accentColor = z
  .string()
  .regex(/^#[0-9a-f]{6}$/i, 'must be a color such as #1d4ed8')
  .toLowerCase()
  .meta({
    description: 'The color of the vendor in the portal. Texts stay readable in every color.',
    example: '#1d4ed8',
  })

function isTimeZone(value: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: value }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

const timeZone = text(64)
  .refine(
    (value) => /^[A-Z]/i.test(value) && isTimeZone(value),
    'must be the name of an IANA time zone, such as Europe/Zurich',
  )
  .meta({
    description:
      'The time zone in which the days of the organization begin and end. Times in requests and responses do not depend on it.',
    example: 'Europe/Zurich',
  })

export const organization = z
  .object({
    id: z.uuid().meta({ description: 'The id of the organization.', example: EXAMPLE_ID }),
    name: organizationName,
    plan,
    suspendedAt: suspendedAt.nullable(),
    timeZone: z
      .string()
      .nullable()
      .meta({ description: `${timeZone.meta()?.description} Null: not set.`, example: 'Europe/Zurich' }),
    accentColor: z.string().nullable().meta({
      description: 'The color of the vendor in the portal; null for that of Keyward.',
      example: '#1d4ed8',
    }),
    createdAt: timestamp('The time of creation.'),
    updatedAt: timestamp('The time of the last change.'),
  })
  .meta({ id: 'Organization', description: 'A vendor.' })
export type Organization = z.infer<typeof organization>

export const organizationDetails = organization
  .extend({ signsAnswers, quotas })
  .meta({ id: 'OrganizationDetails', description: 'A vendor with its quotas.' })

export type OrganizationDetails = z.infer<typeof organizationDetails>

export const createdOrganization = organization
  .extend({
    managementToken: z.string().optional().meta({
      description: 'A management token with every permission. It is shown once, and a replayed response omits it.',
      example: 'kwm_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
    }),
    apiKey: z.string().optional().meta({
      description: 'An API key for apps. It is shown once, and a replayed response omits it.',
      example: 'kwk_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
    }),
  })
  .meta({ id: 'CreatedOrganization', description: 'A new vendor with its first two secrets.' })

export const createOrganization = z.strictObject({ name: organizationName, plan: plan.default('FREE') })
function quotaLimit(most: number, example: number) {
  return z
    .int()
    .min(0)
    .max(most)
    .nullable()
    .optional()
    .meta({ description: 'The new limit; null for the default.', example })
}
/** The limit of a number of rows, at most the largest `integer` of Postgres. */
const countLimit = quotaLimit(2_147_483_647, 2_000_000)
/** The new limits of quotas by name. `machinesPerLicense` is at most MAX_MACHINES. */
const quotaLimits = z.strictObject({
  licenses: countLimit,
  products: countLimit,
  customers: countLimit,
  apiKeys: countLimit,
  tokens: countLimit,
  members: countLimit,
  accessRules: countLimit,
  ruleSets: countLimit,
  signingKeys: countLimit,
  webhookEndpoints: countLimit,
  portalSessions: countLimit,
  machinesPerLicense: quotaLimit(MAX_MACHINES, 1_000),
  machines: countLimit,
  storedBytes: quotaLimit(Number.MAX_SAFE_INTEGER, 32 * GIB),
  bytesPerDay: quotaLimit(Number.MAX_SAFE_INTEGER, 2 * GIB),
} satisfies Record<Quota, z.ZodType>)
export const updateOrganization = z
  .strictObject({
    name: organizationName.optional(),
    plan: plan.optional(),
    signsAnswers: signsAnswers.optional(),
    timeZone: timeZone.nullable().optional(),
    accentColor: accentColor.nullable().optional(),
    quotas: quotaLimits.optional().meta({
      description: 'The limits to change, by quota name. Other limits keep their values.',
      example: { licenses: 2_000_000 },
    }),
  })
  .meta({ example: { plan: 'STANDARD' } })

/** The settings of mails to customers (docs/api.md#e2). */
const mailSettings = {
  mailSenderName: name
    .max(60)
    .refine((value) => !/[<>@"]/.test(value), 'must not contain <, >, @ or "')
    .nullable()
    .meta({ description: 'The name from which mails come; null for the name of the organization.', example: 'Acme' }),
  mailReplyTo: newEmail
    .nullable()
    .meta({ description: 'The address to which customers reply; null for none.', example: 'support@example.com' }),
  mailKeys: z.boolean().meta({ description: 'Whether customers receive the keys of their orders.', example: true }),
  mailPortal: z.boolean().meta({
    description: 'Whether customers can request a link to the portal by mail.',
    example: true,
  }),
  mailEndingDays: z.literal(EXPIRING_DAYS).nullable().meta({
    description: 'The number of days before the end of a license at which its customer receives a mail; null for none.',
    example: 7,
  }),
}

export const updateOwnOrganization = z
  .strictObject({ timeZone: timeZone.nullable(), accentColor: accentColor.nullable(), ...mailSettings })
  .partial()
  .refine((value) => Object.keys(value).length > 0, 'must have at least one member')
  .meta({ example: { timeZone: 'Europe/Zurich' } })

const usage = z
  .object({
    rules: z
      .object({
        used: z.int().meta({ description: 'The number of unexpired access rules.', example: 3 }),
        limit: z.int().nullable().meta({ description: 'The limit of the plan; null for no limit.', example: 500 }),
      })
      .meta({ description: 'The usage of access rules.' }),
  })
  .meta({ description: 'The usage of the plan.' })

const { suspendedAt: _, createdAt, updatedAt: _updatedAt, ...named } = organization.shape
export const ownOrganization = z
  .object({
    ...named,
    signsAnswers,
    ...mailSettings,
    mailEnabled: z.boolean().meta({
      description: 'Whether the operator has set a mail server. Without one, no mail is sent.',
      example: true,
    }),
    usage,
    quotas,
    createdAt,
  })
  .meta({ id: 'OwnOrganization', description: 'The organization of the caller.' })

const organizationFilter = {
  name: text(200)
    .optional()
    .meta({ description: 'Returns only organizations with exactly this name.', example: 'Acme Software' }),
}

export const organizations = operations({
  listOrganizations: {
    route: 'GET /organizations',
    needs: 'operator',
    query: listQuery(organizationFilter),
    returns: page(organization),
  },
  createOrganization: {
    route: 'POST /organizations',
    needs: 'operator',
    body: createOrganization,
    returns: createdOrganization,
    creates: true,
    secrets: ['managementToken', 'apiKey'],
    propagates: true,
  },
  readOrganization: { route: 'GET /organizations/{id}', needs: 'operator', returns: organizationDetails },
  updateOrganization: {
    route: 'PATCH /organizations/{id}',
    needs: 'operator',
    body: updateOrganization,
    returns: organizationDetails,
  },
  deleteOrganization: { route: 'DELETE /organizations/{id}', needs: 'operator', propagates: true },
  suspendOrganization: { route: 'POST /organizations/{id}/suspend', needs: 'operator', returns: organizationDetails },
  reinstateOrganization: {
    route: 'POST /organizations/{id}/reinstate',
    needs: 'operator',
    returns: organizationDetails,
  },
  createRecoveryToken: {
    route: 'POST /organizations/{id}/recovery-token',
    needs: 'operator',
    body: createRecoveryToken,
    returns: createdToken,
    creates: true,
    secrets: ['secret'],
  },
  updateOwnOrganization: {
    route: 'PATCH /organization',
    needs: 'credentials.write',
    body: updateOwnOrganization,
    returns: ownOrganization,
  },
  readOwnOrganization: { route: 'GET /organization', needs: 'token', returns: ownOrganization },
})

/**
 * The requests (docs/api.md#h3) and responses (docs/api.md#h1) of the validation API, v1 and v2. Only a verdict has the
 * member `valid`, so that apps can distinguish an outage from a rejection (docs/api.md#h2).
 */

import { z } from 'zod'

import { CODE_MESSAGES } from './codes.ts'
import { MAX_MACHINE_ID_BYTES, optionalExactText } from './text.ts'
import { CODES } from './vocabulary.ts'

/** A license key in a check. The schema has no maximum length, because a check with an overlong key is rejected with `NOT_FOUND`. */
export const checkedLicenseKey = z
  .string()
  .min(1)
  .refine((value) => value.isWellFormed(), 'must be well-formed Unicode')
  .meta({ description: 'The license key, compared exactly.', example: 'K7QF-2MXW-9RTB-HD4C' })

const optionalMachineId = optionalExactText(MAX_MACHINE_ID_BYTES)

/** The optional members of a verdict that a request can include (docs/api.md#h12). */
const include = z
  .array(z.enum(['entitlements'], 'must be "entitlements"'))
  .max(16)
  .nullish()
  .transform((names) => names ?? [])
  .meta({ description: 'The optional members to include in a `VALID` response.', example: ['entitlements'] })

// The lengths of the values with which a request asks for a signed response (docs/api.md#g1). Both consist of base64url characters.
export const NONCE_LENGTH = 22
export const MAX_KID_LENGTH = 64

const NONCE = new RegExp(`^[A-Za-z0-9_-]{${NONCE_LENGTH}}$`)
const KID = new RegExp(`^[A-Za-z0-9_-]{1,${MAX_KID_LENGTH}}$`)

const signatureFields = {
  nonce: z.string().regex(NONCE, 'must be 22 base64url characters').nullish().meta({
    description: '16 random bytes in base64url. Send `nonce` and `kid` to receive a signed response.',
    example: 'c2lnbmVkIGFuc3dlcnMhIQ',
  }),
  kid: z.string().regex(KID, 'must be the id of a public key').nullish().meta({
    description: 'The id of the public key with which the app verifies the response.',
    example: '8a88e3dd7409f195',
  }),
}

interface SignatureFields {
  nonce?: string | null | undefined
  kid?: string | null | undefined
}

/** Returns whether both fields are present, or both absent. */
const areTogether = ({ nonce, kid }: SignatureFields): boolean =>
  ((nonce ?? null) === null) === ((kid ?? null) === null)
const TOGETHER = { path: ['nonce'], message: 'and `kid` must be sent together' }

/** The fields of a batch that ask for a signed response. */
export const batchSignature = z.looseObject(signatureFields).refine(areTogether, TOGETHER)

/** The fields of v2 that can contain the machine id. The first field that is present is used, and later ones are not validated. */
const MACHINE_ID_FIELDS = ['fingerprint', 'hwid', 'host', 'macAddress'] as const

/**
 * Returns a schema that documents a field and accepts any value. The transformation validates the field if all fields before it are absent.
 */
const unexamined = (description: string, example: string) =>
  z
    .unknown()
    .optional()
    .meta({ description, example, override: { type: ['string', 'null'] } })

/** The body of v2 validate: `{license, fingerprint?, hwid?, host?, macAddress?, include?}`. */
export const validateRequestV2 = z
  .looseObject({
    license: checkedLicenseKey,
    fingerprint: unexamined('The machine id, at most 512 bytes of UTF-8; null and "" count as absent.', 'laptop-1'),
    hwid: unexamined('The machine id, if `fingerprint` is absent.', 'laptop-1'),
    host: unexamined('The machine id, if `fingerprint` and `hwid` are absent.', 'laptop-1'),
    macAddress: unexamined('The machine id, if all fields before it are absent.', '00:53:00:12:34:56'),
    include,
    ...signatureFields,
  })
  .refine(areTogether, TOGETHER)
  .meta({ example: { license: 'K7QF-2MXW-9RTB-HD4C', fingerprint: 'laptop-1' } })
  .transform((body, context) => {
    const common = { licenseKey: body.license, include: body.include, kid: body.kid ?? null }
    for (const field of MACHINE_ID_FIELDS) {
      const parsed = optionalMachineId.safeParse(body[field])
      if (!parsed.success) {
        context.addIssue({ code: 'custom', path: [field], message: 'must be a machine id of 1 to 512 bytes' })
        return z.NEVER
      }
      if (parsed.data !== null) return { ...common, machineId: parsed.data }
    }
    return { ...common, machineId: null }
  })

/** The name by which people recognize the machine. The name may be as long as a machine id. */
const optionalHostname = optionalExactText(MAX_MACHINE_ID_BYTES)

/** The body of v1 validate and activate: `{licenseKey, fingerprint?, hostname?, include?}`. */
export const validateRequestV1 = z
  .looseObject({
    licenseKey: checkedLicenseKey,
    fingerprint: optionalMachineId.meta({
      description: 'The machine id, at most 512 bytes of UTF-8; null and "" count as absent.',
      example: 'laptop-1',
    }),
    hostname: optionalHostname.meta({
      description: 'The name of the machine for people, at most 512 bytes of UTF-8.',
      example: 'Ada’s laptop',
    }),
    include,
    ...signatureFields,
  })
  .refine(areTogether, TOGETHER)
  .meta({ example: { licenseKey: 'K7QF-2MXW-9RTB-HD4C', fingerprint: 'laptop-1' } })
  .transform(({ licenseKey, fingerprint, hostname, include: names, kid }) => {
    return { licenseKey, machineId: fingerprint, hostname, include: names, kid: kid ?? null }
  })

/** The body of v1 deactivate: `{licenseKey, fingerprint}` or `{licenseKey, ref}`. */
export const deactivateRequest = z
  .looseObject({
    licenseKey: checkedLicenseKey,
    fingerprint: optionalMachineId.meta({
      description: 'The machine id, 1 to 512 bytes of UTF-8, compared exactly.',
      example: '4C4C4544-0051-3510-8053-B7C04F4E3532',
    }),
    ref: z.uuid('must be a ref from POST /api/v1/machines').nullish().meta({
      description: 'The `ref` of the machine from `POST /api/v1/machines`, if `fingerprint` is absent.',
      example: '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b',
    }),
    ...signatureFields,
  })
  .refine(areTogether, TOGETHER)
  .refine(({ fingerprint, ref }) => (fingerprint ?? ref ?? null) !== null, {
    path: ['fingerprint'],
    message: 'must be a machine id, unless `ref` is sent',
  })
  .meta({ example: { licenseKey: 'K7QF-2MXW-9RTB-HD4C', fingerprint: 'laptop-1' } })
  .transform(({ licenseKey, fingerprint, ref, kid }) => {
    return { licenseKey, machineId: fingerprint, ref: fingerprint === null ? (ref ?? null) : null, kid: kid ?? null }
  })

/** The maximum number of checks in a batch, and the maximum size of its body in bytes (docs/api.md#h13). */
export const MAX_BATCH_CHECKS = 100
export const MAX_BATCH_BODY_BYTES = 128 * 1024

/** The body of v2 batch validation: `{checks}`. A validator validates each check separately. */
export const validateBatchRequest = z
  .looseObject({
    checks: z
      .array(validateRequestV2)
      .min(1)
      .max(MAX_BATCH_CHECKS)
      .meta({ description: 'The checks, each a request of v2.' }),
    ...signatureFields,
  })
  .refine(areTogether, TOGETHER)
  .meta({
    example: {
      checks: [
        { license: 'K7QF-2MXW-9RTB-HD4C', fingerprint: 'laptop-1' },
        { license: 'K7QF-2MXW-9RTB-HD4C', fingerprint: 'laptop-2' },
      ],
    },
  })

const status = <const Status extends number>(value: Status) =>
  z.literal(value).meta({ description: 'The HTTP status.', example: value })
const valid = <const Valid extends boolean>(value: Valid) =>
  z.literal(value).meta({ description: 'Whether the app may run. Only a verdict has this member.', example: value })
const message = z
  .string()
  .meta({ description: 'A message that describes the outcome.', example: CODE_MESSAGES.EXPIRED })
const expiresAt = z.iso.datetime({ precision: 3 }).nullable().meta({
  description: 'The time at which the license expires, in UTC; null if it never expires.',
  example: '2027-01-31T00:00:00.000Z',
})

const graceEndsAt = z.iso.datetime({ precision: 3 }).optional().meta({
  description: 'The time at which the grace period ends. Present only during the period, which begins at `expiresAt`.',
  example: '2027-02-07T00:00:00.000Z',
})

/** The codes of rejected checks: all except `VALID`. */
const rejectionCode = z.enum(CODES).exclude(['VALID']).meta({
  description: 'The reason of the rejection.',
  example: 'EXPIRED',
})
const validCode = z.literal('VALID').meta({ description: 'The check is valid.', example: 'VALID' })

/** The entitlements in a verdict. They are present only on request (docs/api.md#h12). */
const shownEntitlements = z
  .record(z.string(), z.union([z.literal(true), z.int(), z.string()]))
  .optional()
  .meta({
    description: 'The entitlements of the license. Present only if the request includes them.',
    example: { edition: 'pro', seats: 5 },
  })

/** The verdict of v2 validate. `status` is the HTTP status (docs/api.md#h1). */
export const verdictV2 = z.discriminatedUnion('valid', [
  z.strictObject({
    valid: valid(true),
    status: status(200),
    message,
    code: validCode,
    expiresAt,
    graceEndsAt,
    entitlements: shownEntitlements,
  }),
  z.strictObject({ valid: valid(false), status: status(400), message, code: rejectionCode }),
])

/** The verdict of v1 validate and activate, always with status 200. `machines` is present with `TOO_MANY_MACHINES`. */
export const verdictV1 = z.discriminatedUnion('valid', [
  z.strictObject({ valid: valid(true), code: validCode, expiresAt, graceEndsAt, entitlements: shownEntitlements }),
  z.strictObject({
    valid: valid(false),
    code: rejectionCode,
    detail: message,
    machines: z
      .strictObject({
        used: z.int().meta({ description: 'The number of taken machine slots.', example: 2 }),
        max: z.int().meta({ description: 'The number of machine slots of the license.', example: 2 }),
      })
      .optional()
      .meta({ description: 'Present with `TOO_MANY_MACHINES`.' }),
  }),
])

/** A check of an embedded validator (docs/api.md#h15). Its verdict is that of v1. */
export const embeddedCheck = z.strictObject({
  licenseKey: checkedLicenseKey,
  machineId: optionalMachineId,
  hostname: optionalHostname,
  /** The address of the customer. Without it, no rule for an address matches. */
  ip: z.string('must be an IPv4 or IPv6 address').nullish(),
  /** The country of the customer. Without it, no rule for a country matches. */
  country: z
    .string()
    .regex(/^[A-Za-z]{2}$/, 'must be two letters')
    .toUpperCase()
    .nullish(),
  include,
})

/** The response of v1 deactivate (docs/api.md#h10). */
export const deactivateResponse = z.strictObject({
  deactivated: z.boolean().meta({ description: 'Whether a slot was released.', example: true }),
})

/** The codes of errors, which are not verdicts (docs/api.md#h5). */
export const validationErrorCode = z
  .enum([
    'BAD_REQUEST',
    'INVALID_REQUEST',
    'UNAUTHORIZED',
    'NOT_ENABLED',
    'PAYLOAD_TOO_LARGE',
    'UNSUPPORTED_MEDIA_TYPE',
    'UNAVAILABLE',
    'NOT_FOUND',
    'METHOD_NOT_ALLOWED',
    'REQUEST_TIMEOUT',
  ])
  .meta({ description: 'The stable name of the error.', example: 'UNAVAILABLE' })

const errorText = z.string().meta({
  description: 'A message that describes the error.',
  example: 'The service is temporarily unavailable.',
})

/** The error of v2 validate. It has no `valid` (docs/api.md#h2). */
export const validationErrorV2 = z
  .strictObject({
    status: z.int().meta({ description: 'The HTTP status.', example: 503 }),
    message: errorText,
    code: validationErrorCode,
  })
  .meta({ id: 'ValidationErrorV2', description: 'An error of v2. Unlike a verdict, it has no `valid`.' })

/** The rejection that a gateway receives. It has no `valid` (docs/api.md#h14). */
export const gatewayRejection = z
  .strictObject({ status: status(403), message, code: rejectionCode })
  .meta({ id: 'GatewayRejection', description: 'A rejected check of a gateway.' })

/** The response of v2 batch validation. It contains a verdict or an error for each check, in the order of the checks. */
export const validateBatchResponse = z.strictObject({
  results: z
    .array(z.union([...verdictV2.options, validationErrorV2]))
    .min(1)
    .max(MAX_BATCH_CHECKS)
    .meta({
      description: 'The results in the order of the checks, each a verdict or an error.',
      example: [{ valid: false, status: 400, message: CODE_MESSAGES.EXPIRED, code: 'EXPIRED' }],
    }),
})

/** The error of every endpoint of the validation API except v2 validate. */
export const validationErrorV1 = z
  .strictObject({ code: validationErrorCode, detail: errorText })
  .meta({ id: 'ValidationErrorV1', description: 'An error of v1. Unlike a verdict, it has no `valid`.' })

/** The current public key (docs/api.md#h11). */
export const publicKey = z.strictObject({
  keyId: z.string().meta({ description: 'The `kid` of the files that it signs.', example: '8a88e3dd7409f195' }),
  algorithm: z.literal('Ed25519').meta({ description: 'The algorithm.', example: 'Ed25519' }),
  publicKey: z.base64().meta({
    description: 'Standard base64 of the X.509 SubjectPublicKeyInfo.',
    example: 'MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=',
  }),
})

/** The list of public keys (docs/api.md#h11). */
export const publicKeys = z.strictObject({
  keys: z
    .array(
      publicKey.extend({
        createdAt: z.iso
          .datetime({ precision: 3 })
          .meta({ description: 'The time of creation.', example: '2026-11-20T09:30:00.000Z' }),
        retiredAt: z.iso.datetime({ precision: 3 }).nullable().meta({
          description: 'The time at which a newer key replaced it; null while it signs new files.',
          example: null,
        }),
      }),
    )
    .meta({ description: 'All keys whose files are still valid.' }),
})

export type EmbeddedCheck = z.input<typeof embeddedCheck>
export type VerdictV1 = z.infer<typeof verdictV1>
export type VerdictV2 = z.infer<typeof verdictV2>
export type ValidateBatchResponse = z.infer<typeof validateBatchResponse>
export type RejectionCode = z.infer<typeof rejectionCode>
export type DeactivateResponse = z.infer<typeof deactivateResponse>
export type ValidationErrorCode = z.infer<typeof validationErrorCode>
export type ValidationErrorV1 = z.infer<typeof validationErrorV1>
export type GatewayRejection = z.infer<typeof gatewayRejection>
export type ValidationErrorV2 = z.infer<typeof validationErrorV2>
export type PublicKeys = z.infer<typeof publicKeys>

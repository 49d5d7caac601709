/**
 * The validation API, v1 and v2: what apps send and what they get (API document, "Validation request" and "Validation response").
 * The member `valid` stands in verdicts only, so that nobody can read an outage as a refusal.
 */
import { z } from 'zod'

import { code } from './codes.ts'
import { exactText, maxMachineIdBytes, optionalExactText } from './text.ts'

/** A license key in a check. Its length has no upper bound: a key longer than any key can be is simply not found. */
export const checkedLicenseKey = z
  .string()
  .min(1)
  .refine((value) => value.isWellFormed(), 'must be well-formed Unicode')
  .meta({ description: 'The license key, compared exactly.', example: 'K7QF-2MXW-9RTB-HD4C' })

const machineId = exactText(maxMachineIdBytes).meta({
  description: 'The machine id, 1 to 512 bytes of UTF-8, compared exactly.',
  example: '4C4C4544-0051-3510-8053-B7C04F4E3532',
})

const optionalMachineId = optionalExactText(maxMachineIdBytes)

/** The fields that may carry the machine id on v2, in the order in which they are looked at. */
export const machineIdFields = ['fingerprint', 'hwid', 'host', 'macAddress'] as const

/** `{license, fingerprint?, hwid?, host?, macAddress?}` to a license key and the first machine id present; fields behind it are not examined. */
export const validateRequestV2 = z.looseObject({ license: checkedLicenseKey }).transform((body, context) => {
  for (const field of machineIdFields) {
    const parsed = optionalMachineId.safeParse(body[field])
    if (!parsed.success) {
      context.addIssue({ code: 'custom', path: [field], message: 'must be a machine id of 1 to 512 bytes' })
      return z.NEVER
    }
    if (parsed.data !== null) return { licenseKey: body.license, machineId: parsed.data }
  }
  return { licenseKey: body.license, machineId: null }
})

/** A name people know the machine by. */
const optionalHostname = optionalExactText(maxMachineIdBytes)

/** `{licenseKey, fingerprint?, hostname?}` of v1 validate and activate. */
export const validateRequestV1 = z
  .looseObject({ licenseKey: checkedLicenseKey, fingerprint: optionalMachineId, hostname: optionalHostname })
  .transform((body) => ({ licenseKey: body.licenseKey, machineId: body.fingerprint, hostname: body.hostname }))

/** `{licenseKey, fingerprint}` of v1 deactivate. */
export const deactivateRequest = z
  .looseObject({ licenseKey: checkedLicenseKey, fingerprint: machineId })
  .transform((body) => ({ licenseKey: body.licenseKey, machineId: body.fingerprint }))

const expiresAt = z.iso
  .datetime()
  .nullable()
  .meta({ description: 'When the license expires, UTC; null: never.', example: '2027-01-31T00:00:00.000Z' })

export const verdictV2 = z.discriminatedUnion('valid', [
  z.object({ valid: z.literal(true), status: z.literal(200), message: z.string(), code, expiresAt }),
  z.object({ valid: z.literal(false), status: z.literal(400), message: z.string(), code }),
])

export const verdictV1 = z.discriminatedUnion('valid', [
  z.object({ valid: z.literal(true), code, expiresAt }),
  z.object({
    valid: z.literal(false),
    code,
    detail: z.string(),
    machines: z.object({ used: z.int(), max: z.int() }).optional(),
  }),
])

export const deactivateAnswer = z.object({ deactivated: z.boolean() })

/** What is no verdict: on v2 with `status` and `message`, elsewhere with `detail`. */
export const validationErrorCodes = [
  'INVALID_REQUEST',
  'UNAUTHORIZED',
  'PAYLOAD_TOO_LARGE',
  'UNAVAILABLE',
  'NOT_FOUND',
  'METHOD_NOT_ALLOWED',
] as const
export type ValidationErrorCode = (typeof validationErrorCodes)[number]

export const publicKey = z.object({
  keyId: z.string(),
  algorithm: z.literal('Ed25519'),
  publicKey: z.base64(),
})

export const publicKeys = z.object({
  keys: z.array(publicKey.extend({ createdAt: z.iso.datetime(), retiredAt: z.iso.datetime().nullable() })),
})

export type VerdictV1 = z.infer<typeof verdictV1>
export type VerdictV2 = z.infer<typeof verdictV2>

/**
 * The errors of the management API: RFC 9457 problems, each with a stable `code` (docs/api.md#m5). The services and `/openapi.json` use the
 * status and title of each code from this file.
 */

import { z } from 'zod'

import { CODE_MESSAGES } from './codes.ts'

export const PROBLEMS = {
  MALFORMED_HTTP: { status: 400, title: 'The request is not valid HTTP/1.1.' },
  MALFORMED_JSON: { status: 400, title: 'The body is not valid JSON.' },
  UNAUTHENTICATED: { status: 401, title: 'A valid credential is required.' },
  FORBIDDEN: { status: 403, title: 'The credential lacks the permission for this request.' },
  RULE_LIMIT_REACHED: { status: 403, title: 'The plan allows no more access rules.' },
  COUNTRY_RULES_NOT_IN_PLAN: { status: 403, title: 'The plan does not include country rules.' },
  NOT_ENABLED: { status: 403, title: 'The operator, the vendor or the license has not enabled this.' },
  QUOTA_EXCEEDED: { status: 403, title: 'The quota of the organization is used up.' },
  ORGANIZATION_SUSPENDED: { status: 403, title: 'The operator has suspended the organization.' },
  NOT_FOUND: { status: 404, title: 'The resource does not exist.' },
  METHOD_NOT_ALLOWED: { status: 405, title: 'The method is not allowed for this path.' },
  REQUEST_TIMEOUT: { status: 408, title: 'The request did not arrive completely in time.' },
  IDEMPOTENCY_KEY_IN_USE: { status: 409, title: 'A request with this idempotency key is still running.' },
  RULE_EXISTS: { status: 409, title: 'An access rule that does all that this rule does exists.' },
  LICENSE_KEY_EXISTS: { status: 409, title: 'A license with this key exists.' },
  LICENSE_REVOKED: { status: 409, title: 'The license is revoked. A revocation is final.' },
  NOT_STARTED: { status: 409, title: 'The term of the license starts with its first valid check.' },
  VALIDATORS_OUTDATED: { status: 409, title: 'A connected validator does not implement this feature yet.' },
  EXTERNAL_ID_EXISTS: { status: 409, title: 'Another resource with this external id exists.' },
  MEMBER_EXISTS: { status: 409, title: 'A member with this e-mail address exists.' },
  SIGNING_KEY_CURRENT: { status: 409, title: 'The key signs new files. Rotate the keys first.' },
  LAST_CREDENTIAL: { status: 409, title: 'After this request, no credential could manage credentials.' },
  LAST_MANAGER: { status: 409, title: 'After this request, no member could manage members.' },
  ENDPOINT_DISABLED: { status: 409, title: 'The webhook endpoint is disabled.' },
  IN_USE: { status: 409, title: 'The resource still has licenses.' },
  NOT_UNDOABLE: { status: 409, title: 'The job cannot be undone.' },
  REVOKED: { status: 409, title: CODE_MESSAGES.REVOKED },
  SUSPENDED: { status: 409, title: CODE_MESSAGES.SUSPENDED },
  EXPIRED: { status: 409, title: CODE_MESSAGES.EXPIRED },
  BLACKLISTED: { status: 409, title: CODE_MESSAGES.BLACKLISTED },
  FINGERPRINT_REQUIRED: { status: 409, title: CODE_MESSAGES.FINGERPRINT_REQUIRED },
  TOO_MANY_MACHINES: { status: 409, title: CODE_MESSAGES.TOO_MANY_MACHINES },
  MACHINE_NOT_ACTIVE: { status: 409, title: 'The machine holds no slot of this license.' },
  VERSION_MISMATCH: { status: 412, title: 'The resource has another version.' },
  PAYLOAD_TOO_LARGE: { status: 413, title: 'The body is too large.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, title: 'The body must be application/json.' },
  EXPECTATION_FAILED: { status: 417, title: 'The only supported expectation is 100-continue.' },
  INVALID_REQUEST: { status: 422, title: 'The request is not valid.' },
  IMPORT_TOO_LARGE: { status: 422, title: 'The list has too many rows.' },
  IDEMPOTENCY_KEY_REUSED: { status: 422, title: 'The idempotency key was used for another request.' },
  RATE_LIMITED: { status: 429, title: 'Too many requests.' },
  HEADERS_TOO_LARGE: { status: 431, title: 'The headers are too large.' },
  INTERNAL: { status: 500, title: 'An internal error occurred.' },
  UNAVAILABLE: { status: 503, title: 'The service is temporarily unavailable.' },
} as const satisfies Record<string, { status: number; title: string }>

export type ProblemCode = keyof typeof PROBLEMS
export const PROBLEM_CODES: readonly ProblemCode[] = Object.keys(PROBLEMS).filter(
  (key): key is ProblemCode => key in PROBLEMS,
)

export const problem = z
  .object({
    type: z
      .string()
      .meta({ description: 'A URI that identifies the type of the problem.', example: 'urn:keyward:problem:in-use' }),
    title: z
      .string()
      .meta({ description: 'A short description of the problem type.', example: 'The resource still has licenses.' }),
    status: z.int().meta({ description: 'The HTTP status.', example: 409 }),
    detail: z.string().meta({
      description: 'A description of this occurrence of the problem.',
      example: 'The product has 3 licenses.',
    }),
    instance: z.string().meta({ description: 'The path of the request.', example: '/api/v1/products/019a8b3c' }),
    // Later versions may add codes, so the schema accepts any text. The served `/openapi.json` lists the current codes.
    code: z.string().meta({
      description: 'The stable name of the problem.',
      example: 'IN_USE',
      override: { enum: [...PROBLEM_CODES] },
    }),
    requestId: z.string().meta({ description: 'The `x-request-id` of the response.', example: 'f3b1c2' }),
    errors: z
      .array(
        z.object({
          pointer: z.string().meta({
            description: 'A JSON pointer into the body (`#/rules/17/value`), or `?name` for a query parameter.',
            example: '#/policy/expiresAt',
          }),
          detail: z.string().meta({ description: 'The requirement that the value violates.', example: 'is required' }),
        }),
      )
      .optional()
      .meta({ description: 'All validation errors of the request.' }),
    ruleId: z.uuid().optional().meta({
      description: 'The id of the existing rule (`RULE_EXISTS`).',
      example: '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b',
    }),
    quota: z
      .object({
        name: z.string().meta({ description: 'The name of the quota.', example: 'licenses' }),
        limit: z.int().meta({ description: 'The limit of the quota.', example: 1_000_000 }),
        used: z.int().meta({ description: 'The number in use before the request.', example: 1_000_000 }),
      })
      .optional()
      .meta({ description: 'The quota that the request would exceed (`QUOTA_EXCEEDED`).' }),
    current: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({
        description: 'The current representation of the resource (`VERSION_MISMATCH`).',
        example: { name: 'Studio 3', updatedAt: '2026-11-20T09:30:00.000Z' },
      }),
    mergedInto: z.uuid().optional().meta({
      description: 'The customer that remained after a merge (`NOT_FOUND`).',
      example: '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b',
    }),
  })
  .meta({ id: 'Problem', description: 'An error (RFC 9457).' })
export type Problem = z.infer<typeof problem>

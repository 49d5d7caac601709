/**
 * The operations of the validation API (docs/api.md#validation-api), which validators serve below the same base address. Requests and
 * responses use the schemas of the contract, so a new field appears in them without a change here. The compiler rejects a new code that has
 * no description.
 */

import {
  CODE_MESSAGES,
  CODES,
  deactivateRequest,
  deactivateResponse,
  gatewayRejection,
  publicKey,
  publicKeys,
  type RejectionCode,
  validateBatchRequest,
  validateBatchResponse,
  type ValidateBatchResponse,
  validateRequestV1,
  validateRequestV2,
  type ValidationErrorCode,
  validationErrorCode,
  validationErrorV1,
  validationErrorV2,
  type VerdictV1,
  verdictV1,
  type VerdictV2,
  verdictV2,
} from '@keyward/contract'
import { z } from 'zod'
import type {
  ZodOpenApiExampleObject,
  ZodOpenApiOperationObject,
  ZodOpenApiResponseObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi'

import type { Tag } from '../operations/implement.ts'
import { named } from './component-names.ts'
import { type HeaderName, headerReferences } from './headers.ts'

const CHECKS: Tag = {
  name: 'Checks',
  description:
    'Apps check licenses with an API key. Only a verdict has the field `valid`. Every other response is an error. ' +
    'Checks have no rate limit.',
}
const PUBLIC_KEYS: Tag = {
  name: 'Public keys',
  description: 'The keys that verify offline license files. Build them into the app; do not fetch them at run time.',
}

export const VALIDATION_TAGS: readonly Tag[] = [CHECKS, PUBLIC_KEYS]

interface ErrorText {
  status: number
  description: string
  /** An example of the message. */
  text: string
  header?: HeaderName
}

const ERRORS: Record<ValidationErrorCode, ErrorText> = {
  BAD_REQUEST: {
    status: 400,
    description:
      'The length of the body is ambiguous. The connection closes. Without the field `valid`, the response is not a verdict.',
    text: 'The length of the body is ambiguous. Send either one Content-Length or "Transfer-Encoding: chunked", once.',
  },
  UNAUTHORIZED: {
    status: 401,
    description: 'The API key is missing, unknown, revoked or expired.',
    text: 'The API key is unknown, revoked or expired.',
    header: 'www-authenticate',
  },
  NOT_ENABLED: {
    status: 403,
    description: 'The request has a `ref`, and the license has neither `policy.maxReleases` nor leases.',
    text: 'The license does not let apps list its machines and release them by ref.',
  },
  NOT_FOUND: { status: 404, description: 'The path is unknown.', text: 'No endpoint with this path exists.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    description: 'The method is not supported here.',
    text: 'The method is not allowed here. The Allow header lists the allowed methods.',
    header: 'allow',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    description: 'The whole request did not arrive within 2 seconds. The connection closes.',
    text: 'The request did not arrive completely within 2 seconds.',
  },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    description: 'The body is larger than 16 KiB. The connection closes.',
    text: 'The body is larger than 16 KiB.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    description: 'The body is compressed.',
    text: 'Compressed bodies are not supported. Send the body without a Content-Encoding.',
    header: 'accept-encoding',
  },
  INVALID_REQUEST: {
    status: 422,
    description:
      'The body is not a JSON object in UTF-8, lacks the license key, or has a field of the wrong type or an id that is too long.',
    text: 'v2 expects `license`; got `licenseKey`.',
  },
  UNAVAILABLE: {
    status: 503,
    description:
      'No verdict is possible now: the license needs a new machine slot while the database is unreachable, or the index is not ' +
      'current. Use the offline license file.',
    text: 'The service is temporarily unavailable.',
    header: 'retry-after',
  },
}

type Shape = 'v1' | 'v2'

/** The error texts of batches that differ from those of single checks. */
const BATCH_ERRORS: Partial<Record<ValidationErrorCode, Pick<ErrorText, 'description' | 'text'>>> = {
  PAYLOAD_TOO_LARGE: {
    description: 'The body is larger than 128 KiB. The connection closes.',
    text: 'The body is larger than 128 KiB.',
  },
  INVALID_REQUEST: {
    description: 'The body is not a JSON object in UTF-8 with 1 to 100 `checks`, or has too many members.',
    text: '`checks` must be an array of 1 to 100 checks; got 101.',
  },
  UNAVAILABLE: {
    description: 'No check of the batch can be decided now: the index is not current.',
    text: 'The service is temporarily unavailable.',
  },
}

type ErrorTexts = typeof BATCH_ERRORS

function errorExample(shape: Shape, code: ValidationErrorCode, texts: ErrorTexts = {}): ZodOpenApiExampleObject {
  const { status, text } = { ...ERRORS[code], ...texts[code] }
  return { summary: code, value: shape === 'v2' ? { status, message: text, code } : { code, detail: text } }
}

function errorResponse(shape: Shape, code: ValidationErrorCode, texts: ErrorTexts): ZodOpenApiResponseObject {
  const { description, header } = { ...ERRORS[code], ...texts[code] }
  const schema = shape === 'v2' ? validationErrorV2 : validationErrorV1
  return {
    description: `\`${code}\`: ${description}`,
    headers: headerReferences(['date', ...(header === undefined ? [] : [header])]),
    content: { 'application/json': { schema, examples: { [code]: errorExample(shape, code, texts) } } },
  }
}

const HEADERS_TOO_LARGE: ZodOpenApiResponseObject = {
  description: 'The request has too many headers, or they exceed about 4 KiB. The connection closes.',
}

/** Returns the responses to errors. `takesBody` is true when the request has a body. */
function errorResponses(shape: Shape, takesBody: boolean, texts: ErrorTexts = {}): ZodOpenApiResponsesObject {
  const needBody = new Set<ValidationErrorCode>([
    'BAD_REQUEST',
    'PAYLOAD_TOO_LARGE',
    'UNSUPPORTED_MEDIA_TYPE',
    'INVALID_REQUEST',
  ])
  const codes = validationErrorCode.options.filter(
    (code) => code !== 'NOT_ENABLED' && (takesBody || !needBody.has(code)),
  )
  const responses: [string, ZodOpenApiResponseObject][] = codes.map((code) => [
    `${ERRORS[code].status}`,
    errorResponse(shape, code, texts),
  ])
  return Object.fromEntries(
    [...responses, ['431', HEADERS_TOO_LARGE] as const].toSorted(([a], [b]) => Number(a) - Number(b)),
  )
}

const REJECTIONS: readonly RejectionCode[] = CODES.filter((code) => code !== 'VALID')
const EXPIRES_AT = '2030-01-01T00:00:00.000Z'

type Examples = Record<string, ZodOpenApiExampleObject>

function validExamples(verdict: (expiresAt: string | null) => VerdictV1 | VerdictV2): Examples {
  return {
    VALID: { summary: 'The license is valid', value: verdict(EXPIRES_AT) },
    VALID_FOREVER: { summary: 'The license is valid and never expires', value: verdict(null) },
  }
}

function rejectionExamples(verdict: (code: RejectionCode) => object): Examples {
  return Object.fromEntries(REJECTIONS.map((code) => [code, { summary: CODE_MESSAGES[code], value: verdict(code) }]))
}

const VALID_V2 = validExamples((expiresAt): VerdictV2 => ({
  valid: true,
  status: 200,
  message: CODE_MESSAGES.VALID,
  code: 'VALID',
  expiresAt,
}))
const REJECTED_V2 = rejectionExamples((code): VerdictV2 => ({
  valid: false,
  status: 400,
  message: CODE_MESSAGES[code],
  code,
}))
const VALID_V1 = validExamples((expiresAt): VerdictV1 => ({ valid: true, code: 'VALID', expiresAt }))
const REJECTED_V1 = rejectionExamples((code): VerdictV1 => ({
  valid: false,
  code,
  detail: CODE_MESSAGES[code],
  ...(code === 'TOO_MANY_MACHINES' && { machines: { used: 2, max: 2 } }),
}))

function success(
  description: string,
  schema: z.ZodType,
  examples?: Examples,
  headers: readonly HeaderName[] = ['date'],
): ZodOpenApiResponseObject {
  const content = { 'application/json': { schema, ...(examples && { examples }) } }
  return { description, headers: headerReferences(headers), content }
}

/** Describes a response that is signed if the request asks for it. */
function signable(description: string, schema: z.ZodType, examples: Examples): ZodOpenApiResponseObject {
  return success(description, schema, examples, ['date', 'keyward-signature'])
}

interface Description {
  tag: Tag
  operationId: string
  summary: string
  description: string
  body?: z.ZodType
  shape?: Shape
  verdicts: ZodOpenApiResponsesObject
  /** The error texts that differ from those in ERRORS. */
  errors?: ErrorTexts
}

function operation({
  tag,
  body,
  shape = 'v1',
  verdicts,
  errors,
  description,
  ...names
}: Description): ZodOpenApiOperationObject {
  return {
    ...names,
    tags: [tag.name],
    description: `${description}\n\nCredential: an API key of the organization.`,
    security: [{ apiKey: [] }],
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: named(body, names.operationId, 'Request') } },
      },
    }),
    responses: { ...errorResponses(shape, body !== undefined, errors), ...verdicts },
  }
}

const verdictsV1 = {
  '200': signable('A verdict, valid or rejected.', verdictV1, { ...VALID_V1, ...REJECTED_V1 }),
}

const validateV2 = operation({
  tag: CHECKS,
  operationId: 'validateLicenseV2',
  summary: 'Check a license',
  description:
    'Returns 200 if the license is valid for this machine, and 400 with a code if the check is rejected. The first check of a ' +
    'machine takes a machine slot, if the license has a machine limit.',
  body: validateRequestV2,
  shape: 'v2',
  verdicts: {
    '200': signable('The verdict: the license is valid.', verdictV2.options[0], VALID_V2),
    '400': signable(
      'The verdict: the check is rejected. The body has `valid: false`. Without `valid`, it is the error `BAD_REQUEST`.',
      z.union([verdictV2.options[1], validationErrorV2]),
      { ...REJECTED_V2, BAD_REQUEST: errorExample('v2', 'BAD_REQUEST') },
    ),
  },
})

const BATCH_RESULTS: ValidateBatchResponse = {
  results: [
    { valid: true, status: 200, message: CODE_MESSAGES.VALID, code: 'VALID', expiresAt: EXPIRES_AT },
    { valid: false, status: 400, message: CODE_MESSAGES.TOO_MANY_MACHINES, code: 'TOO_MANY_MACHINES' },
    { status: 422, message: '`license` must be a string; got a number.', code: 'INVALID_REQUEST' },
    { status: 503, message: ERRORS.UNAVAILABLE.text, code: 'UNAVAILABLE' },
  ],
}

const validateBatch = operation({
  tag: CHECKS,
  operationId: 'validateLicensesV2',
  summary: 'Check up to 100 licenses',
  description:
    'For backends and API gateways that check many licenses at once. Each check has the verdict and the effects of a single ' +
    'request, and all have the address and country of the caller. The results have the order of the checks. A malformed check ' +
    'has the error 422 in its place. A check that needs the database while it is unreachable has 503.',
  body: validateBatchRequest,
  shape: 'v2',
  verdicts: {
    '200': signable('The result of each check.', validateBatchResponse, {
      results: { summary: 'A valid, a rejected, a malformed and an undecided check', value: BATCH_RESULTS },
    }),
  },
  errors: BATCH_ERRORS,
})

const validateV1 = operation({
  tag: CHECKS,
  operationId: 'validateLicenseV1',
  summary: 'Check a license, v1',
  description:
    'Works as v2, but every verdict has status 200, and `TOO_MANY_MACHINES` reports the number of taken slots.',
  body: validateRequestV1,
  verdicts: verdictsV1,
})

const activate = operation({
  tag: CHECKS,
  operationId: 'activateMachine',
  summary: 'Activate a machine',
  description:
    'Works as `/api/v1/validate`. Apps call it when a customer enters a license key, with a `hostname` that people recognize.',
  body: validateRequestV1,
  verdicts: verdictsV1,
})

const deactivate = operation({
  tag: CHECKS,
  operationId: 'deactivateMachine',
  summary: 'Release the slot of a machine',
  description:
    'The machine is named by its `fingerprint`, or by its `ref` from `POST /api/v1/machines`. ' +
    'Works for licenses of every status. Access rules do not apply. An unknown key, an unknown machine and a repeated ' +
    'call return `false`. A call for a license that has reached its limit of releases also returns `false`, and the ' +
    'machine keeps its slot.',
  body: deactivateRequest,
  verdicts: {
    '200': signable('Whether a slot was released.', deactivateResponse, {
      released: { summary: 'A slot was released', value: { deactivated: true } },
      unknown: { summary: 'No slot was released', value: { deactivated: false } },
    }),
    '403': errorResponse('v1', 'NOT_ENABLED', {}),
  },
})

const current = operation({
  tag: PUBLIC_KEYS,
  operationId: 'readPublicKey',
  summary: 'Read the current public key',
  description: 'Returns the key that signs new license files.',
  verdicts: { '200': success('The key.', publicKey) },
})

const all = operation({
  tag: PUBLIC_KEYS,
  operationId: 'listPublicKeys',
  summary: 'List the public keys',
  description: 'Returns the prepared key, and every key whose license files may still be valid.',
  verdicts: { '200': success('The keys.', publicKeys) },
})

const VERDICT_HEADERS: readonly HeaderName[] = ['date', 'x-keyward-code', 'x-keyward-expires', 'x-keyward-grace-ends']

const authorize: ZodOpenApiOperationObject = {
  ...operation({
    tag: CHECKS,
    operationId: 'authorizeRequest',
    summary: 'Authorize a request of a gateway',
    description:
      'Forward authentication, for the `auth_request` of nginx, the `forward_auth` of Caddy and similar directives. Has the verdict and the ' +
      'effects of a check. HEAD and POST work as GET, and the body is ignored.',
    shape: 'v2',
    verdicts: {
      '204': { description: 'The license is valid.', headers: headerReferences(VERDICT_HEADERS) },
      '403': success(
        'The check is rejected. The body has no `valid`.',
        gatewayRejection,
        rejectionExamples((code) => ({ status: 403, message: CODE_MESSAGES[code], code })),
        VERDICT_HEADERS,
      ),
      '422': errorResponse('v2', 'INVALID_REQUEST', {
        INVALID_REQUEST: {
          description: 'The machine id is too long.',
          text: 'x-keyward-machine must have at most 512 bytes.',
        },
      }),
    },
  }),
  parameters: ['x-keyward-license', 'x-keyward-machine'].map((name) => ({
    name,
    in: 'header',
    description: name === 'x-keyward-license' ? 'The license key.' : 'The machine id.',
    schema: { type: 'string' },
  })),
}

/** The operations by path. A test compares the paths with the routes of the validator. */
export const VALIDATION_PATHS = {
  '/api/v2/license/validate': { post: validateV2 },
  '/api/v2/license/validate/batch': { post: validateBatch },
  '/api/v2/authorize': { get: authorize },
  '/api/v1/validate': { post: validateV1 },
  '/api/v1/activate': { post: activate },
  '/api/v1/deactivate': { post: deactivate },
  '/api/v1/public-key': { get: current },
  '/api/v1/public-keys': { get: all },
}

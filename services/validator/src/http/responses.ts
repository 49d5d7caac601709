/**
 * Builds the responses of the validation API, most of them once, as bytes (docs/api.md#h1). Only verdicts have the field `valid`, so a
 * client can distinguish an outage from a rejection (docs/api.md#h2). Errors have `{status, message, code}` on v2 and `{code, detail}`
 * elsewhere.
 */

import { CODE_MESSAGES } from '@keyward/contract/codes'
import type {
  DeactivateResponse,
  GatewayRejection,
  RejectionCode,
  ValidationErrorCode,
  ValidationErrorV1,
  ValidationErrorV2,
  VerdictV1,
  VerdictV2,
} from '@keyward/contract/validation'
import { CODES, NOT_STARTED } from '@keyward/engine'

import { TIMESTAMP_BYTES, writeTimestamp } from './timestamp.ts'

/**
 * The shape of responses. `v2` is the shape of the v2 endpoint, `gateway` that of forward authentication (docs/api.md#h14), whose errors are
 * those of v2, and `v1` that of all other endpoints.
 */
export type Shape = 'v1' | 'v2' | 'gateway'

export type ErrorCode = ValidationErrorCode

/** A response that is ready to be sent. */
export interface PreparedResponse {
  /** The status code and reason phrase, or '' for 200. */
  status: string
  body: Uint8Array
  /** The headers except `content-type`. */
  headers: readonly (readonly [name: string, value: string])[]
  /** Whether the connection closes after the response. */
  closes: boolean
}

interface ErrorText {
  status: string
  text: string
  closes?: boolean
}

const ERRORS: Record<ErrorCode, ErrorText> = {
  BAD_REQUEST: {
    status: '400 Bad Request',
    text: 'The length of the body is ambiguous. Send either one Content-Length or "Transfer-Encoding: chunked", once.',
    closes: true,
  },
  INVALID_REQUEST: { status: '422 Unprocessable Content', text: 'The body is not a valid request.' },
  UNAUTHORIZED: { status: '401 Unauthorized', text: 'The API key is unknown, revoked or expired.' },
  NOT_ENABLED: {
    status: '403 Forbidden',
    text: 'The license does not let apps list its machines and release them by ref.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: '415 Unsupported Media Type',
    text: 'Compressed bodies are not supported. Send the body without a Content-Encoding.',
  },
  PAYLOAD_TOO_LARGE: { status: '413 Content Too Large', text: 'The body is larger than 16 KiB.', closes: true },
  UNAVAILABLE: {
    status: '503 Service Unavailable',
    text: 'The service is temporarily unavailable.',
  },
  NOT_FOUND: { status: '404 Not Found', text: 'No endpoint with this path exists.' },
  METHOD_NOT_ALLOWED: {
    status: '405 Method Not Allowed',
    text: 'The method is not allowed here. The Allow header lists the allowed methods.',
  },
  REQUEST_TIMEOUT: {
    status: '408 Request Timeout',
    text: 'The request did not arrive completely within 2 seconds.',
    closes: true,
  },
}

const NO_HEADERS: PreparedResponse['headers'] = []
const HEADERS: Partial<Record<ErrorCode, PreparedResponse['headers']>> = {
  UNAVAILABLE: [['retry-after', '1']],
  UNAUTHORIZED: [['www-authenticate', 'Bearer']],
  UNSUPPORTED_MEDIA_TYPE: [['accept-encoding', 'identity']],
}

const encoder = new TextEncoder()

function json(value: object): Uint8Array {
  return encoder.encode(JSON.stringify(value))
}

/** Returns the message of an error code. */
export const errorText = (code: ErrorCode): string => ERRORS[code].text

/** Returns an error, by default with the message of the code. */
export function errorResponse(shape: Shape, code: ErrorCode, text = ERRORS[code].text): PreparedResponse {
  const { status, closes } = ERRORS[code]
  const body: ValidationErrorV1 | ValidationErrorV2 =
    shape === 'v1' ? { code, detail: text } : { status: Number.parseInt(status, 10), message: text, code }
  return { status, body: json(body), headers: HEADERS[code] ?? NO_HEADERS, closes: closes ?? false }
}

function errorResponses(shape: Shape): Record<ErrorCode, PreparedResponse> {
  return {
    BAD_REQUEST: errorResponse(shape, 'BAD_REQUEST'),
    INVALID_REQUEST: errorResponse(shape, 'INVALID_REQUEST'),
    UNAUTHORIZED: errorResponse(shape, 'UNAUTHORIZED'),
    NOT_ENABLED: errorResponse(shape, 'NOT_ENABLED'),
    PAYLOAD_TOO_LARGE: errorResponse(shape, 'PAYLOAD_TOO_LARGE'),
    UNSUPPORTED_MEDIA_TYPE: errorResponse(shape, 'UNSUPPORTED_MEDIA_TYPE'),
    UNAVAILABLE: errorResponse(shape, 'UNAVAILABLE'),
    NOT_FOUND: errorResponse(shape, 'NOT_FOUND'),
    METHOD_NOT_ALLOWED: errorResponse(shape, 'METHOD_NOT_ALLOWED'),
    REQUEST_TIMEOUT: errorResponse(shape, 'REQUEST_TIMEOUT'),
  }
}

export const ERROR_RESPONSES: Record<Shape, Record<ErrorCode, PreparedResponse>> = {
  v1: errorResponses('v1'),
  v2: errorResponses('v2'),
  gateway: errorResponses('gateway'),
}

function rejection(shape: Shape, code: RejectionCode): PreparedResponse {
  const message = CODE_MESSAGES[code]
  // The body has no `valid`, because a client that sees it called a gateway instead of this API.
  if (shape === 'gateway')
    return {
      status: '403 Forbidden',
      body: json({ status: 403, message, code } satisfies GatewayRejection),
      headers: [['x-keyward-code', code]],
      closes: false,
    }
  const body: VerdictV1 | VerdictV2 =
    shape === 'v2' ? { valid: false, status: 400, message, code } : { valid: false, code, detail: message }
  return { status: shape === 'v2' ? '400 Bad Request' : '', body: json(body), headers: NO_HEADERS, closes: false }
}

/**
 * Returns the responses to rejected checks, indexed by the engine's number of the code. `VALID` has none, because its response contains a
 * timestamp.
 */
function rejections(shape: Shape): (PreparedResponse | null)[] {
  return CODES.map((code) => (code === 'VALID' ? null : rejection(shape, code)))
}

const REJECTIONS = { v1: rejections('v1'), v2: rejections('v2'), gateway: rejections('gateway') }

/** Returns a response with status 200 and this JSON body. */
export function okResponse(body: Uint8Array): PreparedResponse {
  return { status: '', body, headers: NO_HEADERS, closes: false }
}

/** The shapes whose responses to valid licenses have a body. */
type BodyShape = Exclude<Shape, 'gateway'>

function validBody(
  shape: BodyShape,
  expiresAt: string | null,
  grace: { graceEndsAt?: string } = {},
): VerdictV1 | VerdictV2 {
  return shape === 'v2'
    ? { valid: true, status: 200, message: CODE_MESSAGES.VALID, code: 'VALID', expiresAt, ...grace }
    : { valid: true, code: 'VALID', expiresAt, ...grace }
}

/** The response without a body. */
export const NO_CONTENT: PreparedResponse = { ...okResponse(new Uint8Array(0)), status: '204 No Content' }

interface ValidTemplate {
  /** The response with a placeholder as `expiresAt`. */
  response: PreparedResponse
  /** The index of the placeholder in the body. */
  at: number
  /** The response without an expiry. */
  perpetual: PreparedResponse
}

function validTemplate(shape: BodyShape): ValidTemplate {
  const body = json(validBody(shape, '0'.repeat(TIMESTAMP_BYTES)))
  const perpetual = okResponse(json(validBody(shape, null)))
  // The timestamp is the last member, so a quote and a brace follow it.
  return { response: okResponse(body), at: body.length - 2 - TIMESTAMP_BYTES, perpetual }
}

const VALID_TEMPLATES: Record<BodyShape, ValidTemplate> = { v1: validTemplate('v1'), v2: validTemplate('v2') }

/**
 * Returns the response for a valid license. `expiresAt` is null when the license never expires or its term has not started.
 * `graceEndsAtMs` is the end of the grace period during the period, otherwise 0. The
 * next call may overwrite the bytes, so the response must be sent before that call.
 */
export function validResponse(shape: BodyShape, expiresAtMs: number, graceEndsAtMs: number): PreparedResponse {
  const { response, at, perpetual } = VALID_TEMPLATES[shape]
  if (expiresAtMs === Infinity || expiresAtMs === NOT_STARTED) return perpetual
  if (graceEndsAtMs === 0 && writeTimestamp(expiresAtMs, response.body, at)) return response
  const grace = graceEndsAtMs === 0 ? {} : { graceEndsAt: new Date(graceEndsAtMs).toISOString() }
  return okResponse(json(validBody(shape, new Date(expiresAtMs).toISOString(), grace)))
}

const ENTITLEMENTS_NAME = new TextEncoder().encode(',"entitlements":')
const BRACE = 125

/** Returns the response for a valid license, with its entitlements as JSON. */
export function entitledResponse(
  shape: BodyShape,
  expiresAtMs: number,
  graceEndsAtMs: number,
  entitlements: Uint8Array,
): PreparedResponse {
  const { body } = validResponse(shape, expiresAtMs, graceEndsAtMs)
  const rest = body.length - 1
  const extended = new Uint8Array(rest + ENTITLEMENTS_NAME.length + entitlements.length + 1)
  extended.set(body.subarray(0, rest))
  extended.set(ENTITLEMENTS_NAME, rest)
  extended.set(entitlements, rest + ENTITLEMENTS_NAME.length)
  extended[extended.length - 1] = BRACE
  return okResponse(extended)
}

/**
 * Returns the response for a rejection. `code` is the engine's number. `used` and `max` appear only on v1, in the response for
 * `TOO_MANY_MACHINES`.
 */
export function rejectionResponse(shape: Shape, code: number, used: number, max: number): PreparedResponse {
  const name = CODES[code]
  if (name === 'TOO_MANY_MACHINES' && shape === 'v1') {
    const body: VerdictV1 = { valid: false, code: name, detail: CODE_MESSAGES[name], machines: { used, max } }
    return okResponse(json(body))
  }
  return REJECTIONS[shape][code]!
}

/** The response to a valid license for a gateway. Its headers contain the verdict. */
const AUTHORIZED: PreparedResponse = { ...NO_CONTENT, headers: [['x-keyward-code', 'VALID']] }

/** Returns the response for a gateway. `code` is the engine's number, and `expiresAtMs` is Infinity for an unknown license. */
export function gatewayResponse(code: number, expiresAtMs: number, graceEndsAtMs: number): PreparedResponse {
  const response = REJECTIONS.gateway[code] ?? AUTHORIZED
  if (!Number.isFinite(expiresAtMs)) return response
  const headers = [...response.headers, ['x-keyward-expires', new Date(expiresAtMs).toISOString()] as const]
  if (graceEndsAtMs > 0) headers.push(['x-keyward-grace-ends', new Date(graceEndsAtMs).toISOString()])
  return { ...response, headers }
}

export const DEACTIVATED: Record<'true' | 'false', PreparedResponse> = {
  true: okResponse(json({ deactivated: true } satisfies DeactivateResponse)),
  false: okResponse(json({ deactivated: false } satisfies DeactivateResponse)),
}

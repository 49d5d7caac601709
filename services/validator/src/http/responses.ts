/**
 * Every answer that does not depend on the request, made once as bytes (API document, "Validation response" and "Errors").
 * `valid` stands only in a verdict; every other answer has `{status, message, code}` on v2 and `{code, detail}` elsewhere,
 * so that nobody can read an outage as a refusal.
 */

import { codeMessages } from '@keyward/contract/codes'
import type { ValidationErrorCode } from '@keyward/contract/validation'
import { CODES, type Code } from '@keyward/engine'

import { TIMESTAMP_BYTES, writeTimestamp } from './timestamp.ts'

export type Shape = 'v1' | 'v2'

export type ErrorCode = ValidationErrorCode | 'REQUEST_TIMEOUT'

export interface Answer {
  /** The whole status line behind the version; '' for 200. */
  status: string
  body: Uint8Array
  /** Besides `content-type`. */
  headers: readonly (readonly [name: string, value: string])[]
  closes: boolean
}

interface ErrorText {
  status: string
  text: string
  closes?: boolean
}

export const ERRORS: Record<ErrorCode, ErrorText> = {
  INVALID_REQUEST: { status: '422 Unprocessable Content', text: 'The body is not a valid request.' },
  UNAUTHORIZED: { status: '401 Unauthorized', text: 'A valid API key is required.' },
  PAYLOAD_TOO_LARGE: { status: '413 Content Too Large', text: 'The body is larger than 16 KiB.', closes: true },
  UNAVAILABLE: { status: '503 Service Unavailable', text: 'The service cannot answer right now.' },
  NOT_FOUND: { status: '404 Not Found', text: 'There is no such endpoint.' },
  METHOD_NOT_ALLOWED: { status: '405 Method Not Allowed', text: 'The endpoint does not take this method.' },
  REQUEST_TIMEOUT: { status: '408 Request Timeout', text: 'The request did not arrive in time.', closes: true },
}

const NO_HEADERS: Answer['headers'] = []
const HEADERS: Partial<Record<ErrorCode, Answer['headers']>> = {
  UNAVAILABLE: [['retry-after', '1']],
  UNAUTHORIZED: [['www-authenticate', 'Bearer']],
}

const encoder = new TextEncoder()

function json(value: object): Uint8Array {
  return encoder.encode(JSON.stringify(value))
}

function errorAnswer(shape: Shape, code: ErrorCode): Answer {
  const { status, text, closes } = ERRORS[code]
  const body = shape === 'v2' ? { status: Number.parseInt(status, 10), message: text, code } : { code, detail: text }
  return { status, body: json(body), headers: HEADERS[code] ?? NO_HEADERS, closes: closes ?? false }
}

function errorAnswers(shape: Shape): Record<ErrorCode, Answer> {
  return {
    INVALID_REQUEST: errorAnswer(shape, 'INVALID_REQUEST'),
    UNAUTHORIZED: errorAnswer(shape, 'UNAUTHORIZED'),
    PAYLOAD_TOO_LARGE: errorAnswer(shape, 'PAYLOAD_TOO_LARGE'),
    UNAVAILABLE: errorAnswer(shape, 'UNAVAILABLE'),
    NOT_FOUND: errorAnswer(shape, 'NOT_FOUND'),
    METHOD_NOT_ALLOWED: errorAnswer(shape, 'METHOD_NOT_ALLOWED'),
    REQUEST_TIMEOUT: errorAnswer(shape, 'REQUEST_TIMEOUT'),
  }
}

export const ERROR_ANSWERS: Record<Shape, Record<ErrorCode, Answer>> = {
  v1: errorAnswers('v1'),
  v2: errorAnswers('v2'),
}

function rejection(shape: Shape, code: Code): Answer {
  const message = codeMessages[code]
  return shape === 'v2'
    ? {
        status: '400 Bad Request',
        body: json({ valid: false, status: 400, message, code }),
        headers: NO_HEADERS,
        closes: false,
      }
    : { status: '', body: json({ valid: false, code, detail: message }), headers: NO_HEADERS, closes: false }
}

/** By shape, then by the engine's number of the code. `VALID` is not among them: it carries a timestamp. */
const REJECTIONS: Record<Shape, readonly Answer[]> = {
  v1: CODES.map((code) => rejection('v1', code)),
  v2: CODES.map((code) => rejection('v2', code)),
}

function ok(body: Uint8Array): Answer {
  return { status: '', body, headers: NO_HEADERS, closes: false }
}

function validBody(shape: Shape, expiresAt: string | null): object {
  return shape === 'v2'
    ? { valid: true, status: 200, message: codeMessages.VALID, code: 'VALID', expiresAt }
    : { valid: true, code: 'VALID', expiresAt }
}

interface ValidTemplate {
  answer: Answer
  /** Where the timestamp goes. */
  at: number
  perpetual: Answer
}

function validTemplate(shape: Shape): ValidTemplate {
  const body = json(validBody(shape, '0'.repeat(TIMESTAMP_BYTES)))
  // The timestamp is the last member: behind it come a quote and a brace.
  return { answer: ok(body), at: body.length - 2 - TIMESTAMP_BYTES, perpetual: ok(json(validBody(shape, null))) }
}

const VALID_TEMPLATES: Record<Shape, ValidTemplate> = { v1: validTemplate('v1'), v2: validTemplate('v2') }

/** The answer for a valid license. Its bytes are overwritten by the next call: send them before that. */
export function validAnswer(shape: Shape, expiresAtMs: number): Answer {
  const { answer, at, perpetual } = VALID_TEMPLATES[shape]
  if (expiresAtMs === Infinity) return perpetual
  if (writeTimestamp(expiresAtMs, answer.body, at)) return answer
  return ok(json(validBody(shape, new Date(expiresAtMs).toISOString())))
}

/** The answer for a rejection by the engine's number of its code; `used` and `max` are told on v1, for the machine limit alone. */
export function rejectionAnswer(shape: Shape, code: number, used: number, max: number): Answer {
  const name = CODES[code]
  if (name === 'TOO_MANY_MACHINES' && shape === 'v1')
    return ok(json({ valid: false, code: name, detail: codeMessages[name], machines: { used, max } }))
  return REJECTIONS[shape][code] ?? ERROR_ANSWERS[shape].UNAVAILABLE
}

export const DEACTIVATED: Record<'true' | 'false', Answer> = {
  true: ok(json({ deactivated: true })),
  false: ok(json({ deactivated: false })),
}

export const okAnswer = ok

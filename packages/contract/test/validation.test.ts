import { expect, test } from 'vitest'

import { CODES } from '../src/index.ts'
import {
  deactivateResponse,
  validateBatchRequest,
  validateBatchResponse,
  validationErrorV1,
  validationErrorV2,
  verdictV1,
  verdictV2,
} from '../src/validation.ts'

const MESSAGE = 'The license has expired.'
const EXPIRES_AT = '2027-01-31T00:00:00.000Z'

test.each(CODES)('accepts the verdict %s of v1 and v2 only in the shape of its version', (code) => {
  const isValid = code === 'VALID'
  const v1 = isValid ? { valid: true, code, expiresAt: EXPIRES_AT } : { valid: false, code, detail: MESSAGE }
  const v2 = isValid
    ? { valid: true, status: 200, message: MESSAGE, code, expiresAt: null }
    : { valid: false, status: 400, message: MESSAGE, code }
  expect(verdictV1.parse(v1)).toEqual(v1)
  expect(verdictV2.parse(v2)).toEqual(v2)
  expect(verdictV1.safeParse(v2).success).toBe(false)
  expect(verdictV2.safeParse(v1).success).toBe(false)
  expect(verdictV2.safeParse({ ...v2, valid: !isValid }).success).toBe(false)
  expect(verdictV1.safeParse({ ...v1, rule: 'x' }).success).toBe(false)
})

test('rejects errors with the member valid', () => {
  const v1 = { code: 'UNAVAILABLE', detail: 'x' }
  const v2 = { status: 503, message: 'x', code: 'UNAVAILABLE' }
  expect(validationErrorV1.safeParse(v1).success).toBe(true)
  expect(validationErrorV2.safeParse(v2).success).toBe(true)
  for (const [schema, body] of [
    [validationErrorV1, v1],
    [validationErrorV2, v2],
    [deactivateResponse, { deactivated: true }],
  ] as const)
    expect(schema.safeParse({ ...body, valid: false }).success).toBe(false)
})

test('accepts batches of 1 to 100 checks, whose results are verdicts and errors of v2', () => {
  for (const [count, isBatch] of [
    [0, false],
    [1, true],
    [100, true],
    [101, false],
  ] as const) {
    const checks = Array.from({ length: count }, () => ({ license: 'a' }))
    expect(validateBatchRequest.safeParse({ checks }).success).toBe(isBatch)
    const results = checks.map(() => ({ status: 503, message: 'x', code: 'UNAVAILABLE' }))
    expect(validateBatchResponse.safeParse({ results }).success).toBe(isBatch)
  }
  const rejected = { valid: false, status: 400, message: MESSAGE, code: 'EXPIRED' }
  expect(validateBatchResponse.safeParse({ results: [rejected] }).success).toBe(true)
  expect(validateBatchResponse.safeParse({ results: [{ ...rejected, valid: true }] }).success).toBe(false)
})

import { createAccessRule, createLicense } from '@keyward/contract'
import { expect, test } from 'vitest'
import type { z } from 'zod'

import { checkInput, InputError } from '../src/api/input.ts'

function errorOf(schema: z.ZodType, value: unknown): InputError | null {
  try {
    checkInput(schema, value)
    return null
  } catch (error) {
    if (error instanceof InputError) return error
    throw error
  }
}

const rule = { kind: 'BLACKLIST', type: 'IP', value: '192.0.2.1', scope: 'ORGANIZATION' }

test('accepts a value that the service accepts', () => {
  expect(errorOf(createAccessRule, rule)).toBeNull()
})

test('names each invalid field once, with the message of the service', () => {
  const fields = { ...rule, scope: 'EVERYWHERE', colour: 'red' }
  expect(errorOf(createAccessRule, fields)?.fields).toEqual({
    scope: 'must be one of LICENSE, PRODUCT, ORGANIZATION',
    colour: 'is not known',
  })
  const license = { policy: { type: 'TRIAL' } }
  expect(errorOf(createLicense, license)?.fields).toMatchObject({
    productId: 'is required',
    'policy/expiresAt': 'must be a time for TRIAL, unless durationDays is given',
  })
})

test('has the message of the first invalid field', () => {
  expect(errorOf(createAccessRule, { ...rule, value: '' })?.message).toBe('value must not be empty')
  expect(errorOf(createAccessRule, 'text')?.message).toBe('must be an object')
})

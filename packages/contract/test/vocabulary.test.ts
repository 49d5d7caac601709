import * as engine from '@keyward/engine'
import { expect, expectTypeOf, test } from 'vitest'

import {
  CODE_MESSAGES,
  CODES,
  isOneOf,
  RULE_KINDS,
  RULE_MODES,
  RULE_SCOPES,
  RULE_TYPES,
  STORED_STATUSES,
} from '../src/index.ts'

test('lists the verdict codes in the order of their numbers in the engine', () => {
  expect(CODES).toBe(engine.CODES)
  expect(Object.keys(CODE_MESSAGES)).toEqual(engine.CODES)
})

test('lists every value of the types of the engine', () => {
  expectTypeOf<(typeof CODES)[number]>().toEqualTypeOf<engine.Code>()
  expectTypeOf<(typeof STORED_STATUSES)[number]>().toEqualTypeOf<engine.LicenseStatus>()
  expectTypeOf<(typeof RULE_KINDS)[number]>().toEqualTypeOf<engine.RuleKind>()
  expectTypeOf<(typeof RULE_MODES)[number]>().toEqualTypeOf<engine.RuleMode>()
  expectTypeOf<(typeof RULE_TYPES)[number]>().toEqualTypeOf<engine.RuleType>()
  expectTypeOf<(typeof RULE_SCOPES)[number]>().toEqualTypeOf<engine.RuleScope>()
})

test('lists no value twice', () => {
  for (const words of [CODES, STORED_STATUSES, RULE_KINDS, RULE_MODES, RULE_TYPES, RULE_SCOPES])
    expect(new Set(words).size).toBe(words.length)
})

test('recognizes listed words and rejects similar ones', () => {
  expect(isOneOf(RULE_KINDS, 'BLACKLIST')).toBe(true)
  expect(isOneOf(RULE_KINDS, 'blacklist')).toBe(false)
})

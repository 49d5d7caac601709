/**
 * The words that more than one part of Keyward compares: the verdict codes of a check, the status of a license, and what access
 * rules are made of. The engine imports nothing and has them as types; each list here is checked against its type.
 */

import type * as engine from '@keyward/engine'

/** In the order of the numbers that the engine's verdicts carry (a test compares the two). */
export const CODES = [
  'VALID',
  'NOT_FOUND',
  'BLACKLISTED',
  'REVOKED',
  'SUSPENDED',
  'EXPIRED',
  'FINGERPRINT_REQUIRED',
  'TOO_MANY_MACHINES',
] as const satisfies readonly engine.Code[]

/** The stored statuses. Whether a license has expired is computed (docs/api.md#v9). */
export const STORED_STATUSES = ['active', 'suspended', 'revoked'] as const satisfies readonly engine.LicenseStatus[]

export const RULE_KINDS = ['BLACKLIST', 'EXCLUSION', 'RESTRICTION'] as const satisfies readonly engine.RuleKind[]
export const RULE_MODES = ['ENFORCE', 'MONITOR'] as const satisfies readonly engine.RuleMode[]
export const RULE_TYPES = ['IP', 'HWID', 'COUNTRY', 'CUSTOMER'] as const satisfies readonly engine.RuleType[]
/** The types that a rule of each kind may have. */
export const TYPES_OF_KIND: Record<engine.RuleKind, readonly engine.RuleType[]> = {
  BLACKLIST: RULE_TYPES,
  EXCLUSION: ['IP', 'HWID'],
  RESTRICTION: ['IP', 'HWID', 'COUNTRY'],
}
export const RULE_SCOPES = ['LICENSE', 'PRODUCT', 'ORGANIZATION'] as const satisfies readonly engine.RuleScope[]

/** The most machines of one license, whatever its limit (docs/api.md#s8). The function `claim_slots` has the same number. */
export const MAX_MACHINES = 100_000

/** Whether a text is one of the given words. */
export function isOneOf<T extends string>(words: readonly T[], text: string): text is T {
  return words.some((word) => word === text)
}

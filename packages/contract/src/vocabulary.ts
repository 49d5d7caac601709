/**
 * The constants that several packages share: verdict codes, license statuses, and the fields of access rules. The engine imports nothing, so it
 * defines the codes itself, and the others as types. `satisfies` checks each list against its type.
 */

import type * as engine from '@keyward/engine'

export { CODES } from '@keyward/engine/codes'

/** The stored statuses. The status `expired` is computed (docs/api.md#v9). */
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

/** The maximum number of machines of any license (docs/api.md#s8). The SQL function `claim_slots` contains the same number. */
export const MAX_MACHINES = 100_000

/** The numbers of days before the end of a license at which an event announces the end (docs/api.md#w1). */
export const EXPIRING_DAYS = [30, 7, 1] as const

/** Returns whether a text is one of the given words. */
export function isOneOf<T extends string>(words: readonly T[], text: string): text is T {
  return words.some((word) => word === text)
}

/**
 * The outcomes of a check. The order is the order of the numbers that verdicts carry, so a new code goes to the end.
 */
export const CODES = [
  'VALID',
  'NOT_FOUND',
  'BLACKLISTED',
  'REVOKED',
  'SUSPENDED',
  'EXPIRED',
  'FINGERPRINT_REQUIRED',
  'TOO_MANY_MACHINES',
] as const

export type Code = (typeof CODES)[number]

export const VALID = 0
export const NOT_FOUND = 1
export const BLACKLISTED = 2
export const REVOKED = 3
export const SUSPENDED = 4
export const EXPIRED = 5
export const FINGERPRINT_REQUIRED = 6
export const TOO_MANY_MACHINES = 7

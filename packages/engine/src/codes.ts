/**
 * The codes of verdicts. A verdict contains the number of its code. Counters and recorded checks use that number, so a new
 * code must be appended at the end.
 */

/** Names of the codes, by number. */
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

/** Numbers of the codes, by name. */
export const CODE = {
  VALID: 0,
  NOT_FOUND: 1,
  BLACKLISTED: 2,
  REVOKED: 3,
  SUSPENDED: 4,
  EXPIRED: 5,
  FINGERPRINT_REQUIRED: 6,
  TOO_MANY_MACHINES: 7,
} as const satisfies Record<Code, number>

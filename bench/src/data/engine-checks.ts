/** Defines the kinds of check whose verdicts are timed, and the code that each must return. */

import type { Check } from '@keyward/engine'

import {
  COUNTRY,
  KEY_BYTES,
  MACHINE_BYTES,
  ORGANIZATIONS,
  scatter,
  type Sizes,
  writeKey,
  writeMachine,
} from './engine-rows.ts'

/**
 * Fills in the fields that every kind of check has. Returns the number of the license, which is odd if `withRules` is true, because only
 * odd-numbered organizations have rules.
 */
export function fill(
  check: Check,
  organizations: readonly number[],
  sizes: Sizes,
  n: number,
  withRules: boolean,
): number {
  const license = ((scatter(n) % sizes.licenses) & ~1) | (withRules ? 1 : 0)
  check.organization = organizations[license % ORGANIZATIONS] ?? -1
  writeKey(license, check.licenseKey)
  writeMachine(license, n % sizes.machines, check.machineId)
  check.licenseKeyLength = KEY_BYTES
  check.machineIdLength = MACHINE_BYTES
  check.addressFamily = 4
  check.a0 = (0x20000000 + (scatter(n + 1) >>> 1)) | 0
  check.country = COUNTRY
  return license
}

type Prepare = (check: Check, organizations: readonly number[], sizes: Sizes, n: number) => void

export const KINDS: Record<string, { code: string; prepare: Prepare }> = {
  'known machine, organization without rules': {
    code: 'VALID',
    prepare: (check, organizations, sizes, n) => fill(check, organizations, sizes, n, false),
  },
  'known machine, organization with IP and machine rules': {
    code: 'VALID',
    prepare: (check, organizations, sizes, n) => fill(check, organizations, sizes, n, true),
  },
  'blacklisted address': { code: 'BLACKLISTED', prepare: (...args) => ruled(...args, false) },
  'excluded address': { code: 'VALID', prepare: (...args) => ruled(...args, true) },
  'unknown key': {
    code: 'NOT_FOUND',
    prepare: (check, organizations, sizes, n) => {
      fill(check, organizations, sizes, n, true)
      check.licenseKey[0] = 88
    },
  },
  'new machine': {
    code: 'VALID',
    prepare: (check, organizations, sizes, n) => {
      fill(check, organizations, sizes, n, true)
      check.machineId[0] = 88
    },
  },
}

/** Prepares a check that matches an IPv4 rule of `rules`. */
function ruled(check: Check, organizations: readonly number[], sizes: Sizes, n: number, exclusion: boolean): void {
  let rule = scatter(n) % sizes.rules
  while (rule % 10 >= 6 || rule % 20 === 7 || (rule % 7 === 3) !== exclusion) rule = (rule + 1) % sizes.rules
  const license = (2 * rule + 1) % sizes.licenses
  fill(check, organizations, sizes, n, true)
  check.organization = organizations[license % ORGANIZATIONS] ?? -1
  writeKey(license, check.licenseKey)
  check.a0 = (scatter(rule) >>> 3) | 0
}

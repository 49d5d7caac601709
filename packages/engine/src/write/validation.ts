/**
 * Validates a change without reading the index. A row with an invalid value is rejected with a reason and
 * never stored, because it would lead to wrong verdicts.
 */

import { MAX_VALUE_BYTES } from '../memory/value-set.ts'
import type { AccessRuleRecord, Change, CredentialRecord, LicenseRecord } from '../model.ts'
import { RESTRICTION_TYPES } from '../model.ts'
import { EXTENSION_NUMBERS } from './extension-writer.ts'
import { ID_BYTES, ID_LENGTH, MACHINE_ID_EMPTY, matchError } from './rule-match.ts'

const SECRET_HASH_BYTES = 32
const MAX_COUNT = 0x7fffffff

const ENTITLEMENTS_LENGTH = `entitlements must have 1 to ${MAX_VALUE_BYTES} bytes`
const EXPIRY_NUMBER = 'expiresAtMs must be a number'
const USED_COUNT = `used must be an integer from 0 to ${MAX_COUNT}`
const KINDS: ReadonlySet<string> = new Set<AccessRuleRecord['kind']>(['BLACKLIST', 'EXCLUSION', 'RESTRICTION'])

/** Returns null, or the reason why the change is invalid. */
export function validationError(change: Change): string | null {
  const id = change.entity === 'machine' ? change.licenseId : change.id
  if (id.length !== ID_BYTES) return ID_LENGTH
  switch (change.entity) {
    case 'organization':
    case 'customer':
      return null
    case 'product':
      return change.row === null || isValue(change.row.entitlements) ? null : ENTITLEMENTS_LENGTH
    case 'credential':
      return change.row === null ? null : credentialError(change.row)
    case 'license':
      return change.row === null ? null : licenseError(change.row)
    case 'rule':
      return change.row === null ? null : ruleError(change.row)
    case 'machine':
      if (change.machineId.length === 0) return MACHINE_ID_EMPTY
      return change.used === null || isCount(change.used) ? null : USED_COUNT
    default:
      change satisfies never
      return 'entity is unknown'
  }
}

function credentialError(row: CredentialRecord): string | null {
  if (row.secretHash.length !== SECRET_HASH_BYTES) return `secretHash must have ${SECRET_HASH_BYTES} bytes`
  if (row.productId !== null && row.productId.length !== ID_BYTES) return ID_LENGTH
  return Number.isNaN(row.expiresAtMs) ? EXPIRY_NUMBER : null
}

function licenseError(row: LicenseRecord): string | null {
  if (row.key.length === 0) return 'key must not be empty'
  if (!['active', 'suspended', 'revoked'].includes(row.status)) return 'status must be active, suspended or revoked'
  if (Number.isNaN(row.expiresAtMs)) return EXPIRY_NUMBER
  if (row.maxMachines !== null && !isCount(row.maxMachines))
    return `maxMachines must be null or an integer from 0 to ${MAX_COUNT}`
  if (!isValue(row.entitlements)) return ENTITLEMENTS_LENGTH
  for (const { name } of EXTENSION_NUMBERS) {
    const value = row[name]
    if (value !== null && (!isCount(value) || value === 0))
      return `${name} must be null or an integer from 1 to ${MAX_COUNT}`
  }
  return isCount(row.used) ? null : USED_COUNT
}

function ruleError(row: AccessRuleRecord): string | null {
  if (Number.isNaN(row.expiresAtMs)) return EXPIRY_NUMBER
  if (!KINDS.has(row.kind)) return 'kind must be BLACKLIST, EXCLUSION or RESTRICTION'
  if (row.mode !== 'ENFORCE' && row.mode !== 'MONITOR') return 'mode must be ENFORCE or MONITOR'
  if (row.scope === 'ORGANIZATION' ? row.scopeId !== null : row.scopeId?.length !== ID_BYTES) {
    return 'scopeId must be null in the scope ORGANIZATION, and an id in the others'
  }
  if (row.kind === 'RESTRICTION' && !RESTRICTION_TYPES.some((type) => type === row.type))
    return 'a restriction must have the type IP, HWID or COUNTRY'
  return matchError(row)
}

function isValue(value: Uint8Array | null): boolean {
  return value === null || (value.length > 0 && value.length <= MAX_VALUE_BYTES)
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= MAX_COUNT
}

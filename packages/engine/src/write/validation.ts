/**
 * Validation of a change by itself, before the index is consulted. A row with a bad value is rejected with a reason here
 * and never stored, because a check would get a wrong verdict from it.
 */

import { MAX_VALUE_BYTES } from '../memory/value-set.ts'
import type { AccessRuleRecord, Change, CredentialRecord, LicenseRecord, Network } from '../model.ts'

const ID_BYTES = 16
const SECRET_HASH_BYTES = 32
const MAX_COUNT = 0x7fffffff

const ID_LENGTH = `an id must have ${ID_BYTES} bytes`
const ENTITLEMENTS_LENGTH = `entitlements must have 1 to ${MAX_VALUE_BYTES} bytes`
const EXPIRY_NUMBER = 'expiresAtMs must be a number'
const USED_COUNT = `used must be an integer from 0 to ${MAX_COUNT}`
const KINDS: ReadonlySet<string> = new Set<AccessRuleRecord['kind']>(['BLACKLIST', 'EXCLUSION', 'RESTRICTION'])
const MACHINE_ID_EMPTY = 'machineId must not be empty'

/** Returns the reason for which the change is invalid, or null. */
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
  return isCount(row.used) ? null : USED_COUNT
}

function ruleError(row: AccessRuleRecord): string | null {
  if (Number.isNaN(row.expiresAtMs)) return EXPIRY_NUMBER
  if (!KINDS.has(row.kind)) return 'kind must be BLACKLIST, EXCLUSION or RESTRICTION'
  if (row.mode !== 'ENFORCE' && row.mode !== 'MONITOR') return 'mode must be ENFORCE or MONITOR'
  if (row.scope === 'ORGANIZATION' ? row.scopeId !== null : row.scopeId?.length !== ID_BYTES) {
    return 'scopeId must be null in the scope ORGANIZATION, and an id in the others'
  }
  switch (row.type) {
    case 'IP':
      return networkError(row.network)
    case 'HWID':
      return row.machineId.length === 0 ? MACHINE_ID_EMPTY : null
    case 'COUNTRY':
      return /^[A-Z]{2}$/.test(row.country) ? null : 'country must be two letters from A to Z'
    case 'CUSTOMER':
      if (row.kind === 'RESTRICTION') return 'a restriction must have the type IP, HWID or COUNTRY'
      return row.customerId.length === ID_BYTES ? null : ID_LENGTH
    default:
      row satisfies never
      return 'type is unknown'
  }
}

function networkError(network: Network): string | null {
  const { words, prefixLength } = network
  if (words.length !== (network.family === 4 ? 1 : 4))
    return 'network.words must be one word for IPv4 and four for IPv6'
  if (!Number.isInteger(prefixLength) || prefixLength < 0 || prefixLength > 32 * words.length) {
    return 'network.prefixLength must be an integer from 0 to 32 for IPv4 and to 128 for IPv6'
  }
  const hostBitsSet = words.some((word, i) => {
    const bits = Math.min(Math.max(prefixLength - 32 * i, 0), 32)
    return bits < 32 && word << bits !== 0
  })
  return hostBitsSet ? 'network must not have host bits set' : null
}

function isValue(value: Uint8Array | null): boolean {
  return value === null || (value.length > 0 && value.length <= MAX_VALUE_BYTES)
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= MAX_COUNT
}

/**
 * What is wrong with a change in itself, before the index is looked at. The index takes no row that it could not
 * answer for, so a bad one is refused here with a reason instead of being stored as something else.
 */
import type { AccessRuleRecord, Change, CredentialRecord, LicenseRecord, Network } from '../model.ts'

const ID_BYTES = 16
const SECRET_HASH_BYTES = 32
const MAX_COUNT = 0x7fffffff

/** Null: nothing is wrong. */
export function faultOf(change: Change): string | null {
  const id = change.entity === 'machine' ? change.licenseId : change.id
  if (id.length !== ID_BYTES) return 'an id is not 16 bytes long'
  switch (change.entity) {
    case 'organization':
    case 'product':
    case 'customer':
      return null
    case 'credential':
      return change.row === null ? null : credentialFault(change.row)
    case 'license':
      return change.row === null ? null : licenseFault(change.row)
    case 'rule':
      return change.row === null ? null : ruleFault(change.row)
    case 'machine':
      if (change.machineId.length === 0) return 'a machine id is empty'
      return change.used === null || isCount(change.used) ? null : 'the used count is not a count'
    default:
      return unknownEntity(change)
  }
}

function credentialFault(row: CredentialRecord): string | null {
  if (row.secretHash.length !== SECRET_HASH_BYTES) return 'the hash of the secret is not 32 bytes long'
  return Number.isNaN(row.expiresAtMs) ? 'the expiry is not a time' : null
}

function licenseFault(row: LicenseRecord): string | null {
  if (row.key.length === 0) return 'the license key is empty'
  if (!['active', 'suspended', 'revoked'].includes(row.status)) return 'the status is unknown'
  if (Number.isNaN(row.expiresAtMs)) return 'the expiry is not a time'
  if (row.maxMachines !== null && !isCount(row.maxMachines)) return 'the machine limit is not a count'
  return isCount(row.used) ? null : 'the used count is not a count'
}

function ruleFault(row: AccessRuleRecord): string | null {
  if (Number.isNaN(row.expiresAtMs)) return 'the expiry is not a time'
  if (row.kind !== 'BLACKLIST' && row.kind !== 'EXCLUSION') return 'the kind is unknown'
  if (row.scope === 'ORGANIZATION' ? row.scopeId !== null : row.scopeId?.length !== ID_BYTES) {
    return 'the scope id does not fit the scope'
  }
  switch (row.type) {
    case 'IP':
      return networkFault(row.network)
    case 'HWID':
      return row.machineId.length === 0 ? 'a machine id is empty' : null
    case 'COUNTRY':
      return /^[A-Z]{2}$/.test(row.country) ? null : 'the country is not two capital letters'
    case 'CUSTOMER':
      return row.customerId.length === ID_BYTES ? null : 'an id is not 16 bytes long'
    default:
      return unknownType(row)
  }
}

function networkFault(network: Network): string | null {
  const { words, prefixLength } = network
  if (words.length !== (network.family === 4 ? 1 : 4)) return 'the network is not an address'
  if (!Number.isInteger(prefixLength) || prefixLength < 0 || prefixLength > 32 * words.length) {
    return 'the prefix length does not fit the address'
  }
  const hostBitsSet = words.some((word, i) => {
    const bits = Math.min(Math.max(prefixLength - 32 * i, 0), 32)
    return bits < 32 && word << bits !== 0
  })
  return hostBitsSet ? 'the network has host bits' : null
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= MAX_COUNT
}

function unknownEntity(_change: never): string {
  return 'the entity is unknown'
}

function unknownType(_row: never): string {
  return 'the type of the rule is unknown'
}

/**
 * Converts rows of the change feed to changes of the engine. Only this file checks the text fields of a row: status, kind, mode, scope,
 * type and value. An unreadable row is reported, and its entity is removed from the index. The report contains no content of the row. The
 * other rows are applied.
 */

import { readRuleMatch } from '@keyward/address'
import {
  isOneOf,
  MAX_MACHINES,
  RULE_KINDS,
  RULE_MODES,
  RULE_SCOPES,
  RULE_TYPES,
  STORED_STATUSES,
} from '@keyward/contract/vocabulary'
import type { FeedChange, LicenseRow, RuleRow } from '@keyward/database'
import { toHex } from '@keyward/database/ids'
import type { AccessRuleRecord, Change, LicenseRecord } from '@keyward/engine'

import type { SigningKeyChange } from '../public-keys/store.ts'

/** A row that the index lacks, because it is unreadable or does not fit. `id` is in hexadecimal. */
export interface SkippedRow {
  entity: string
  id: string
  reason: string
}

interface Converted {
  changes: Change[]
  signingKeys: SigningKeyChange[]
  unreadable: SkippedRow[]
}

/** Returns the changes to apply, in the given order, and the unreadable rows. */
export function convertChanges(changes: readonly FeedChange[]): Converted {
  const converted: Converted = { changes: [], signingKeys: [], unreadable: [] }
  for (const change of changes) convertOne(change, converted)
  return converted
}

function convertOne(change: FeedChange, into: Converted): void {
  switch (change.entity) {
    case 'license': {
      const row = change.row === null ? null : readLicense(change.row)
      if (typeof row === 'string') report(change, row, into)
      into.changes.push({ entity: 'license', id: change.id, row: typeof row === 'string' ? null : row })
      return
    }
    case 'rule': {
      const row = change.row === null ? null : readRule(change.row)
      if (typeof row === 'string') report(change, row, into)
      into.changes.push({ entity: 'rule', id: change.id, row: typeof row === 'string' ? null : row })
      return
    }
    case 'signingKey':
      into.signingKeys.push(change)
      return
    case 'organization':
    case 'credential':
    case 'product':
    case 'customer':
    case 'machine':
      into.changes.push(change)
      return
    default:
      change satisfies never
  }
}

function report({ entity, id }: { entity: string; id: Uint8Array }, reason: string, into: Converted): void {
  into.unreadable.push({ entity, id: toHex(id), reason })
}

/** Returns the record, or the reason why the row is unreadable. */
function readLicense(row: LicenseRow): LicenseRecord | string {
  if (!isReadable(row)) return 'its status is unknown'
  return row.maxMachines !== null && row.maxMachines > MAX_MACHINES ? { ...row, maxMachines: MAX_MACHINES } : row
}

function isReadable(row: LicenseRow): row is LicenseRecord {
  return isOneOf(STORED_STATUSES, row.status)
}

/** Returns the record, or the reason why the row is unreadable. */
function readRule(row: RuleRow): AccessRuleRecord | string {
  const { id, organizationId, kind, mode, type, scope, scopeId, expiresAtMs, allowSuspendedOrExpired } = row
  if (!isOneOf(RULE_KINDS, kind)) return 'its kind is unknown'
  if (!isOneOf(RULE_MODES, mode)) return 'its mode is unknown'
  if (!isOneOf(RULE_SCOPES, scope)) return 'its scope is unknown'
  if (!isOneOf(RULE_TYPES, type)) return 'its type is unknown'
  const match = readRuleMatch(type, row.value, row.customerId)
  if (typeof match === 'string') return match
  return { id, organizationId, kind, mode, scope, scopeId, expiresAtMs, allowSuspendedOrExpired, ...match }
}

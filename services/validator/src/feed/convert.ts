/**
 * From what the change log hands on to what the engine is told. A row that cannot be read (a bad range, an unknown word) is
 * set aside with a reason that holds none of its content; the rest goes on.
 */

import { parseCountryCode, parseNetwork } from '@keyward/address'
import type { FeedChange, RuleRow } from '@keyward/database'
import { toHex } from '@keyward/database/ids'
import type { AccessRuleRecord, Change, RuleMatch } from '@keyward/engine'

import type { SigningKeyChange } from '../public-keys/store.ts'

/** A row that is skipped: what kind it is, its id, and why. */
export interface Poison {
  entity: string
  id: string
  reason: string
}

export interface Converted {
  changes: Change[]
  signingKeys: SigningKeyChange[]
  poison: Poison[]
}

const text = new TextDecoder('utf-8', { fatal: true })

function readMatch(row: RuleRow): RuleMatch | string {
  switch (row.type) {
    case 'IP': {
      const network = parseNetwork(text.decode(row.value))
      return network ? { type: 'IP', network } : 'its value is no address or range'
    }
    case 'HWID':
      return { type: 'HWID', machineId: row.value }
    case 'COUNTRY': {
      const country = parseCountryCode(text.decode(row.value))
      return country === null ? 'its value is no country' : { type: 'COUNTRY', country }
    }
    case 'CUSTOMER':
      return row.customerId ? { type: 'CUSTOMER', customerId: row.customerId } : 'it names no customer'
    default:
      return 'its type is unknown'
  }
}

function convertRule(row: RuleRow): AccessRuleRecord | string {
  let match: RuleMatch | string
  try {
    match = readMatch(row)
  } catch {
    match = 'its value is not UTF-8'
  }
  if (typeof match === 'string') return match
  const { id, organizationId, kind, scope, scopeId, expiresAtMs, allowSuspendedOrExpired } = row
  return { id, organizationId, kind, scope, scopeId, expiresAtMs, allowSuspendedOrExpired, ...match }
}

function convertOne(change: FeedChange, into: Converted): void {
  switch (change.entity) {
    case 'rule': {
      const record = change.row === null ? null : convertRule(change.row)
      if (typeof record !== 'string') into.changes.push({ entity: 'rule', id: change.id, row: record })
      else {
        into.poison.push({ entity: 'rule', id: toHex(change.id), reason: record })
        // What the rule was before no longer holds.
        into.changes.push({ entity: 'rule', id: change.id, row: null })
      }
      return
    }
    case 'signingKey':
      into.signingKeys.push({ id: change.id, row: change.row })
      return
    case 'unreadable':
      into.poison.push({ entity: change.of, id: toHex(change.id), reason: change.reason })
      // As after a restart, which would not load it either.
      if (change.of === 'signingKey') into.signingKeys.push({ id: change.id, row: null })
      else into.changes.push({ entity: change.of, id: change.id, row: null })
      return
    case 'organization':
    case 'credential':
    case 'product':
    case 'customer':
    case 'license':
    case 'machine':
      into.changes.push(change)
      return
    default:
      change satisfies never
  }
}

export function convertChanges(changes: readonly FeedChange[]): Converted {
  const converted: Converted = { changes: [], signingKeys: [], poison: [] }
  for (const change of changes) convertOne(change, converted)
  return converted
}

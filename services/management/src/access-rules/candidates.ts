/**
 * The rules that could match one check, found by exact look-ups alone: for an address, every canonical prefix that covers it, so
 * that one unique index answers whatever the number of rules.
 */
import { formatNetwork, type Network, packCountry, parseNetwork } from '@keyward/address'
import { uuidToBytes } from '@keyward/database'
import type { AccessRuleRecord } from '@keyward/engine'
import { sql } from 'kysely'

import type { LicenseRow } from '../licenses/show.ts'
import type { Db } from '../services.ts'
import { type RuleRow, selectRules } from './show.ts'

/** What a check brings beside the license. */
export interface Circumstances {
  /** A single address, as `parseNetwork` gives it. */
  address: Network | null
  machineId: string | null
  country: string | null
}

/** Every network that covers the address, as canonical text. */
export function coveringPrefixes(address: Network): string[] {
  const text = formatNetwork(address)
  return Array.from({ length: address.prefixLength + 1 }, (_, prefixLength) => {
    const network = parseNetwork(`${text}/${prefixLength}`)
    if (!network) throw new Error('A prefix of an address is a network')
    return formatNetwork(network)
  })
}

function valuesOf(
  license: LicenseRow,
  { address, machineId, country }: Circumstances,
): { type: string; value: Buffer }[] {
  const prefixes = address ? coveringPrefixes(address) : []
  return [
    ...prefixes.map((prefix) => ({ type: 'IP', value: prefix })),
    ...(machineId === null ? [] : [{ type: 'HWID', value: machineId }]),
    ...(country === null ? [] : [{ type: 'COUNTRY', value: country }]),
    { type: 'CUSTOMER', value: license.customerId },
  ].map(({ type, value }) => ({ type, value: Buffer.from(value) }))
}

export async function findCandidates(
  db: Db,
  organizationId: string,
  license: LicenseRow,
  circumstances: Circumstances,
): Promise<RuleRow[]> {
  const values = valuesOf(license, circumstances)
  const same = sql`r.organization_id = ${organizationId} and r.kind = k.kind and r.type = v.type and r.value = v.value`
  const { rows } = await sql<{ id: string }>`
    select t.id
    from unnest(array['BLACKLIST', 'EXCLUSION']) k (kind)
    cross join unnest(${values.map((one) => one.type)}::text[], ${values.map((one) => one.value)}::bytea[]) v (type, value)
    cross join lateral (
      select r.id from access_rules r where ${same} and r.scope = 'LICENSE' and r.scope_id = ${license.id}
      union all
      select r.id from access_rules r where ${same} and r.scope = 'PRODUCT' and r.scope_id = ${license.productId}
      union all
      select r.id from access_rules r where ${same} and r.scope = 'ORGANIZATION' and r.scope_id is null
    ) t`.execute(db)
  if (rows.length === 0) return []
  return selectRules(db, organizationId)
    .where(
      'accessRules.id',
      'in',
      rows.map((row) => row.id),
    )
    .orderBy('accessRules.id')
    .execute()
}

function matchOf(type: RuleRow['type'], value: Buffer) {
  switch (type) {
    case 'IP': {
      const network = parseNetwork(value.toString('utf8'))
      if (!network) throw new Error('A stored IP rule has no canonical value')
      return { type, network } as const
    }
    case 'HWID':
      return { type, machineId: value } as const
    case 'COUNTRY':
      return { type, country: value.toString('utf8') } as const
    case 'CUSTOMER':
      return { type, customerId: uuidToBytes(value.toString('utf8')) } as const
    default:
      return type satisfies never
  }
}

/** The rule as the engine knows it. */
export function toRecord(row: RuleRow, organizationId: Uint8Array): AccessRuleRecord {
  const { id, kind, scope, scopeId, allowSuspendedOrExpired } = row
  return {
    id: uuidToBytes(id),
    organizationId,
    kind,
    scope,
    scopeId: scopeId === null ? null : uuidToBytes(scopeId),
    expiresAtMs: row.expiresAt?.getTime() ?? Infinity,
    allowSuspendedOrExpired,
    ...matchOf(row.type, row.value),
  }
}

/** `0` for unknown, as the engine has it. */
export function countryNumber(country: string | null): number {
  return country === null ? 0 : packCountry(country)
}

/**
 * Reads the rules that could match one check, with index lookups, so the time does not depend on the number of rules. No statement
 * contains the address or country of an app, because Postgres may log statements: they are sent masked (mask.ts). If a pooler has
 * removed the key of the mask, the rules of all countries and of all addresses with the same beginning are read instead.
 */

import { type Address, contains, formatNetwork, type Network, packCountry, parseNetwork } from '@keyward/address'
import { uuidToBytes } from '@keyward/database'
import type { AccessRuleRecord } from '@keyward/engine'
import { type RawBuilder, sql } from 'kysely'

import type { ReadContext } from '../http/context.ts'
import { type RuleRow, selectRules } from '../resources/access-rules/rows.ts'
import type { LicenseRow } from '../resources/licenses/rows.ts'
import { hasMask, maskedValues } from './mask.ts'

/** The input of a check beside the license. */
export interface Circumstances {
  /** A single address, as `parseNetwork` returns it. */
  address: Network | null
  machineId: string | null
  country: string | null
}

/** The bits of an address that a statement may contain. They identify a region or a provider, not a caller. */
const SENT_BITS = { 4: 8, 6: 32 }

/** Returns every network that contains the address, up to a prefix length, as canonical text. */
export function coveringPrefixes(address: Network, longest: number = address.prefixLength): string[] {
  const text = formatNetwork(address)
  return Array.from({ length: longest + 1 }, (_, prefixLength) => {
    const network = parseNetwork(`${text}/${prefixLength}`)
    if (!network) throw new Error('the prefix of an address is not a network')
    return formatNetwork(network)
  })
}

/** Returns the beginnings of the canonical texts of all longer networks that contain the address. */
export function beginnings(address: Network): string[] {
  if (address.family === 4) return [`${address.words[0] >>> 24}.`]
  const [first, second] = [address.words[0] >>> 16, address.words[0] & 0xffff].map((group) => group.toString(16))
  if (first === '0') return ['::', '0:']
  return second === '0' ? [`${first}::`, `${first}:0:`] : [`${first}:${second}:`]
}

/** The values of a type from `from` (included) to `to` (excluded). */
interface Span {
  type: string
  from: Buffer
  to: Buffer
}

function only(type: string, value: string): Span {
  return { type, from: Buffer.from(value), to: Buffer.from(`${value}\0`) }
}

function beginningWith(type: string, text: string): Span {
  const to = text.slice(0, -1) + String.fromCharCode(text.charCodeAt(text.length - 1) + 1)
  return { type, from: Buffer.from(text), to: Buffer.from(to) }
}

/** Returns the values that a statement may contain. */
function openSpans(license: LicenseRow, { machineId }: Circumstances): Span[] {
  return [...(machineId === null ? [] : [only('HWID', machineId)]), only('CUSTOMER', license.customerId)]
}

/** Returns ranges that contain the searched values without revealing them. */
function wideSpans({ address, country }: Circumstances): Span[] {
  return [
    ...(address ? coveringPrefixes(address, SENT_BITS[address.family]).map((prefix) => only('IP', prefix)) : []),
    ...(address ? beginnings(address).map((text) => beginningWith('IP', text)) : []),
    ...(country === null ? [] : [{ type: 'COUNTRY', from: Buffer.from('A'), to: Buffer.from('[') }]),
  ]
}

/** Returns exactly the searched values, masked, as rows of spans. */
function maskedSpans({ address, country }: Circumstances): RawBuilder<unknown> {
  const prefixes = maskedValues(address ? coveringPrefixes(address) : [])
  const countries = maskedValues(country === null ? [] : [country])
  return sql`
    union all select 'IP', value, value || '\\x00'::bytea from ${prefixes} p
    union all select 'COUNTRY', value, value || '\\x00'::bytea from ${countries} c`
}

/** Returns the searched spans as rows `(type, low, high)`. */
async function searchedSpans(
  { db }: ReadContext,
  license: LicenseRow,
  circumstances: Circumstances,
): Promise<RawBuilder<unknown>> {
  const { rows } = await sql<{ masked: boolean }>`select ${hasMask} as masked`.execute(db)
  const masked = rows[0]?.masked === true
  const spans = [...openSpans(license, circumstances), ...(masked ? [] : wideSpans(circumstances))]
  return sql`(
    select * from unnest(${spans.map((span) => span.type)}::text[], ${spans.map((span) => span.from)}::bytea[],
      ${spans.map((span) => span.to)}::bytea[]) as s (type, low, high)
    ${masked ? maskedSpans(circumstances) : sql``}
  )`
}

export async function findCandidates(
  context: ReadContext,
  license: LicenseRow,
  circumstances: Circumstances,
): Promise<RuleRow[]> {
  const spans = await searchedSpans(context, license, circumstances)
  const { db, organizationId } = context
  const same = sql`r.organization_id = ${organizationId} and r.kind = k.kind and r.type = v.type and r.value >= v.low and r.value < v.high`
  const { rows } = await sql<{ id: string; type: RuleRow['type']; value: Buffer }>`
    select distinct t.id, t.type, t.value
    from unnest(array['BLACKLIST', 'EXCLUSION']) k (kind)
    cross join ${spans} v
    cross join lateral (
      select r.id, r.type, r.value from access_rules r where ${same} and r.scope = 'LICENSE' and r.scope_id = ${license.id}
      union all
      select r.id, r.type, r.value from access_rules r where ${same} and r.scope = 'PRODUCT' and r.scope_id = ${license.productId}
      union all
      select r.id, r.type, r.value from access_rules r where ${same} and r.scope = 'ORGANIZATION' and r.scope_id is null
    ) t`.execute(db)
  const near = rows.filter(({ type, value }) => couldMatch(matchOf(type, value), circumstances))
  if (near.length === 0) return []
  return selectRules(context)
    .where(
      'accessRules.id',
      'in',
      near.map((row) => row.id),
    )
    .orderBy('accessRules.id')
    .execute()
}

function matchOf(type: RuleRow['type'], value: Buffer) {
  switch (type) {
    case 'IP': {
      const network = parseNetwork(value.toString('utf8'))
      if (!network) throw new Error('the stored value of an IP rule is not canonical')
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

export function toAddress({ family, words }: Network): Address {
  const [a0 = 0, a1 = 0, a2 = 0, a3 = 0] = words
  return { addressFamily: family, a0, a1, a2, a3 }
}

/** Filters the rules of a wide range, which contains rules that cannot match. */
function couldMatch(match: ReturnType<typeof matchOf>, { address, country }: Circumstances): boolean {
  switch (match.type) {
    case 'IP':
      return address !== null && contains(match.network, toAddress(address))
    case 'COUNTRY':
      return match.country === country
    case 'HWID':
    case 'CUSTOMER':
      return true
    default:
      return match satisfies never
  }
}

/** Returns the rule as a record of the engine. */
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

/** Returns the engine's number of a country, 0 for an unknown one. */
export function countryNumber(country: string | null): number {
  return country === null ? 0 : packCountry(country)
}

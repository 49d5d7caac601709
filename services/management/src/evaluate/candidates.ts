/**
 * The rules that could match one check, found by an index whatever the number of rules. An
 * app's address and country are in no statement that Postgres may log: they go over masked (mask.ts). Where a pooler has dropped the
 * key to that, Postgres is asked for the rules of all countries, and for those of all addresses that begin as this one does.
 */
import { type Address, contains, formatNetwork, type Network, packCountry, parseNetwork } from '@keyward/address'
import { uuidToBytes } from '@keyward/database'
import type { AccessRuleRecord } from '@keyward/engine'
import { type RawBuilder, sql } from 'kysely'

import type { ReadContext } from '../http/context.ts'
import { type RuleRow, selectRules } from '../resources/access-rules/rows.ts'
import type { LicenseRow } from '../resources/licenses/rows.ts'
import { hasMask, maskedValues } from './mask.ts'

/** What a check brings beside the license. */
export interface Circumstances {
  /** A single address, as `parseNetwork` gives it. */
  address: Network | null
  machineId: string | null
  country: string | null
}

/** How much of an address Postgres may see: as much as tells a region or a provider, not a caller. */
const shownBits = { 4: 8, 6: 32 }

/** Every network that covers the address and is at most so long, as canonical text. */
export function coveringPrefixes(address: Network, longest: number = address.prefixLength): string[] {
  const text = formatNetwork(address)
  return Array.from({ length: longest + 1 }, (_, prefixLength) => {
    const network = parseNetwork(`${text}/${prefixLength}`)
    if (!network) throw new Error('A prefix of an address is a network')
    return formatNetwork(network)
  })
}

/** How the canonical texts of all longer networks around the address begin. */
export function beginnings(address: Network): string[] {
  if (address.family === 4) return [`${address.words[0] >>> 24}.`]
  const [first, second] = [address.words[0] >>> 16, address.words[0] & 0xffff].map((group) => group.toString(16))
  if (first === '0') return ['::', '0:']
  return second === '0' ? [`${first}::`, `${first}:0:`] : [`${first}:${second}:`]
}

/** Values of a type, from one on and up to another that is not meant. */
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

/** What may be said openly. */
function openSpans(license: LicenseRow, { machineId }: Circumstances): Span[] {
  return [...(machineId === null ? [] : [only('HWID', machineId)]), only('CUSTOMER', license.customerId)]
}

/** More than what is looked for, so that it does not tell what that is. */
function wideSpans({ address, country }: Circumstances): Span[] {
  return [
    ...(address ? coveringPrefixes(address, shownBits[address.family]).map((prefix) => only('IP', prefix)) : []),
    ...(address ? beginnings(address).map((text) => beginningWith('IP', text)) : []),
    ...(country === null ? [] : [{ type: 'COUNTRY', from: Buffer.from('A'), to: Buffer.from('[') }]),
  ]
}

/** Exactly what is looked for, as rows of spans that no statement holds. */
function maskedSpans({ address, country }: Circumstances): RawBuilder<unknown> {
  const prefixes = maskedValues(address ? coveringPrefixes(address) : [])
  const countries = maskedValues(country === null ? [] : [country])
  return sql`
    union all select 'IP', value, value || '\\x00'::bytea from ${prefixes} p
    union all select 'COUNTRY', value, value || '\\x00'::bytea from ${countries} c`
}

/** Rows `(type, low, high)`. */
async function lookedFor(
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
  const spans = await lookedFor(context, license, circumstances)
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

export function toAddress({ family, words }: Network): Address {
  const [a0 = 0, a1 = 0, a2 = 0, a3 = 0] = words
  return { addressFamily: family, a0, a1, a2, a3 }
}

/** Of a rule that was asked for by more than its value: leaves out what is far from matching. */
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

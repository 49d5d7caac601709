/**
 * Estimates how many checks of the last day would have been rejected if monitored rules had been enforced (docs/api.md#r11). Addresses of
 * checks are never stored, so the estimate compares the numbers of matches with the numbers of checks.
 */

import type { AccessRule, LastDay } from '@keyward/contract'
import { sql } from 'kysely'

import type { ReadContext } from '../../context.ts'
import { hiddenOrganization } from '../../crud/hidden-organization.ts'

const HOUR_MS = 3_600_000

/** The monitored rules of one scope. */
interface Group extends Pick<AccessRule, 'scope' | 'scopeId'> {
  rules: AccessRule[]
}

const keyOf = ({ scope, scopeId }: Pick<AccessRule, 'scope' | 'scopeId'>): string => `${scope} ${scopeId}`
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

export async function estimateLastDay(context: ReadContext, rules: readonly AccessRule[]): Promise<LastDay> {
  const nowMs = Date.now()
  const monitored = rules.filter(
    ({ kind, mode, expiresAt }) =>
      kind !== 'EXCLUSION' && mode === 'MONITOR' && (expiresAt === null || Date.parse(expiresAt) > nowMs),
  )
  // Counts are stored by hour. Before the last change of a rule, it may not have counted its matches.
  const sinceMs = monitored.reduce((latest, rule) => Math.max(latest, Date.parse(rule.updatedAt)), nowMs - 24 * HOUR_MS)
  const from = new Date(Math.ceil(sinceMs / HOUR_MS) * HOUR_MS)
  const groups = [...Map.groupBy(monitored, keyOf).values()].map((list): Group => {
    const { scope, scopeId } = list[0]!
    return { scope, scopeId, rules: list }
  })
  const all = await checksSince(context, from)
  const [byProduct, byLicense] = [
    await checksOfProducts(context, from),
    await checksOfLicenses(
      context,
      from,
      groups.flatMap(({ scope, scopeId }) => (scope === 'LICENSE' && scopeId !== null ? [scopeId] : [])),
    ),
  ]
  const matches = await matchesSince(context, from, monitored)
  const restricted = await restrictedTypes(context, groups)
  const rejected = groups.map((group) => {
    const id = group.scopeId ?? ''
    const checks = { ORGANIZATION: all, PRODUCT: byProduct.get(id) ?? 0, LICENSE: byLicense.get(id) ?? 0 }[group.scope]
    const matchedBy = (list: readonly AccessRule[]) => sum(list.map((rule) => matches.get(rule.id) ?? 0))
    const restrictions = Map.groupBy(
      group.rules.filter(({ kind }) => kind === 'RESTRICTION'),
      ({ type }) => type,
    )
    const unmatched = Array.from(restrictions, ([type, list]) =>
      // A scope that restricts the type already rejects all other checks. Further restrictions of the type allow more checks.
      restricted.has(`${keyOf(group)} ${type}`) ? 0 : Math.max(0, checks - matchedBy(list)),
    )
    return Math.min(checks, matchedBy(group.rules.filter(({ kind }) => kind === 'BLACKLIST')) + sum(unmatched))
  })
  return { from: from.toISOString(), checks: all, rejected: Math.min(all, sum(rejected)) }
}

/** Returns the number of checks with a known license key. */
async function checksSince({ db, organizationId }: ReadContext, from: Date): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select coalesce(sum(count), 0)::bigint as count from check_counts
    where organization_id = ${organizationId} and hour >= ${from} and code <> 'NOT_FOUND'`.execute(db)
  return rows[0]?.count ?? 0
}

async function checksOfProducts({ db, organizationId }: ReadContext, from: Date): Promise<Map<string, number>> {
  const { rows } = await sql<{ id: string; count: number }>`
    select product_id as id, sum(count)::bigint as count from check_counts
    where organization_id = ${organizationId} and hour >= ${from} and product_id is not null group by 1`.execute(db)
  return new Map(rows.map(({ id, count }) => [id, count]))
}

async function checksOfLicenses(
  { db, organizationId }: ReadContext,
  from: Date,
  ids: readonly string[],
): Promise<Map<string, number>> {
  if (ids.length === 0) return new Map()
  const { rows } = await sql<{ id: string; count: number }>`
    select license_id as id, sum(count)::bigint as count from activity
    where license_id = any(${ids}::uuid[]) and organization_id = ${hiddenOrganization(organizationId)} and type = 'CHECK' and at >= ${from}
    group by 1`.execute(db)
  return new Map(rows.map(({ id, count }) => [id, count]))
}

async function matchesSince(
  { db }: ReadContext,
  from: Date,
  rules: readonly AccessRule[],
): Promise<Map<string, number>> {
  const { rows } = await sql<{ id: string; count: number }>`
    select rule_id as id, sum(count)::bigint as count from monitored_matches
    where rule_id = any(${rules.map(({ id }) => id)}::uuid[]) and hour >= ${from} group by 1`.execute(db)
  return new Map(rows.map(({ id, count }) => [id, count]))
}

/** Returns the types that each scope restricts already, as `SCOPE id TYPE`. */
async function restrictedTypes({ db, organizationId }: ReadContext, groups: readonly Group[]): Promise<Set<string>> {
  const wanted = groups.flatMap((group) => {
    const types = new Set(group.rules.filter(({ kind }) => kind === 'RESTRICTION').map(({ type }) => type))
    return Array.from(types, (type) => ({ key: `${keyOf(group)} ${type}`, type, group }))
  })
  const { rows } = await sql<{ key: string }>`
    select w.key from unnest(${wanted.map(({ key }) => key)}::text[], ${wanted.map(({ type }) => type)}::text[],
      ${wanted.map(({ group }) => group.scope)}::text[], ${wanted.map(({ group }) => group.scopeId)}::uuid[]) as w (key, type, scope, scope_id)
    where exists (
      select from access_rules r
      where r.organization_id = ${hiddenOrganization(organizationId)} and r.kind = 'RESTRICTION' and r.mode = 'ENFORCE'
        and r.type = w.type and r.scope = w.scope and r.scope_id is not distinct from w.scope_id
        and (r.expires_at is null or r.expires_at > now())
    )`.execute(db)
  return new Set(rows.map(({ key }) => key))
}

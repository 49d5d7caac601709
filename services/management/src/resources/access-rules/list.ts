/**
 * Lists access rules by filter and order (docs/api.md#r10). Every filter and order has an index, so the cost of a page depends only on the
 * number of its rows.
 */

import { canonicalRuleValue, coveringNetworks, parseNetwork } from '@keyward/address'
import {
  type AccessRule,
  MAX_IMPORT_ROWS,
  RULE_KINDS,
  RULE_SCOPES,
  RULE_TYPES,
  type RuleKind,
  type RuleMode,
  type RuleScope,
  type RuleSort,
  type RuleType,
  TYPES_OF_KIND,
} from '@keyward/contract'
import { type RawBuilder, sql } from 'kysely'

import { type ListOfRows, listOf } from '../../audit/writer.ts'
import type { ReadContext } from '../../context.ts'
import { hiddenOrganization } from '../../crud/hidden-organization.ts'
import { anyId } from '../../crud/owned-rows.ts'
import { countOf, type Page, type PageQuery, type Place, sortedPage } from '../../http/pagination.ts'
import { auditedRule, type RuleRow, selectRules, showRule } from './rule-rows.ts'

export interface RuleFilter {
  kind?: RuleKind | undefined
  mode?: RuleMode | undefined
  type?: RuleType | undefined
  scope?: RuleScope | undefined
  scopeId?: string | undefined
  value?: string | undefined
  matches?: string | undefined
  set?: string | undefined
  licenseId?: string | undefined
  expired?: boolean | undefined
}

export interface RuleQuery extends PageQuery, RuleFilter {
  sort?: RuleSort | undefined
  order?: 'asc' | 'desc' | undefined
  total?: 'true' | undefined
}

/** The SQL expression by which the list is sorted, and its type. */
const SORT_KEYS: Record<Exclude<RuleSort, 'createdAt'>, { key: RawBuilder<unknown>; type: RawBuilder<unknown> }> = {
  matchCount: { key: sql`c.match_count`, type: sql`bigint` },
  // In ascending order, rules that have never matched come first.
  lastMatchedAt: {
    key: sql`coalesce(c.last_matched_at, '-infinity'::timestamptz)`,
    type: sql`timestamptz`,
  },
}

interface TypedValue {
  type: RuleType
  value: string
}

/** Returns the canonical form of the value for each type that accepts it. */
function equalValues(value: string): TypedValue[] {
  return RULE_TYPES.flatMap((type) => {
    const canonical = canonicalRuleValue(type, value)
    return canonical === null ? [] : [{ type, value: canonical }]
  })
}

/** Returns every value with which a rule would match `value`, which is an address, a range, a machine id or a country. */
function matchingValues(value: string): TypedValue[] {
  const network = parseNetwork(value)
  const networks = network === null ? [] : coveringNetworks(network)
  return [
    ...networks.map((one) => ({ type: 'IP', value: one }) as const),
    ...equalValues(value).filter(({ type }) => type !== 'IP' && type !== 'CUSTOMER'),
  ]
}

/** Returns the conditions that the filter sets for a rule `r`, except the conditions on its value. */
function conditionsOf({ organizationId }: ReadContext, filter: RuleFilter): RawBuilder<unknown>[] {
  const { kind, mode, type, scope, scopeId, set, licenseId, matches } = filter
  // An expired rule matches no check.
  const expired = filter.expired ?? (matches === undefined ? undefined : false)
  const conditions = [sql`r.organization_id = ${hiddenOrganization(organizationId)}`]
  if (kind !== undefined) conditions.push(sql`r.kind = ${kind}`)
  if (mode !== undefined) conditions.push(sql`r.mode = ${mode}`)
  if (type !== undefined) conditions.push(sql`r.type = ${type}`)
  if (scope !== undefined) conditions.push(sql`r.scope = ${scope}`)
  if (scopeId !== undefined) conditions.push(sql`r.scope_id = ${scopeId}`)
  if (set !== undefined)
    conditions.push(
      sql`r.set_id = (select s.id from access_rule_sets s where s.organization_id = ${organizationId} and s.name = ${set})`,
    )
  if (licenseId !== undefined)
    conditions.push(
      sql`exists (
        select from licenses l where l.id = ${licenseId} and l.organization_id = ${organizationId}
          and (r.scope_id is null or r.scope_id in (l.id, l.product_id)) and (r.customer_id is null or r.customer_id = l.customer_id))`,
    )
  // The conditions compare the column itself, so that Postgres can use an index.
  if (expired === true) conditions.push(sql`r.expires_at <= now()`)
  if (expired === false) conditions.push(sql`(r.expires_at is null or r.expires_at > now())`)
  return conditions
}

/** Returns the values that satisfy the filter, or undefined when every value does. */
function valuesOf({ value, matches }: RuleFilter): TypedValue[] | undefined {
  if (value === undefined) return matches === undefined ? undefined : matchingValues(matches)
  const equal = equalValues(value)
  if (matches === undefined) return equal
  const matching = matchingValues(matches)
  return equal.filter((one) => matching.some((other) => other.type === one.type && other.value === one.value))
}

const and = (conditions: readonly RawBuilder<unknown>[]) => sql.join([...conditions], sql` and `)

/** Returns the SQL of a table `v` with the columns type and value. */
function valueTable(values: readonly TypedValue[]): RawBuilder<unknown> {
  const types = values.map(({ type }) => type)
  return sql`unnest(${types}::text[], ${values.map(({ value }) => Buffer.from(value))}::bytea[]) as v (type, value)`
}

/**
 * Returns the combinations of kind, type and scope that satisfy the filter. Returns undefined for a filter with other fields or with none
 * of these three.
 */
function combinationsOf(filter: RuleFilter): { kind: RuleKind; type: RuleType; scope: RuleScope }[] | undefined {
  const { kind, type, scope, ...others } = filter
  const isOther = Object.values(others).some((given) => given !== undefined)
  if (isOther || (kind ?? type ?? scope) === undefined) return undefined
  return RULE_TYPES.filter((one) => type === undefined || one === type).flatMap((eachType) =>
    RULE_KINDS.filter((one) => TYPES_OF_KIND[one].includes(eachType) && (kind === undefined || one === kind)).flatMap(
      (eachKind) =>
        RULE_SCOPES.filter((one) => scope === undefined || one === scope).map((eachScope) => ({
          kind: eachKind,
          type: eachType,
          scope: eachScope,
        })),
    ),
  )
}

/** Returns a condition for each part of an index that contains rules of the license. Together they select all of its rules. */
function partsOfLicense({ organizationId }: ReadContext, licenseId: string): RawBuilder<unknown>[] {
  const ofLicense = (column: 'product_id' | 'customer_id') =>
    sql`(select ${sql.ref(column)} from licenses where id = ${licenseId} and organization_id = ${organizationId})`
  return [
    sql`r.scope_id = ${licenseId}`,
    sql`r.scope_id = ${ofLicense('product_id')}`,
    sql`r.scope_id is null and r.customer_id = ${ofLicense('customer_id')}`,
    ...(combinationsOf({ scope: 'ORGANIZATION' }) ?? []).flatMap(({ kind, type, scope }) =>
      type === 'CUSTOMER' ? [] : [sql`r.kind = ${kind} and r.type = ${type} and r.scope = ${scope}`],
    ),
  ]
}

interface Slice {
  descends: boolean
  after: Place | null
  count: number
}

/**
 * Returns a query for the ids of the first rules, sorted by id. Each value, and each combination of kind, type and scope, is read from its
 * own part of an index. Therefore a filter for rare values costs as little as a filter for frequent values.
 */
function idsById(context: ReadContext, filter: RuleFilter, { descends, after, count }: Slice): RawBuilder<unknown> {
  const order = descends ? sql`desc` : sql`asc`
  const conditions = conditionsOf(context, filter)
  const isWhole = conditions.length === 1 && valuesOf(filter) === undefined
  if (after !== null) conditions.push(sql`r.id ${descends ? sql`<` : sql`>`} ${after.id}`)
  const first = (more: readonly RawBuilder<unknown>[]) => sql`
    select r.id from access_rules r where ${and([...conditions, ...more])} order by r.id ${order} limit ${count}`
  const values = valuesOf(filter)
  if (values !== undefined)
    return sql`
      select f.id from ${valueTable(values)} cross join lateral (${first([sql`r.type = v.type`, sql`r.value = v.value`])}) f
      order by f.id ${order} limit ${count}`
  const combinations = combinationsOf(filter)
  if (isWhole) return wholeList(context, conditions.slice(1), order, count)
  const parts =
    filter.licenseId === undefined
      ? combinations?.map(({ kind, type, scope }) => sql`r.kind = ${kind} and r.type = ${type} and r.scope = ${scope}`)
      : partsOfLicense(context, filter.licenseId)
  if (parts === undefined) return first([])
  if (parts.length === 0) return sql`select null::uuid as id where false`
  const selects = parts.map((part) => sql`(${first([part])})`)
  return sql`select f.id from (${sql.join(selects, sql` union all `)}) f order by f.id ${order} limit ${count}`
}

/**
 * Returns a query for the ids of the first rules of an organization. Its condition is a range that contains one organization, so only the
 * index by organization provides the order. With an equality, Postgres could use the primary key and read the rules of other organizations.
 */
function wholeList(
  { organizationId }: ReadContext,
  after: readonly RawBuilder<unknown>[],
  order: RawBuilder<unknown>,
  count: number,
): RawBuilder<unknown> {
  const own = [sql`r.organization_id >= ${organizationId}`, sql`r.organization_id <= ${organizationId}`]
  return sql`
    select r.id from access_rules r where ${and([...own, ...after])}
    order by r.organization_id ${order}, r.id ${order} limit ${count}`
}

/** Returns a query for the ids and sort keys of the first rules, sorted by the number of matches or the time of the last match. */
function idsByCounter(
  context: ReadContext,
  filter: RuleFilter,
  { descends, after, count }: Slice,
  { key, type }: { key: RawBuilder<unknown>; type: RawBuilder<unknown> },
): RawBuilder<unknown> {
  const order = descends ? sql`desc` : sql`asc`
  const organizationId = hiddenOrganization(context.organizationId)
  const conditions = [...conditionsOf(context, filter), sql`c.organization_id = ${organizationId}`]
  const values = valuesOf(filter)
  const rules =
    values === undefined
      ? sql`access_rules r`
      : sql`${valueTable(values)} cross join lateral (
          select * from access_rules
          where organization_id = ${organizationId} and type = v.type and value = v.value
          offset 0
        ) r`
  if (after !== null)
    conditions.push(sql`(${key}, c.rule_id) ${descends ? sql`<` : sql`>`} (${after.key}::${type}, ${after.id}::uuid)`)
  return sql`
    select r.id, (${key})::text as key from ${rules} join access_rule_counters c on c.rule_id = r.id
    where ${and(conditions)} order by ${key} ${order}, c.rule_id ${order} limit ${count}`
}

async function readSlice(
  context: ReadContext,
  filter: RuleFilter,
  sort: RuleSort,
  slice: Slice,
): Promise<{ row: RuleRow; place: Place }[]> {
  const ids =
    sort === 'createdAt' ? idsById(context, filter, slice) : idsByCounter(context, filter, slice, SORT_KEYS[sort])
  const found = await sql<{ id: string; key?: string }>`${ids}`.execute(context.db)
  if (found.rows.length === 0) return []
  const rows = await selectRules(context).where('accessRules.id', '=', anyId(found.rows)).execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  // A rule that was deleted after the first query is omitted.
  return found.rows.flatMap(({ id, key = '' }) => {
    const row = byId.get(id)
    return row === undefined ? [] : [{ row, place: { id, key } }]
  })
}

export async function listRules(context: ReadContext, query: RuleQuery): Promise<Page<AccessRule>> {
  const { limit, cursor, sort = 'createdAt', order = 'desc', total, ...filter } = query
  const name = sort === 'createdAt' && order === 'desc' ? 'access-rules' : `access-rules ${sort} ${order}`
  const list = { name, organizationId: context.organizationId }
  const page = await sortedPage(list, { limit, cursor }, showRule, (after, count) =>
    readSlice(context, filter, sort, { descends: order === 'desc', after, count }),
  )
  return total === undefined ? page : { ...page, total: await countRules(context, filter) }
}

async function countRules({ db, organizationId }: ReadContext, filter: RuleFilter): Promise<number> {
  const conditions = conditionsOf({ db, organizationId }, filter)
  const values = valuesOf(filter)
  if (values !== undefined)
    conditions.push(sql`(r.type, r.value) in (select v.type, v.value from ${valueTable(values)})`)
  return countOf(db, sql`access_rules r where ${and(conditions)}`)
}

/** Returns up to `count` rules that satisfy a filter and have ids above `after`, sorted by id. */
export async function readRulesAfter(
  context: ReadContext,
  filter: RuleFilter,
  after: string | null,
  count: number,
): Promise<AccessRule[]> {
  const slice = { descends: false, after: after === null ? null : { id: after, key: '' }, count }
  return (await readSlice(context, filter, 'createdAt', slice)).map(({ row }) => showRule(row))
}

/** Returns the first 1,000 rules that satisfy a filter, as an audit entry contains them. The count is that of these rules. */
export async function firstRules(context: ReadContext, filter: RuleFilter): Promise<ListOfRows> {
  return listOf((await readRulesAfter(context, filter, null, MAX_IMPORT_ROWS)).map(auditedRule))
}

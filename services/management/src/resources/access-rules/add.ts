/**
 * Adds access rules, all rows or none (docs/api.md#r4). One rule and many rules are added with the same set-based statements. Every row is
 * validated before the first row is written. Errors are thrown in the order of their statuses: 422, 409 (only for a single rule), 403.
 */

import { canonicalRuleValue, RULE_VALUE_ERRORS } from '@keyward/address'
import { type AccessRule, type CreateAccessRule, MAX_SKIPPED_ROWS, type SkippedRow } from '@keyward/contract'
import { MAX_EVENT_IDS } from '@keyward/contract/management/events'
import { uuidv7 } from '@keyward/database'
import { together } from '@keyward/database/kysely'
import { type RawBuilder, sql } from 'kysely'

import { audit, listOf, toJsonb } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { hiddenOrganization } from '../../crud/hidden-organization.ts'
import { missingIds } from '../../crud/owned-rows.ts'
import { piecesOf } from '../../crud/pieces.ts'
import { ApiError, quote, type ValidationError } from '../../http/problem.ts'
import { invalidRows, type Row, type Rows } from '../../http/upload-rows.ts'
import { readUse, requireRoom } from '../../quotas/quotas.ts'
import { inTurns } from '../../turns.ts'
import { lockPlan, requireWithinPlan } from './plan-limits.ts'
import { auditedRule } from './rule-rows.ts'
import { requireSets } from './set-rows.ts'
import { type Effect, type Existing, MAX_RULES_OF_VALUE, planAddition } from './sources.ts'
import { readRule } from './store.ts'

/** A rule of the request, in canonical form. */
export interface NewRule extends Effect, Pick<CreateAccessRule, 'kind' | 'type' | 'value' | 'scope'> {
  scopeId: string | null
  note: string | null
  /** The JSON pointer to the rule in the request. */
  pointer: string
}

const present = (ids: readonly (string | null)[]): string[] => ids.filter((id) => id !== null)

async function canonicalize(
  given: readonly Row<CreateAccessRule>[],
  set: string | null,
): Promise<{ rules: NewRule[]; errors: ValidationError[] }> {
  const rules: NewRule[] = []
  const errors: ValidationError[] = []
  for await (const { input, pointer } of inTurns(given)) {
    const value = canonicalRuleValue(input.type, input.value)
    if (value === null)
      errors.push({
        pointer: `${pointer}/value`,
        detail: `${RULE_VALUE_ERRORS[input.type]}; got ${quote(input.value)}`,
      })
    else
      rules.push({
        id: uuidv7(),
        kind: input.kind,
        mode: input.mode ?? 'ENFORCE',
        type: input.type,
        value,
        scope: input.scope,
        scopeId: input.scopeId ?? null,
        set: input.set ?? set,
        note: input.note ?? null,
        expiresAt: input.expiresAt ?? null,
        allowSuspendedOrExpired: input.allowSuspendedOrExpired ?? false,
        pointer,
      })
  }
  return { rules, errors }
}

/**
 * Returns the rules in canonical form, those without a set in `set`, and the result of `read`, which is sent in the same round trip. Throws
 * INVALID_REQUEST with the errors of all rows.
 */
export async function validateRules<Result>(
  context: ReadContext,
  given: Rows<CreateAccessRule>,
  set: string | null,
  read: (rules: readonly NewRule[]) => Promise<Result>,
): Promise<[NewRule[], Result]> {
  const { rules, errors } = await canonicalize(given.rows, set)
  await followMerges(context, rules)
  const [missing, result] = await together(findMissing(context, rules), read(rules))
  const all = [...given.errors, ...errors, ...missing]
  if (all.length > 0) throw invalidRows(all)
  return [rules, result]
}

/** Replaces the ids of merged customers by those of the remaining customers, so that a list of rules stays valid after a merge. */
async function followMerges({ db, organizationId }: ReadContext, rules: readonly NewRule[]): Promise<void> {
  const named = rules.filter(({ type }) => type === 'CUSTOMER')
  if (named.length === 0) return
  const ids = [...new Set(named.map(({ value }) => value))]
  const merged = await db
    .selectFrom('mergedCustomers')
    .select(['id', 'mergedInto'])
    .where('organizationId', '=', organizationId)
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .execute()
  const remaining = new Map(merged.map(({ id, mergedInto }) => [id, mergedInto]))
  for (const rule of named) rule.value = remaining.get(rule.value) ?? rule.value
}

/** Returns an error for every scope and customer that does not exist in the organization. */
async function findMissing(context: ReadContext, rules: readonly NewRule[]): Promise<ValidationError[]> {
  const scopeIds = (scope: string) => present(rules.map((rule) => (rule.scope === scope ? rule.scopeId : null)))
  const customerIds = present(rules.map((rule) => (rule.type === 'CUSTOMER' ? rule.value : null)))
  const [products, licenses, customers] = await together(
    missingIds('products', context, scopeIds('PRODUCT')),
    missingIds('licenses', context, scopeIds('LICENSE')),
    missingIds('customers', context, customerIds),
  )
  return rules.flatMap((rule): ValidationError[] => {
    const { pointer, scope, scopeId, type, value } = rule
    const isScopeMissing = scopeId !== null && (scope === 'PRODUCT' ? products : licenses).has(scopeId)
    const detail = `must be the id of a ${scope.toLowerCase()} of this organization`
    return [
      ...(isScopeMissing ? [{ pointer: `${pointer}/scopeId`, detail }] : []),
      ...(type === 'CUSTOMER' && customers.has(value)
        ? [{ pointer: `${pointer}/value`, detail: RULE_VALUE_ERRORS[type] }]
        : []),
    ]
  })
}

const bytes = (rule: NewRule): Buffer => Buffer.from(rule.value)

/** Returns the SQL of a table `n` with the rules, in their order. */
function asTable(rules: readonly NewRule[], setIds: ReadonlyMap<string, string>): RawBuilder<unknown> {
  const column = <Value>(pick: (rule: NewRule) => Value): Value[] => rules.map(pick)
  const scopedTo = (scope: string) => column((rule) => (rule.scope === scope ? rule.scopeId : null))
  return sql`unnest(
    ${column((rule) => rule.id)}::uuid[], ${column((rule) => rule.kind)}::text[], ${column((rule) => rule.type)}::text[],
    ${column(bytes)}::bytea[], ${column((rule) => rule.scope)}::text[],
    ${scopedTo('PRODUCT')}::uuid[], ${scopedTo('LICENSE')}::uuid[],
    ${column((rule) => (rule.type === 'CUSTOMER' ? rule.value : null))}::uuid[],
    ${column((rule) => rule.note)}::text[], ${column((rule) => rule.expiresAt)}::timestamptz[],
    ${column((rule) => rule.allowSuspendedOrExpired)}::boolean[], ${column((rule) => rule.mode)}::text[],
    ${column((rule) => setIds.get(rule.set ?? '') ?? null)}::uuid[]
  ) as n (id, kind, type, value, scope, product_id, license_id, customer_id, note, expires_at, allow_suspended_or_expired,
    mode, set_id)`
}

type ExistingRow = Omit<Existing, 'value'> & { value: Buffer }

/** Stands for the missing scope id of a rule for the whole organization, because `=` never matches null. */
const NO_SCOPE_ID = '00000000-0000-0000-0000-000000000000'

/**
 * Returns the existing rules that equal one of the rules in kind, type, value and scope. The statement reads the rules with the same type
 * and value, and compares the other columns afterwards. With a condition on the scope id, Postgres could read all rules of a product for
 * each rule of the request.
 */
export async function findExisting(
  { db, organizationId }: ReadContext,
  rules: readonly NewRule[],
): Promise<Existing[]> {
  const found = new Map<string, Existing>()
  for (const piece of piecesOf(rules)) {
    const { rows } = await sql<ExistingRow>`
      with n as materialized (
        select kind, type, value, scope, product_id, license_id from ${asTable(piece, new Map())}
      )
      select distinct r.id, r.kind, r.type, r.value, r.scope, r.scope_id as "scopeId", s.name as set, r.mode, r.note,
        r.allow_suspended_or_expired as "allowSuspendedOrExpired", r.expires_at as "expiresAt",
        coalesce(r.expires_at <= now(), false) as "isExpired"
      from (select distinct type, value from n) key cross join lateral (
        select id, kind, type, value, scope, scope_id, set_id, mode, note, allow_suspended_or_expired, expires_at
        from access_rules
        where organization_id = ${hiddenOrganization(organizationId)} and type = key.type and value = key.value
        offset 0
      ) r join n on n.kind = r.kind and n.type = r.type and n.value = r.value and n.scope = r.scope
        and coalesce(n.license_id, n.product_id, ${NO_SCOPE_ID}) = coalesce(r.scope_id, ${NO_SCOPE_ID})
      left join access_rule_sets s on s.id = r.set_id order by r.id`.execute(db)
    for (const row of rows) found.set(row.id, { ...row, value: row.value.toString('utf8') })
  }
  return [...found.values()]
}

export async function insertRules(
  { db, organizationId, actor }: WriteContext,
  rules: readonly NewRule[],
  setIds: ReadonlyMap<string, string>,
): Promise<void> {
  for (const piece of piecesOf(rules))
    await sql`
      insert into access_rules (id, organization_id, kind, type, value, scope, product_id, license_id, customer_id, note,
        expires_at, allow_suspended_or_expired, mode, set_id, created_by)
      select n.id, ${organizationId}, n.kind, n.type, n.value, n.scope, n.product_id, n.license_id, n.customer_id, n.note,
        n.expires_at, n.allow_suspended_or_expired, n.mode, n.set_id, ${toJsonb(actor)}::jsonb
      from ${asTable(piece, setIds)}`.execute(db)
}

export async function deleteRules({ db, organizationId }: WriteContext, ids: readonly string[]): Promise<void> {
  for (const piece of piecesOf(ids))
    await db.deleteFrom('accessRules').where('organizationId', '=', organizationId).where('id', 'in', piece).execute()
}

/** Throws INVALID_REQUEST for rules whose value would have more rules than a check reads. */
export function requireFewOfValue(excessive: readonly NewRule[]): void {
  if (excessive.length === 0) return
  const detail = `would be the value of more than ${MAX_RULES_OF_VALUE} rules with the same kind, type and scope; delete some of them`
  throw invalidRows(excessive.map(({ pointer }) => ({ pointer: `${pointer}/value`, detail })))
}

/** Returns the first of the skipped rows, and the rules that cover them. */
export function showSkipped(skipped: readonly { rule: NewRule; by: string }[]): SkippedRow[] {
  return skipped.slice(0, MAX_SKIPPED_ROWS).map(({ rule, by }) => ({ pointer: rule.pointer, ruleId: by }))
}

/**
 * Returns the rules to insert, and deletes the expired rules that they replace, with the same kind, type, value and scope. If an existing
 * rule covers a rule, `reject` throws RULE_EXISTS, and `skip` omits the rule.
 */
async function prepareAddition(context: WriteContext, given: Rows<CreateAccessRule>, onCovered: 'reject' | 'skip') {
  const [plan, use, [rules, existing]] = await together(
    lockPlan(context),
    readUse(context, 'accessRules'),
    validateRules(context, given, null, (valid) => findExisting(context, valid)),
  )
  const { added, skipped, replaced, excessive } = await planAddition(existing, rules)
  requireFewOfValue(excessive)
  const [first] = skipped
  if (onCovered === 'reject' && first)
    throw new ApiError('RULE_EXISTS', `The same rule exists with the id ${first.by}. Change that rule instead.`, {
      ruleId: first.by,
    })
  await requireWithinPlan(context, plan, added)
  requireRoom('accessRules', use, added.length - replaced.length)
  await deleteRules(
    context,
    replaced.map(({ id }) => id),
  )
  const setIds = await requireSets(
    context,
    added.flatMap(({ set }) => set ?? []),
  )
  return { added, skipped, replaced, setIds }
}

/** Returns the member `before` of an audit entry, if the addition has replaced expired rules. */
function replacedRules(replaced: readonly Existing[]): { before?: object } {
  return replaced.length === 0 ? {} : { before: { replaced: listOf(replaced.map(auditedRule)) } }
}

/** Adds a rule and replaces expired ones. Throws RULE_EXISTS if an unexpired rule of the same source does all that the rule does. */
export async function addRule(context: WriteContext, input: CreateAccessRule): Promise<AccessRule> {
  const given = { rows: [{ input, pointer: '#' }], errors: [] }
  const { added, replaced, setIds } = await prepareAddition(context, given, 'reject')
  const [first] = added
  if (!first) throw new Error('a new rule was not added')
  const { pointer: _pointer, ...rule } = first
  const [, created] = await together(insertRules(context, added, setIds), readRule(context, rule.id))
  await audit(context, {
    action: 'access_rule.created',
    resourceType: 'access_rule',
    resourceId: rule.id,
    changes: rule,
    ...replacedRules(replaced),
    event: { type: 'access_rule.created', resource: created },
  })
  return created
}

/** Adds all rows or none. Skips rows that an existing rule of the same source, or another row, covers. */
export async function importRules(
  context: WriteContext,
  given: Rows<CreateAccessRule>,
): Promise<{ created: number; skipped: number; skippedRows: SkippedRow[]; ids: string[] }> {
  const { added, skipped, replaced, setIds } = await prepareAddition(context, given, 'skip')
  await insertRules(context, added, setIds)
  const ids = added.map(({ id }) => id)
  const counts = { created: added.length, skipped: skipped.length }
  const more = { ...counts, ruleIds: ids.slice(0, MAX_EVENT_IDS) }
  const event = added.length > 0 ? ({ type: 'access_rules.imported', more } as const) : undefined
  await audit(context, {
    action: 'access_rule.imported',
    resourceType: 'access_rule',
    resourceId: null,
    changes: { ...counts, ids, rules: listOf(added.map(auditedRule)) },
    ...replacedRules(replaced),
    event,
  })
  return { ...counts, skippedRows: showSkipped(skipped), ids }
}

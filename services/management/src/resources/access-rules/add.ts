/**
 * Adds access rules, all rows or none (docs/api.md#r4). One rule and many rules are added with the same set-based statements. Every row is
 * validated before the first row is written. Errors are thrown in the order of their statuses: 422, 409 (only for a single rule), 403.
 */

import { canonicalRuleValue, RULE_VALUE_ERRORS } from '@keyward/address'
import { type AccessRule, type CreateAccessRule } from '@keyward/contract'
import { MAX_EVENT_IDS } from '@keyward/contract/management/events'
import { uuidv7 } from '@keyward/database'
import { type RawBuilder, sql } from 'kysely'

import { audit, toJsonb } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { hiddenOrganization } from '../../crud/hidden-organization.ts'
import { missingIds } from '../../crud/owned-rows.ts'
import { piecesOf } from '../../crud/pieces.ts'
import { ApiError, quote, type ValidationError } from '../../http/problem.ts'
import { invalidRows, type Row, type Rows } from '../../http/upload-rows.ts'
import { requireWithinQuota } from '../../quotas/quotas.ts'
import { inTurns } from '../../turns.ts'
import { lockPlan, requireWithinPlan } from './plan-limits.ts'
import { requireSets } from './set-rows.ts'
import { readRule } from './store.ts'

/** A rule of the request, in canonical form. */
export interface NewRule extends Omit<CreateAccessRule, 'scopeId'> {
  id: string
  setId: string | null
  scopeId: string | null
  /** The JSON pointer to the rule in the request. */
  pointer: string
}

const present = (ids: readonly (string | null)[]): string[] => ids.filter((id) => id !== null)

async function canonicalize(
  given: readonly Row<CreateAccessRule>[],
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
    else rules.push({ ...input, value, scopeId: input.scopeId ?? null, setId: null, id: uuidv7(), pointer })
  }
  return { rules, errors }
}

/** Returns the rules in canonical form. Throws INVALID_REQUEST with the errors of all rows. */
export async function validateRules(context: ReadContext, given: Rows<CreateAccessRule>): Promise<NewRule[]> {
  const { rules, errors } = await canonicalize(given.rows)
  const all = [...given.errors, ...errors, ...(await findMissing(context, rules))]
  if (all.length > 0) throw invalidRows(all)
  return rules
}

/** Returns an error for every scope and customer that does not exist in the organization. */
async function findMissing(context: ReadContext, rules: readonly NewRule[]): Promise<ValidationError[]> {
  const scopeIds = (scope: string) => present(rules.map((rule) => (rule.scope === scope ? rule.scopeId : null)))
  const products = await missingIds('products', context, scopeIds('PRODUCT'))
  const licenses = await missingIds('licenses', context, scopeIds('LICENSE'))
  const customerIds = present(rules.map((rule) => (rule.type === 'CUSTOMER' ? rule.value : null)))
  const customers = await missingIds('customers', context, customerIds)
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
function asTable(rules: readonly NewRule[]): RawBuilder<unknown> {
  const column = <Value>(pick: (rule: NewRule) => Value): Value[] => rules.map(pick)
  const scopedTo = (scope: string) => column((rule) => (rule.scope === scope ? rule.scopeId : null))
  return sql`unnest(
    ${column((rule) => rule.id)}::uuid[], ${column((rule) => rule.kind)}::text[], ${column((rule) => rule.type)}::text[],
    ${column(bytes)}::bytea[], ${column((rule) => rule.scope)}::text[],
    ${scopedTo('PRODUCT')}::uuid[], ${scopedTo('LICENSE')}::uuid[],
    ${column((rule) => (rule.type === 'CUSTOMER' ? rule.value : null))}::uuid[],
    ${column((rule) => rule.note ?? null)}::text[], ${column((rule) => rule.expiresAt ?? null)}::timestamptz[],
    ${column((rule) => rule.allowSuspendedOrExpired ?? false)}::boolean[],
    ${column((rule) => rule.mode ?? 'ENFORCE')}::text[], ${column((rule) => rule.setId)}::uuid[]
  ) as n (id, kind, type, value, scope, product_id, license_id, customer_id, note, expires_at, allow_suspended_or_expired,
    mode, set_id)`
}

/** An existing rule that equals a rule of the request in kind, type, value and scope (docs/api.md#r3). */
interface Duplicate {
  newRuleId: string
  ruleId: string
  expired: boolean
}

/** Stands for the missing scope id of a rule for the whole organization, because `=` never matches null. */
const NO_SCOPE_ID = '00000000-0000-0000-0000-000000000000'

/**
 * Returns the existing duplicates of the rules. The statement reads the rules with the same type and value, and compares the other columns
 * afterwards. With a condition on the scope id, Postgres could read all rules of a product for each rule of the request.
 */
export async function findDuplicates(
  { db, organizationId }: ReadContext,
  rules: readonly NewRule[],
): Promise<Duplicate[]> {
  const found: Duplicate[] = []
  for (const piece of piecesOf(rules)) {
    const { rows } = await sql<Duplicate>`
      with n as materialized (
        select id, kind, type, value, scope, product_id, license_id from ${asTable(piece)}
      )
      select n.id as "newRuleId", r.id as "ruleId", coalesce(r.expires_at <= now(), false) as expired
      from (select distinct type, value from n) key cross join lateral (
        select id, kind, type, value, scope, scope_id, expires_at from access_rules
        where organization_id = ${hiddenOrganization(organizationId)} and type = key.type and value = key.value
        offset 0
      ) r join n on n.kind = r.kind and n.type = r.type and n.value = r.value and n.scope = r.scope
        and coalesce(n.license_id, n.product_id, ${NO_SCOPE_ID}) = coalesce(r.scope_id, ${NO_SCOPE_ID})`.execute(db)
    found.push(...rows)
  }
  return found
}

export async function insertRules(
  { db, organizationId, actor }: WriteContext,
  rules: readonly NewRule[],
): Promise<void> {
  for (const piece of piecesOf(rules))
    await sql`
      insert into access_rules (id, organization_id, kind, type, value, scope, product_id, license_id, customer_id, note,
        expires_at, allow_suspended_or_expired, mode, set_id, created_by)
      select n.id, ${organizationId}, n.kind, n.type, n.value, n.scope, n.product_id, n.license_id, n.customer_id, n.note,
        n.expires_at, n.allow_suspended_or_expired, n.mode, n.set_id, ${toJsonb(actor)}::jsonb
      from ${asTable(piece)}`.execute(db)
}

export async function deleteRules({ db, organizationId }: WriteContext, ids: readonly string[]): Promise<void> {
  for (const piece of piecesOf(ids))
    await db.deleteFrom('accessRules').where('organizationId', '=', organizationId).where('id', 'in', piece).execute()
}

/** Returns a string that is equal for duplicates (docs/api.md#r3), and only for them. */
export function identityOf({
  kind,
  type,
  scope,
  scopeId,
  value,
}: Pick<AccessRule, 'kind' | 'type' | 'scope' | 'scopeId' | 'value'>): string {
  return JSON.stringify([kind, type, scope, scopeId, value])
}

/** Returns the first of the rules that have the same kind, type, value, scope and scope id. */
export async function withoutRepeats(rules: readonly NewRule[]): Promise<NewRule[]> {
  const byIdentity = new Map<string, NewRule>()
  for await (const rule of inTurns(rules)) {
    const identity = identityOf(rule)
    if (!byIdentity.has(identity)) byIdentity.set(identity, rule)
  }
  return [...byIdentity.values()]
}

/**
 * Adds the rules and replaces expired duplicates. If a rule has an unexpired duplicate, `reject` throws RULE_EXISTS, and `skip` omits the
 * rule. Returns the rules that were added.
 */
async function addRules(
  context: WriteContext,
  given: Rows<CreateAccessRule>,
  onDuplicate: 'reject' | 'skip',
): Promise<NewRule[]> {
  const plan = await lockPlan(context)
  const rules = await validateRules(context, given)
  const distinct = await withoutRepeats(rules)
  const duplicates = await findDuplicates(context, distinct)
  const unexpired = duplicates.filter(({ expired }) => !expired)
  const [first] = unexpired
  if (onDuplicate === 'reject' && first)
    throw new ApiError('RULE_EXISTS', `The same rule exists with the id ${first.ruleId}. Change that rule instead.`, {
      ruleId: first.ruleId,
    })
  const skipped = new Set(unexpired.map(({ newRuleId }) => newRuleId))
  const added = distinct.filter(({ id }) => !skipped.has(id))
  await requireWithinPlan(context, plan, added)
  const replaced = duplicates.length - unexpired.length
  await requireWithinQuota(context, 'accessRules', Math.max(0, added.length - replaced))
  await deleteRules(
    context,
    duplicates.flatMap(({ expired, ruleId }) => (expired ? ruleId : [])),
  )
  const setIds = await requireSets(
    context,
    added.flatMap(({ set }) => set ?? []),
  )
  for (const rule of added) rule.setId = setIds.get(rule.set ?? '') ?? null
  await insertRules(context, added)
  return added
}

/** Adds a rule and replaces an expired duplicate. Throws RULE_EXISTS for an unexpired duplicate. */
export async function addRule(context: WriteContext, input: CreateAccessRule): Promise<AccessRule> {
  const [added] = await addRules(context, { rows: [{ input, pointer: '#' }], errors: [] }, 'reject')
  if (!added) throw new Error('a new rule was not added')
  const { pointer: _pointer, setId: _setId, ...rule } = added
  const created = await readRule(context, rule.id)
  await audit(context, {
    action: 'access_rule.created',
    resourceType: 'access_rule',
    resourceId: rule.id,
    changes: rule,
    event: { type: 'access_rule.created', resource: created },
  })
  return created
}

/** Adds all rows or none. Skips rows that repeat an earlier row or have an unexpired duplicate. */
export async function importRules(
  context: WriteContext,
  given: Rows<CreateAccessRule>,
): Promise<{ created: number; skipped: number; ids: string[] }> {
  const added = await addRules(context, given, 'skip')
  const ids = added.map(({ id }) => id)
  const changes = { created: added.length, skipped: given.rows.length - added.length, ids }
  const { created, skipped } = changes
  const more = { created, skipped, ruleIds: ids.slice(0, MAX_EVENT_IDS) }
  const event = created > 0 ? ({ type: 'access_rules.imported', more } as const) : undefined
  await audit(context, {
    action: 'access_rule.imported',
    resourceType: 'access_rule',
    resourceId: null,
    changes,
    event,
  })
  return changes
}

/** Reads, lists, changes and deletes access rules. What a rule matches never changes (docs/api.md#r8). */

import { canonicalRuleValue } from '@keyward/address'
import {
  type AccessRule,
  RULE_KINDS,
  RULE_SCOPES,
  RULE_TYPES,
  type RuleKind,
  type RuleMode,
  type RuleScope,
  type RuleType,
  TYPES_OF_KIND,
  type updateAccessRule,
} from '@keyward/contract'
import type { Database } from '@keyward/database'
import { type Expression, type ExpressionBuilder, type RawBuilder, sql, type SqlBool } from 'kysely'
import type { z } from 'zod'

import { audit } from '../../audit/writer.ts'
import { differences } from '../../crud/differences.ts'
import { deleteRow, updateRow } from '../../crud/rows.ts'
import type { ReadContext, WriteContext } from '../../http/context.ts'
import { listPage, type Page, type PageQuery, selectPage } from '../../http/pagination.ts'
import { invalid, notFound } from '../../http/problem.ts'
import { lockPlan, requireWithinPlan } from './plan-limits.ts'
import { accessRuleRows, selectRules, showRule } from './rows.ts'
import { findSet } from './set-rows.ts'

/** The id of no row. */
const NO_ID = '00000000-0000-0000-0000-000000000000'

export interface RuleQuery extends PageQuery {
  kind?: RuleKind | undefined
  mode?: RuleMode | undefined
  type?: RuleType | undefined
  scope?: RuleScope | undefined
  scopeId?: string | undefined
  value?: string | undefined
  set?: string | undefined
  expired?: boolean | undefined
}

/** Returns the condition for rules with this value, in any spelling. */
function valueCondition(value: string) {
  return (builder: ExpressionBuilder<Database, 'accessRules'>): Expression<SqlBool> =>
    builder.or(
      RULE_TYPES.flatMap((type) => {
        const canonical = canonicalRuleValue(type, value)
        if (canonical === null) return []
        return builder.and([
          builder('accessRules.type', '=', type),
          builder('accessRules.value', '=', Buffer.from(canonical)),
        ])
      }),
    )
}

/**
 * Returns the ids of the newest rules with the given kind, type and scope, each of which may be absent. Every combination is read from
 * its own part of the index, so the cost does not depend on how rare a combination is.
 */
function newestOfEach(
  { organizationId }: ReadContext,
  { kind, type, scope }: Pick<RuleQuery, 'kind' | 'type' | 'scope'>,
  after: string | null,
  count: number,
): RawBuilder<string> {
  const combinations = RULE_TYPES.filter((one) => type === undefined || one === type).flatMap((ofType) =>
    RULE_KINDS.filter((one) => TYPES_OF_KIND[one].includes(ofType) && (kind === undefined || one === kind)).flatMap(
      (ofKind) =>
        RULE_SCOPES.filter((one) => scope === undefined || one === scope).map((ofScope) => ({
          ofKind,
          ofType,
          ofScope,
        })),
    ),
  )
  if (combinations.length === 0) return sql<string>`(select null::uuid where false)`
  const newest = combinations.map(
    ({ ofKind, ofType, ofScope }) => sql`(
      select r.id from access_rules r
      where r.organization_id = ${organizationId} and r.kind = ${ofKind} and r.type = ${ofType} and r.scope = ${ofScope}
        and (${after}::uuid is null or r.id < ${after}::uuid)
      order by r.id desc limit ${count}
    )`,
  )
  return sql<string>`(select id from (${sql.join(newest, sql` union all `)}) newest order by id desc limit ${count})`
}

export async function listRules(context: ReadContext, query: RuleQuery): Promise<Page<AccessRule>> {
  const list = { name: 'access-rules', organizationId: context.organizationId }
  const { kind, mode, type, scope, scopeId, value, set, expired } = query
  if (
    mode === undefined &&
    set === undefined &&
    scopeId === undefined &&
    value === undefined &&
    expired === undefined &&
    (kind ?? type ?? scope) !== undefined
  )
    return listPage(list, query, showRule, (after, count) =>
      selectRules(context)
        .where('accessRules.id', 'in', newestOfEach(context, { kind, type, scope }, after, count))
        .orderBy('accessRules.id', 'desc')
        .execute(),
    )
  let select = selectRules(context)
  if (kind !== undefined) select = select.where('accessRules.kind', '=', kind)
  if (mode !== undefined) select = select.where('accessRules.mode', '=', mode)
  if (type !== undefined) select = select.where('accessRules.type', '=', type)
  if (scope !== undefined) select = select.where('accessRules.scope', '=', scope)
  if (scopeId !== undefined) select = select.where('accessRules.scopeId', '=', scopeId)
  if (set !== undefined) select = select.where('accessRules.setId', '=', (await findSet(context, set))?.id ?? NO_ID)
  if (value !== undefined) select = select.where(valueCondition(value))
  // Without a function around the column, so that an index serves it.
  if (expired === true) select = select.where(sql<boolean>`access_rules.expires_at <= now()`)
  if (expired === false)
    select = select.where(sql<boolean>`(access_rules.expires_at is null or access_rules.expires_at > now())`)
  return selectPage(list, query, select, showRule, 'accessRules.id')
}

export async function readRule(context: ReadContext, id: string): Promise<AccessRule> {
  const row = await selectRules(context).where('accessRules.id', '=', id).executeTakeFirst()
  if (!row) throw notFound('access rule')
  return showRule(row)
}

/** A later expiry of an expired rule counts as adding a rule, so the plan limits it. */
async function requireRenewalWithinPlan(
  context: WriteContext,
  rule: AccessRule,
  expiresAt: Date | null | undefined,
): Promise<void> {
  if (expiresAt === undefined || rule.expiresAt === null || new Date(rule.expiresAt).getTime() > Date.now()) return
  await requireWithinPlan(context, await lockPlan(context), [rule])
}

export async function changeRule(
  context: WriteContext,
  id: string,
  input: z.output<typeof updateAccessRule>,
): Promise<AccessRule> {
  // The organization before the rule, as when rules are added: one order of locks cannot deadlock.
  if (input.expiresAt !== undefined) await lockPlan(context)
  const row = await selectRules(context)
    .where('accessRules.id', '=', id)
    .forNoKeyUpdate('accessRules')
    .executeTakeFirst()
  if (!row) throw notFound('access rule')
  const rule = showRule(row)
  const { expiresAt, allowSuspendedOrExpired } = input
  if (allowSuspendedOrExpired === true && rule.kind !== 'EXCLUSION')
    throw invalid(
      '#/allowSuspendedOrExpired',
      `must be false for a ${rule.kind}; only an EXCLUSION can allow these licenses`,
    )
  const changed = differences(row, input)
  if (changed === null) return rule
  await requireRenewalWithinPlan(context, rule, expiresAt)
  await updateRow(accessRuleRows, context, id, { ...changed, updatedAt: new Date() })
  await audit(context, { action: 'access_rule.changed', resourceType: 'access_rule', resourceId: id, changes: input })
  return readRule(context, id)
}

export async function deleteRule(context: WriteContext, id: string): Promise<void> {
  await deleteRow(accessRuleRows, context, id, {
    audited: ({ kind, type, value, scope, scopeId }) => ({ kind, type, value: value.toString('utf8'), scope, scopeId }),
  })
}

/** Reading, listing, changing and deleting access rules. What a rule matches never changes; that would be another rule. */
import {
  type AccessRule,
  RULE_TYPES,
  type RuleKind,
  type RuleScope,
  type RuleType,
  type updateAccessRule,
} from '@keyward/contract'
import type { Database } from '@keyward/database'
import { type Expression, type ExpressionBuilder, sql, type SqlBool } from 'kysely'
import type { z } from 'zod'

import { audit, type Change } from '../../audit/writer.ts'
import { differences } from '../../crud/differences.ts'
import type { Db } from '../../http/context.ts'
import { type PageQuery, readPage } from '../../http/pagination.ts'
import { invalid, notFound } from '../../http/problem.ts'
import { canonicalValue } from './canonical.ts'
import { lockPlan, refuseBeyondPlan } from './plan-limits.ts'
import { selectRules, showRule } from './show.ts'

export interface RuleQuery extends PageQuery {
  kind?: RuleKind | undefined
  type?: RuleType | undefined
  scope?: RuleScope | undefined
  scopeId?: string | undefined
  value?: string | undefined
  expired?: boolean | undefined
}

/** A value is found by any of its spellings. */
function valueCondition(value: string) {
  return (builder: ExpressionBuilder<Database, 'accessRules'>): Expression<SqlBool> =>
    builder.or(
      RULE_TYPES.flatMap((type) => {
        const canonical = canonicalValue(type, value)
        if (canonical === null) return []
        return builder.and([
          builder('accessRules.type', '=', type),
          builder('accessRules.value', '=', Buffer.from(canonical)),
        ])
      }),
    )
}

export async function listRules(db: Db, organizationId: string, query: RuleQuery) {
  const list = { name: 'access-rules', organizationId }
  const { kind, type, scope, scopeId, value, expired } = query
  let select = selectRules(db, organizationId)
  if (kind !== undefined) select = select.where('accessRules.kind', '=', kind)
  if (type !== undefined) select = select.where('accessRules.type', '=', type)
  if (scope !== undefined) select = select.where('accessRules.scope', '=', scope)
  if (scopeId !== undefined) select = select.where('accessRules.scopeId', '=', scopeId)
  if (value !== undefined) select = select.where(valueCondition(value))
  if (expired !== undefined)
    select = select.where(sql<boolean>`coalesce(access_rules.expires_at <= now(), false)`, '=', expired)
  return readPage(list, query, select, showRule, 'accessRules.id')
}

export async function readRule(db: Db, organizationId: string, id: string): Promise<AccessRule> {
  const row = await selectRules(db, organizationId).where('accessRules.id', '=', id).executeTakeFirst()
  if (!row) throw notFound('access rule')
  return showRule(row)
}

/** Making an expired rule unexpired counts as adding, so the plan has a say. */
async function refuseRevivalBeyondPlan(
  change: Change,
  rule: AccessRule,
  expiresAt: Date | null | undefined,
): Promise<void> {
  if (expiresAt === undefined || rule.expiresAt === null || new Date(rule.expiresAt).getTime() > Date.now()) return
  await refuseBeyondPlan(change, await lockPlan(change), [rule])
}

export async function changeRule(
  change: Change,
  id: string,
  input: z.output<typeof updateAccessRule>,
): Promise<AccessRule> {
  const { db, organizationId } = change
  // The organization first, as in every adding of rules, so that locks are always taken in one order.
  if (input.expiresAt !== undefined) await lockPlan(change)
  const row = await selectRules(db, organizationId)
    .where('accessRules.id', '=', id)
    .forNoKeyUpdate('accessRules')
    .executeTakeFirst()
  if (!row) throw notFound('access rule')
  const rule = showRule(row)
  const { expiresAt, allowSuspendedOrExpired } = input
  if (allowSuspendedOrExpired === true && rule.kind === 'BLACKLIST')
    throw invalid('#/allowSuspendedOrExpired', 'only an exclusion can let suspended and expired licenses through')
  const changed = differences(row, input)
  if (changed === null) return rule
  await refuseRevivalBeyondPlan(change, rule, expiresAt)
  await db
    .updateTable('accessRules')
    .set({ ...changed, updatedAt: new Date() })
    .where('id', '=', id)
    .execute()
  await audit(change, { action: 'access_rule.changed', resourceType: 'access_rule', resourceId: id, changes: input })
  return readRule(db, organizationId, id)
}

export async function deleteRule(change: Change, id: string): Promise<void> {
  const row = await change.db
    .deleteFrom('accessRules')
    .where('organizationId', '=', change.organizationId)
    .where('id', '=', id)
    .returning(['kind', 'type', 'value', 'scope', 'scopeId'])
    .executeTakeFirst()
  if (!row) throw notFound('access rule')
  const changes = { ...row, value: row.value.toString('utf8') }
  await audit(change, { action: 'access_rule.deleted', resourceType: 'access_rule', resourceId: id, changes })
}

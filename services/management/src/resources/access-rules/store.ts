/** Reads, changes and deletes access rules. The kind, type, value and scope of a rule never change (docs/api.md#r8). */

import type { AccessRule, updateAccessRule } from '@keyward/contract'
import { MAX_EVENT_IDS } from '@keyward/contract/management/events'
import type { z } from 'zod'

import { audit, listOf, valuesBefore } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { differences } from '../../crud/differences.ts'
import { deleteRow, updateRow } from '../../crud/owned-rows.ts'
import { invalid, notFound } from '../../http/problem.ts'
import { lockPlan, requireWithinPlan } from './plan-limits.ts'
import { accessRuleRows, selectRules, showRule } from './rule-rows.ts'

export async function readRule(context: ReadContext, id: string): Promise<AccessRule> {
  const row = await selectRules(context).where('accessRules.id', '=', id).executeTakeFirst()
  if (!row) throw notFound('access rule')
  return showRule(row)
}

/** Enforces the plan limits when an expired rule gets a new expiry, because this change counts as an addition. */
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
  // Locks the organization before the rule, as an addition does, so that a change and an addition cannot deadlock.
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
      `must be false for a ${rule.kind}; only an EXCLUSION can allow suspended or expired licenses`,
    )
  const changed = differences(row, input)
  if (changed === null) return rule
  await requireRenewalWithinPlan(context, rule, expiresAt)
  await updateRow(accessRuleRows, context, id, { ...changed, updatedAt: new Date() })
  const after = await readRule(context, id)
  await audit(context, {
    action: 'access_rule.changed',
    resourceType: 'access_rule',
    resourceId: id,
    changes: input,
    before: valuesBefore(row, changed),
    event: { type: 'access_rule.updated', resource: after, before: rule },
  })
  return after
}

export async function deleteRule(context: WriteContext, id: string): Promise<void> {
  const rule = await readRule(context, id)
  await deleteRow(accessRuleRows, context, id, {
    audited: () => rule,
    event: async () => ({ type: 'access_rule.deleted', resource: rule }),
  })
}

/** Deletes the rules with these ids in one statement. Returns the number of deleted rules and the number of ids without a rule. */
export async function deleteRulesById(
  context: WriteContext,
  ids: readonly string[],
): Promise<{ deleted: number; missing: number }> {
  const { db, organizationId } = context
  const distinct = [...new Set(ids)]
  const rows = await selectRules(context)
    .where('accessRules.id', 'in', distinct)
    .orderBy('accessRules.id')
    .forUpdate('accessRules')
    .execute()
  const found = rows.map(({ id }) => id)
  const result = { deleted: found.length, missing: distinct.length - found.length }
  if (found.length === 0) return result
  await db.deleteFrom('accessRules').where('organizationId', '=', organizationId).where('id', 'in', found).execute()
  const more = { deleted: found.length, ruleIds: found.slice(0, MAX_EVENT_IDS) }
  const event = { type: 'access_rules.deleted', more } as const
  await audit(context, {
    action: 'access_rules.deleted',
    resourceType: 'access_rule',
    resourceId: null,
    changes: { deleted: found.length, ids: found, rules: listOf(rows.map(showRule)) },
    event,
  })
  return result
}

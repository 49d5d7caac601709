/** Changes the mode of many rules in one transaction: of all selected rules, or of none (docs/api.md#r11). */

import { type AccessRule, type changedAccessRules, MAX_SET_RULES, type setAccessRuleMode } from '@keyward/contract'
import { MAX_EVENT_IDS } from '@keyward/contract/management/events'
import type { z } from 'zod'

import { audit, listOf } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { piecesOf } from '../../crud/pieces.ts'
import { invalid, invalidRequest } from '../../http/problem.ts'
import { estimateLastDay } from './last-day.ts'
import { readRulesAfter, type RuleFilter } from './list.ts'
import { lockPlan } from './plan-limits.ts'
import { auditedRule, selectRules, showRule } from './rule-rows.ts'
import { findSet, unknownSet } from './set-rows.ts'

const RULES_PER_READ = 1_000

async function readByIds(context: WriteContext, ids: readonly string[]): Promise<AccessRule[]> {
  const distinct = [...new Set(ids)]
  const rows = await selectRules(context).where('accessRules.id', 'in', distinct).orderBy('accessRules.id').execute()
  const found = new Set(rows.map(({ id }) => id))
  const missing = ids.flatMap((id, i) =>
    found.has(id) ? [] : [{ pointer: `#/ids/${i}`, detail: 'must be the id of an access rule of this organization' }],
  )
  if (missing.length > 0) throw invalidRequest(missing)
  return rows.map(showRule)
}

async function readByFilter(context: WriteContext, filter: RuleFilter, pointer: string): Promise<AccessRule[]> {
  const rules: AccessRule[] = []
  for (;;) {
    const next = await readRulesAfter(context, filter, rules.at(-1)?.id ?? null, RULES_PER_READ)
    rules.push(...next)
    if (rules.length > MAX_SET_RULES)
      throw invalid(pointer, `must select at most ${MAX_SET_RULES} rules; use several requests`)
    if (next.length < RULES_PER_READ) return rules
  }
}

export async function setMode(
  context: WriteContext,
  { mode, ids, set, filter = {}, dryRun = false }: z.output<typeof setAccessRuleMode>,
): Promise<z.output<typeof changedAccessRules>> {
  const { db, organizationId } = context
  await lockPlan(context)
  if (set !== undefined && (await findSet(context, set)) === undefined) throw unknownSet()
  const selected =
    ids === undefined
      ? await readByFilter(context, set === undefined ? filter : { set }, set === undefined ? '#/filter' : '#/set')
      : await readByIds(context, ids)
  if (selected.length === 0 && set === undefined) throw invalid('#/filter', 'must select at least one rule')
  const changed = selected.filter((rule) => rule.mode !== mode)
  const result = { updated: changed.length, unchanged: selected.length - changed.length }
  if (dryRun) return mode === 'ENFORCE' ? { ...result, lastDay: await estimateLastDay(context, changed) } : result
  if (changed.length === 0) return result
  const changedIds = changed.map(({ id }) => id)
  let updated = 0
  for (const piece of piecesOf(changedIds)) {
    const { numUpdatedRows } = await db
      .updateTable('accessRules')
      .set({ mode, updatedAt: new Date() })
      .where('organizationId', '=', organizationId)
      .where('id', 'in', piece)
      .executeTakeFirstOrThrow()
    updated += Number(numUpdatedRows)
  }
  if (updated !== changed.length) throw invalid('', 'selects a rule that was deleted meanwhile; repeat the request')
  await audit(context, {
    action: 'access_rules.changed',
    resourceType: 'access_rule',
    resourceId: null,
    changes: { mode, updated, ids: changedIds.slice(0, RULES_PER_READ) },
    before: { rules: listOf(changed.map(auditedRule)) },
    event: { type: 'access_rules.updated', more: { mode, updated, ruleIds: changedIds.slice(0, MAX_EVENT_IDS) } },
  })
  return result
}

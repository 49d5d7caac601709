/** Reads rows of access rules with their match counters, and converts them to the representation of the API. */

import type { AccessRule } from '@keyward/contract'

import { listedActor } from '../../audit/actors.ts'
import type { Db, ReadContext } from '../../context.ts'
import type { OwnedRows } from '../../crud/owned-rows.ts'

/** Selects the rules of all organizations. */
export function selectAllRules(db: Db) {
  return db
    .selectFrom('accessRules')
    .leftJoin('accessRuleCounters', 'accessRuleCounters.ruleId', 'accessRules.id')
    .leftJoin('accessRuleSets', 'accessRuleSets.id', 'accessRules.setId')
    .select([
      'accessRules.id',
      'accessRules.kind',
      'accessRules.mode',
      'accessRules.type',
      'accessRules.value',
      'accessRules.scope',
      'accessRules.scopeId',
      'accessRuleSets.name as set',
      'accessRules.note',
      'accessRules.expiresAt',
      'accessRules.allowSuspendedOrExpired',
      'accessRules.createdAt',
      'accessRules.updatedAt',
      'accessRules.createdBy',
      'accessRuleCounters.matchCount',
      'accessRuleCounters.lastMatchedAt',
    ])
}

export function selectRules({ db, organizationId }: ReadContext) {
  return selectAllRules(db).where('accessRules.organizationId', '=', organizationId)
}

export type RuleRow = Awaited<ReturnType<ReturnType<typeof selectRules>['executeTakeFirstOrThrow']>>

export function showRule(row: RuleRow): AccessRule {
  const { id, kind, mode, type, scope, scopeId, set, note, allowSuspendedOrExpired } = row
  return {
    id,
    kind,
    mode,
    type,
    value: row.value.toString('utf8'),
    scope,
    scopeId,
    set,
    note,
    expiresAt: row.expiresAt?.toISOString() ?? null,
    allowSuspendedOrExpired,
    matchCount: row.matchCount ?? 0,
    lastMatchedAt: row.lastMatchedAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    createdBy: listedActor(row.createdBy),
  }
}

type AuditedRule = Pick<
  AccessRule,
  'id' | 'kind' | 'mode' | 'type' | 'value' | 'scope' | 'scopeId' | 'set' | 'note' | 'allowSuspendedOrExpired'
> & { expiresAt: Date | string | null }

/** Returns the values of a rule that an audit entry about many rules contains. */
export function auditedRule(rule: AuditedRule): AuditedRule {
  const { id, kind, mode, type, value, scope, scopeId, set, note, expiresAt, allowSuspendedOrExpired } = rule
  return { id, kind, mode, type, value, scope, scopeId, set, note, expiresAt, allowSuspendedOrExpired }
}

/** The definition of the rows for writes. Responses also need the match counters, which `selectRules` reads. */
export const accessRuleRows: OwnedRows<'accessRules', string> = {
  table: 'accessRules',
  type: 'access_rule',
  show: ({ id }) => id,
}

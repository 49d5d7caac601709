/**
 * Replaces the rules of a set with a list, in one transaction that writes only the differences (docs/api.md#r9). The organization is locked,
 * so two replacements run one after the other.
 */

import { type CreateAccessRule, type ReplacedRuleSet, ruleSetName } from '@keyward/contract'
import { together } from '@keyward/database/kysely'
import { sql } from 'kysely'

import { audit, listOf } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { hiddenOrganization } from '../../crud/hidden-organization.ts'
import { readRow } from '../../crud/owned-rows.ts'
import { piecesOf } from '../../crud/pieces.ts'
import { ApiError, invalid, quote } from '../../http/problem.ts'
import type { Rows } from '../../http/upload-rows.ts'
import { requireWithinQuota } from '../../quotas/quotas.ts'
import {
  deleteRules,
  findExisting,
  insertRules,
  type NewRule,
  requireFewOfValue,
  showSkipped,
  validateRules,
} from '../access-rules/add.ts'
import { lockPlan, requireWithinPlan } from '../access-rules/plan-limits.ts'
import { auditedRule } from '../access-rules/rule-rows.ts'
import { findSet, requireSets, ruleSetRows } from '../access-rules/set-rows.ts'
import { type Existing, planAddition, planReplacement } from '../access-rules/sources.ts'

const RULES_PER_READ = 1_000

interface Options {
  allowEmpty?: boolean | undefined
  ifMatch?: string | null | undefined
}

function requireVersion(name: string, actual: string | undefined, ifMatch: string | null | undefined): void {
  if (ifMatch === undefined || ifMatch === (actual ?? null)) return
  const found = actual === undefined ? 'does not exist' : `has the version ${actual}`
  throw new ApiError('VERSION_MISMATCH', `The set ${quote(name)} ${found}. Read the set again, then repeat the change.`)
}

/** Returns the next RULES_PER_READ rules of the set after `afterId`, in the order of their ids. */
async function readNext({ db, organizationId }: WriteContext, setId: string, afterId: string | undefined) {
  return db
    .selectFrom('accessRules')
    .select(['id', 'kind', 'mode', 'type', 'value', 'scope', 'scopeId', 'note', 'expiresAt', 'allowSuspendedOrExpired'])
    .select(sql<boolean>`coalesce(expires_at <= now(), false)`.as('isExpired'))
    .where('organizationId', '=', organizationId)
    .where('setId', '=', setId)
    .$if(afterId !== undefined, (query) => query.where('id', '>', afterId!))
    .orderBy('id')
    .limit(RULES_PER_READ)
    .execute()
}

async function readRules(context: WriteContext, setId: string, set: string): Promise<Existing[]> {
  const rules: Existing[] = []
  for (;;) {
    const next = await readNext(context, setId, rules.at(-1)?.id)
    for (const row of next) rules.push({ ...row, set, value: row.value.toString('utf8') })
    if (next.length < RULES_PER_READ) return rules
  }
}

export async function updateRules({ db, organizationId }: WriteContext, rules: readonly NewRule[]): Promise<void> {
  for (const piece of piecesOf(rules)) {
    const column = <Value>(pick: (rule: NewRule) => Value): Value[] => piece.map(pick)
    await sql`
      update access_rules r
      set mode = n.mode, note = n.note, expires_at = n.expires_at, allow_suspended_or_expired = n.allow, updated_at = now()
      from unnest(
        ${column(({ id }) => id)}::uuid[], ${column(({ mode }) => mode)}::text[],
        ${column(({ note }) => note)}::text[], ${column(({ expiresAt }) => expiresAt)}::timestamptz[],
        ${column((rule) => rule.allowSuspendedOrExpired)}::boolean[]
      ) as n (id, mode, note, expires_at, allow)
      where r.id = n.id and r.organization_id = ${hiddenOrganization(organizationId)}`.execute(db)
  }
}

/** Replaces the rules of the set with the list. Throws VERSION_MISMATCH and the errors that an addition of rules can cause. */
export async function replaceSet(
  context: WriteContext,
  name: string,
  given: Rows<CreateAccessRule, Options>,
): Promise<ReplacedRuleSet> {
  const validName = ruleSetName.safeParse(name)
  if (!validName.success) throw invalid('/set', `must have 1 to 64 characters; got ${quote(name)}`)
  const [plan, [rules, before]] = await together(
    lockPlan(context),
    validateRules(context, given, name, () => findSet(context, name)),
  )
  requireVersion(name, before?.version, given.others?.ifMatch)

  if (rules.length === 0 && given.others?.allowEmpty !== true)
    throw invalid(
      '#/rules',
      `must not be empty, because this would delete all ${before?.rules ?? 0} rules of the set; to delete them, send "allowEmpty": true`,
    )

  const { added: distinct, skipped } = await planAddition([], rules)
  const stored = before === undefined ? [] : await readRules(context, before.id, name)
  const { created, updated, unchanged, removed, renewed, kept } = await planReplacement(stored, distinct)
  const removedIds = removed.map(({ id }) => id)
  await deleteRules(context, removedIds)
  await updateRules(context, updated)
  // The existing rules are now those that the set keeps, none of which covers a row in `created`, and those of other sources.
  const { added, replaced, excessive } = await planAddition(await findExisting(context, created), created)
  requireFewOfValue(excessive)
  await requireWithinPlan(
    context,
    plan,
    added,
    removed.filter(({ isExpired }) => !isExpired),
  )
  await requireWithinQuota(context, 'accessRules', Math.max(0, added.length - replaced.length))
  await deleteRules(
    context,
    replaced.map(({ id }) => id),
  )
  const setIds = await requireSets(context, [name])
  await insertRules(context, added, setIds)
  const counts = {
    created: added.length,
    updated: updated.length,
    unchanged: unchanged.length,
    removed: removed.length - renewed,
    skipped: skipped.length,
  }
  const version = (await findSet(context, name))?.version ?? ''
  const isChanged = version !== before?.version
  if (isChanged)
    await auditReplacement(
      context,
      setIds.get(name)!,
      { set: name, version, ...counts },
      { created: added, updated, stored, removed, replaced, before: before?.version },
    )
  const covered = skipped.map(({ rule, by }) => ({ rule, by: kept.get(by) ?? by }))
  return { version, ...counts, skippedRows: showSkipped(covered) }
}

interface Written {
  created: readonly NewRule[]
  updated: readonly NewRule[]
  /** The rules of the set before the replacement. */
  stored: readonly Existing[]
  removed: readonly Existing[]
  /** Expired rules of other sources that created rules replace. */
  replaced: readonly Existing[]
  /** The version of the set before the replacement. */
  before: string | undefined
}

/** Writes the audit entry. It contains the first values each of created, updated and removed rules. */
async function auditReplacement(
  context: WriteContext,
  setId: string,
  summary: { set: string; version: string } & Omit<ReplacedRuleSet, 'version' | 'skippedRows'>,
  { created, updated, stored, removed, replaced, before }: Written,
): Promise<void> {
  const updatedIds = new Set(updated.map(({ id }) => id))
  const values = (rules: Iterable<Existing | NewRule>) => listOf(Array.from(rules, auditedRule))
  const { created: _created, updated: _updated, ...counts } = summary
  await audit(context, {
    action: 'access_rule_set.replaced',
    resourceType: 'access_rule_set',
    resourceId: null,
    changes: { ...counts, created: values(created), updated: values(updated.toSorted(byId)) },
    before: {
      version: before ?? null,
      updated: values(stored.filter(({ id }) => updatedIds.has(id))),
      removed: values([...removed, ...replaced]),
    },
    event: {
      type: 'access_rule_set.replaced',
      resource: await readRow(ruleSetRows, context, setId),
      more: {
        created: summary.created,
        updated: summary.updated,
        removed: summary.removed,
        unchanged: summary.unchanged,
      },
    },
  })
}

function byId(one: { id: string }, other: { id: string }): number {
  return one.id < other.id ? -1 : 1
}

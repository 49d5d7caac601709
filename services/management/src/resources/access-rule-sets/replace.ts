/**
 * Replaces the rules of a set with a list, in one transaction that writes only the differences (docs/api.md#r9). The organization is locked,
 * so two replacements run one after the other.
 */

import { type CreateAccessRule, MAX_IMPORT_ROWS, type ReplacedRuleSet, ruleSetName } from '@keyward/contract'
import { sql } from 'kysely'

import { audit } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { hiddenOrganization } from '../../crud/hidden-organization.ts'
import { readRow } from '../../crud/owned-rows.ts'
import { piecesOf } from '../../crud/pieces.ts'
import { ApiError, invalid, quote } from '../../http/problem.ts'
import type { Rows } from '../../http/upload-rows.ts'
import { requireWithinQuota } from '../../quotas/quotas.ts'
import { inTurns } from '../../turns.ts'
import {
  deleteRules,
  findDuplicates,
  identityOf,
  insertRules,
  type NewRule,
  validateRules,
  withoutRepeats,
} from '../access-rules/add.ts'
import { lockPlan, requireWithinPlan } from '../access-rules/plan-limits.ts'
import { findSet, requireSets, ruleSetRows } from '../access-rules/set-rows.ts'

const MAX_SKIPPED_IDS = 100
const RULES_PER_READ = 1_000

interface Options {
  ifMatch?: string | null | undefined
}

/** The differences between the rules of the set and the list. */
interface Difference {
  created: NewRule[]
  /** The changed rules, with the ids of the stored rules. */
  updated: NewRule[]
  unchanged: number
  /** The ids of stored rules that the list does not contain, and of expired rules that it contains. */
  removed: string[]
  /** The number of expired rules in `removed` that a rule in `created` replaces. */
  renewed: number
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

type StoredRule = Awaited<ReturnType<typeof readNext>>[number]

async function readRules(context: WriteContext, setId: string): Promise<StoredRule[]> {
  const rules: StoredRule[] = []
  for (;;) {
    const next = await readNext(context, setId, rules.at(-1)?.id)
    rules.push(...next)
    if (next.length < RULES_PER_READ) return rules
  }
}

function isSame(stored: StoredRule, rule: NewRule): boolean {
  return (
    stored.mode === (rule.mode ?? 'ENFORCE') &&
    stored.note === (rule.note ?? null) &&
    stored.expiresAt?.getTime() === rule.expiresAt?.getTime() &&
    stored.allowSuspendedOrExpired === (rule.allowSuspendedOrExpired ?? false)
  )
}

async function compare(stored: readonly StoredRule[], rules: readonly NewRule[]): Promise<Difference> {
  const difference: Difference = { created: [], updated: [], unchanged: 0, removed: [], renewed: 0 }
  const rest = new Map<string, StoredRule>()
  for await (const rule of inTurns(stored)) rest.set(identityOf({ ...rule, value: rule.value.toString('utf8') }), rule)
  for await (const rule of inTurns(rules)) {
    const identity = identityOf(rule)
    const found = rest.get(identity)
    // A new rule replaces an expired one, as in every addition.
    if (found === undefined || found.isExpired) difference.created.push(rule)
    else if (isSame(found, rule)) difference.unchanged++
    else difference.updated.push({ ...rule, id: found.id })
    if (found?.isExpired) difference.renewed++
    else rest.delete(identity)
  }
  difference.removed = Array.from(rest.values(), ({ id }) => id)
  return difference
}

export async function updateRules({ db, organizationId }: WriteContext, rules: readonly NewRule[]): Promise<void> {
  for (const piece of piecesOf(rules)) {
    const column = <Value>(pick: (rule: NewRule) => Value): Value[] => piece.map(pick)
    await sql`
      update access_rules r
      set mode = n.mode, note = n.note, expires_at = n.expires_at, allow_suspended_or_expired = n.allow, updated_at = now()
      from unnest(
        ${column(({ id }) => id)}::uuid[], ${column(({ mode }) => mode ?? 'ENFORCE')}::text[],
        ${column(({ note }) => note ?? null)}::text[], ${column(({ expiresAt }) => expiresAt ?? null)}::timestamptz[],
        ${column((rule) => rule.allowSuspendedOrExpired ?? false)}::boolean[]
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
  const plan = await lockPlan(context)
  const rules = await validateRules(context, given)
  const before = await findSet(context, name)
  requireVersion(name, before?.version, given.others?.ifMatch)

  const distinct = await withoutRepeats(rules)
  const difference = await compare(before === undefined ? [] : await readRules(context, before.id), distinct)
  const { updated, unchanged, removed, renewed } = difference
  await deleteRules(context, removed)
  // After the deletion, every duplicate is outside the set.
  const duplicates = await findDuplicates(context, difference.created)
  const unexpired = duplicates.filter(({ expired }) => !expired)
  const skippedIds = new Set(unexpired.map(({ newRuleId }) => newRuleId))
  const created = difference.created.filter(({ id }) => !skippedIds.has(id))
  await requireWithinPlan(context, plan, created)
  await requireWithinQuota(context, 'accessRules', Math.max(0, created.length - (duplicates.length - unexpired.length)))
  await deleteRules(
    context,
    duplicates.flatMap(({ expired, ruleId }) => (expired ? ruleId : [])),
  )
  const setId = (await requireSets(context, [name])).get(name)!
  await updateRules(context, updated)
  for (const rule of created) rule.setId = setId
  await insertRules(context, created)
  const counts = {
    created: created.length,
    updated: updated.length,
    unchanged,
    removed: removed.length - renewed,
    skipped: rules.length - created.length - updated.length - unchanged,
  }
  const version = (await findSet(context, name))?.version ?? ''
  const isChanged = version !== before?.version
  if (isChanged)
    await auditReplacement(context, setId, { set: name, version, ...counts }, { created, removed, updated })
  const ruleIds = unexpired.map(({ ruleId }) => ruleId)
  return { version, ...counts, skippedIds: ruleIds.slice(0, MAX_SKIPPED_IDS) }
}

/** Writes the audit entry. It contains at most MAX_IMPORT_ROWS ids each of created, updated and removed rules. */
async function auditReplacement(
  context: WriteContext,
  setId: string,
  summary: { set: string; version: string } & Omit<ReplacedRuleSet, 'version' | 'skippedIds'>,
  { created, updated, removed }: { created: NewRule[]; updated: NewRule[]; removed: string[] },
): Promise<void> {
  const first = (ids: readonly string[]): readonly string[] => ids.slice(0, MAX_IMPORT_ROWS)
  const idsOf = (rules: readonly NewRule[]) => first(rules.map(({ id }) => id))
  const changes = { ...summary, createdIds: idsOf(created), updatedIds: idsOf(updated), removedIds: first(removed) }
  await audit(context, {
    action: 'access_rule_set.replaced',
    resourceType: 'access_rule_set',
    resourceId: null,
    changes,
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

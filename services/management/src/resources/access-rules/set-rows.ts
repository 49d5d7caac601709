/**
 * Finds and creates sets of access rules. A trigger counts the rules of a set, and assigns a new version to the set after every change of a
 * rule.
 */

import type { AccessRuleSet } from '@keyward/contract'
import { uuidv7 } from '@keyward/database'

import type { ReadContext, WriteContext } from '../../context.ts'
import type { OwnedRows } from '../../crud/owned-rows.ts'
import { ApiError } from '../../http/problem.ts'
import { requireWithinQuota } from '../../quotas/quotas.ts'

export const ruleSetRows: OwnedRows<'accessRuleSets', AccessRuleSet> = {
  table: 'accessRuleSets',
  type: 'access_rule_set',
  show: ({ name, version, rules, createdAt, updatedAt }) => ({
    name,
    version,
    rules,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }),
}

export function unknownSet(): ApiError {
  return new ApiError('NOT_FOUND', 'There is no set of access rules with this name.')
}

/** Returns the id, the version and the number of rules of a set, or undefined for an unknown name. */
export async function findSet(
  { db, organizationId }: ReadContext,
  name: string,
): Promise<{ id: string; version: string; rules: number } | undefined> {
  return db
    .selectFrom('accessRuleSets')
    .select(['id', 'version', 'rules'])
    .where('organizationId', '=', organizationId)
    .where('name', '=', name)
    .executeTakeFirst()
}

/**
 * Returns the ids of the sets by name, and creates sets that do not exist. The caller must have locked the organization, so that no other
 * transaction creates the same set. Throws QUOTA_EXCEEDED.
 */
export async function requireSets(context: WriteContext, names: readonly string[]): Promise<Map<string, string>> {
  const { db, organizationId } = context
  const ids = new Map<string, string>()
  if (names.length === 0) return ids
  const distinct = [...new Set(names)]
  const known = await db
    .selectFrom('accessRuleSets')
    .select(['id', 'name'])
    .where('organizationId', '=', organizationId)
    .where('name', 'in', distinct)
    .execute()
  for (const { id, name } of known) ids.set(name, id)
  const fresh = distinct.filter((name) => !ids.has(name)).map((name) => ({ id: uuidv7(), organizationId, name }))
  if (fresh.length === 0) return ids
  await requireWithinQuota(context, 'ruleSets', fresh.length)
  await db.insertInto('accessRuleSets').values(fresh).execute()
  for (const { id, name } of fresh) ids.set(name, id)
  return ids
}

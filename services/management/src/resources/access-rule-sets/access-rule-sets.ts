/** Defines the endpoints of sets of access rules (docs/api.md#r9). */

import { type AccessRuleSet, accessRuleSets as operations } from '@keyward/contract'

import { audit } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { listRows, readRow } from '../../crud/owned-rows.ts'
import { implement } from '../../operations/implement.ts'
import { accessRuleTag } from '../access-rules/access-rules.ts'
import { firstRules } from '../access-rules/list.ts'
import { lockPlan } from '../access-rules/plan-limits.ts'
import { findSet, ruleSetRows, unknownSet } from '../access-rules/set-rows.ts'
import { replaceSet } from './replace.ts'

async function readSet(context: ReadContext, name: string): Promise<AccessRuleSet> {
  // Postgres cannot store NUL in text, so no set has a name with NUL.
  const found = name.includes('\u0000') ? undefined : await findSet(context, name)
  if (!found) throw unknownSet()
  return readRow(ruleSetRows, context, found.id)
}

/** Deletes the set and its rules. */
async function deleteSet(context: WriteContext, name: string): Promise<void> {
  const { db, organizationId } = context
  await lockPlan(context)
  const set = await readSet(context, name)
  const rules = await firstRules(context, { set: name })
  // The cascade deletes the rules of the set in the same statement, so validators apply all deletions as one change.
  await db.deleteFrom('accessRuleSets').where('organizationId', '=', organizationId).where('name', '=', name).execute()
  const changes = { set: name, version: set.version, removed: { count: set.rules, first: rules.first } }
  await audit(context, {
    action: 'access_rule_set.deleted',
    resourceType: 'access_rule_set',
    resourceId: null,
    changes,
    event: { type: 'access_rule_set.deleted', resource: set },
  })
}

export const accessRuleSets = implement(accessRuleTag, operations, {
  listAccessRuleSets: {
    summary: 'List sets of access rules',
    handle: (call) => listRows(ruleSetRows, call, call.query),
  },
  readAccessRuleSet: {
    summary: 'Read a set of access rules',
    description: 'Returns the version and the number of rules of the set. `GET /access-rules?set=` lists its rules.',
    handle: (call) => readSet(call, call.params.set),
  },
  replaceAccessRuleSet: {
    summary: 'Replace a set of access rules',
    description:
      'Replaces the rules of the set with this list of at most 20,000 rules, or changes nothing. Creates the set if needed. Only the ' +
      'differences are written. Rules of other sources stay unchanged. An empty list requires `allowEmpty: true`.',
    errors: ['VERSION_MISMATCH', 'IMPORT_TOO_LARGE', 'RULE_LIMIT_REACHED', 'COUNTRY_RULES_NOT_IN_PLAN'],
    handle: (call) => replaceSet(call, call.params.set, call.body),
  },
  deleteAccessRuleSet: {
    summary: 'Delete a set of access rules',
    description: 'Deletes the set and its rules.',
    handle: (call) => deleteSet(call, call.params.set),
  },
})

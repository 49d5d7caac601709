/** Defines the endpoints of sets of access rules (docs/api.md#r9). */

import {
  type AccessRuleSet,
  accessRuleSet,
  listQuery,
  page,
  replacedRuleSet,
  replaceRuleSet,
  replaceRuleSetOptions,
  ruleOfSet,
  ruleSetParams,
} from '@keyward/contract'

import { audit } from '../../audit/writer.ts'
import { listRows, readRow } from '../../crud/rows.ts'
import type { ReadContext, WriteContext } from '../../http/context.ts'
import { vendorEndpoint } from '../../http/endpoint.ts'
import { ApiError } from '../../http/problem.ts'
import { rowsOf } from '../../http/rows.ts'
import { accessRuleTag } from '../access-rules/access-rules.ts'
import { lockPlan } from '../access-rules/plan-limits.ts'
import { findSet, ruleSetRows } from '../access-rules/set-rows.ts'
import { replaceSet } from './replace.ts'

function unknownSet(): ApiError {
  return new ApiError('NOT_FOUND', 'There is no set of access rules with this name.')
}

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
  // The cascade deletes the rules of the set in the same statement, so validators apply all deletions as one change.
  await db.deleteFrom('accessRuleSets').where('organizationId', '=', organizationId).where('name', '=', name).execute()
  const changes = { set: name, version: set.version, removed: set.rules }
  await audit(context, {
    action: 'access_rule_set.deleted',
    resourceType: 'access_rule_set',
    resourceId: null,
    changes,
    event: { type: 'access_rule_set.deleted', resource: set },
  })
}

const item = { tag: accessRuleTag, path: '/access-rules/sets/{set}', params: ruleSetParams } as const

export const accessRuleSets = [
  vendorEndpoint(
    'licenses.read',
    {
      method: 'get',
      path: '/access-rules/sets',
      tag: accessRuleTag,
      operationId: 'listAccessRuleSets',
      summary: 'List sets of access rules',
      query: listQuery({}),
      status: 200,
      response: page(accessRuleSet),
    },
    (call) => listRows(ruleSetRows, call, call.query),
  ),
  vendorEndpoint(
    'licenses.read',
    {
      ...item,
      method: 'get',
      operationId: 'readAccessRuleSet',
      summary: 'Read a set of access rules',
      description: 'Returns the version and the number of rules of the set. `GET /access-rules?set=` lists its rules.',
      status: 200,
      response: accessRuleSet,
    },
    (call) => readSet(call, call.params.set),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      ...item,
      method: 'put',
      operationId: 'replaceAccessRuleSet',
      summary: 'Replace a set of access rules',
      description:
        'Replaces the rules of the set with this list of at most 20,000 rules, or changes nothing. Creates the set if needed. Only the ' +
        'differences are written. Rules outside the set stay unchanged, and a row that equals one of them is skipped.',
      rows: rowsOf('rules', ruleOfSet, {
        maxRowBytes: 16 * 1024,
        maxRows: 20_000,
        minRows: 0,
        others: replaceRuleSetOptions,
      }),
      documentedBody: replaceRuleSet,
      maxBodyBytes: 32 * 1024 * 1024,
      status: 200,
      response: replacedRuleSet,
      errors: [
        'VERSION_MISMATCH',
        'IMPORT_TOO_LARGE',
        'RULE_LIMIT_REACHED',
        'COUNTRY_RULES_NOT_IN_PLAN',
        'QUOTA_EXCEEDED',
      ],
      propagates: true,
    },
    (call) => replaceSet(call, call.params.set, call.body),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      ...item,
      method: 'delete',
      operationId: 'deleteAccessRuleSet',
      summary: 'Delete a set of access rules',
      description: 'Deletes the set and its rules.',
      status: 204,
      propagates: true,
    },
    (call) => deleteSet(call, call.params.set),
  ),
]

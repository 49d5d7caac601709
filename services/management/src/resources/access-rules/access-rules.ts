/** Endpoints of access rules. */

import {
  accessRule,
  accessRuleFilter,
  createAccessRule,
  importAccessRules,
  importedAccessRules,
  myIp,
  updateAccessRule,
} from '@keyward/contract'

import { crudEndpoints } from '../../crud/endpoints.ts'
import { vendorEndpoint } from '../../http/endpoint.ts'
import { rowsOf } from '../../http/rows.ts'
import { addRule, importRules } from './add.ts'
import { changeRule, deleteRule, listRules, readRule } from './store.ts'

/** Also the tag of the endpoint that evaluates rules. */
export const accessRuleTag = {
  name: 'Access rules',
  description:
    'Blacklists, which reject checks, exclusions, which let them pass, and restrictions, which reject all others.',
}
const limits = ['RULE_LIMIT_REACHED', 'COUNTRY_RULES_NOT_IN_PLAN'] as const
const additionLimits = [...limits, 'QUOTA_EXCEEDED'] as const

const crud = crudEndpoints({
  tag: accessRuleTag,
  path: '/access-rules',
  operation: 'AccessRule',
  noun: 'an access rule',
  readPermission: 'licenses.read',
  writePermission: 'licenses.write',
  schema: accessRule,
})

export const accessRules = [
  crud.list(accessRuleFilter, (call) => listRules(call, call.query)),
  crud.create(
    {
      description: 'The value is stored in canonical form. An expired rule with the same value and scope is replaced.',
      body: createAccessRule,
      errors: ['RULE_EXISTS', ...additionLimits],
      propagates: true,
    },
    (call) => addRule(call, call.body),
  ),
  crud.read({}, (call) => readRule(call, call.params.id)),
  crud.change(
    {
      description: 'A later expiry of an expired rule counts as adding a rule.',
      body: updateAccessRule,
      errors: limits,
      propagates: true,
    },
    (call) => changeRule(call, call.params.id, call.body),
  ),
  crud.delete({ propagates: true }, (call) => deleteRule(call, call.params.id)),
  vendorEndpoint(
    'licenses.write',
    {
      method: 'post',
      path: '/access-rules/import',
      tag: accessRuleTag,
      operationId: 'importAccessRules',
      summary: 'Import access rules',
      description:
        'Adds all rows, at most 1,000, or none. Existing rules and rows that repeat an earlier row are skipped. ' +
        'An error response lists every bad row.',
      rows: rowsOf('rules', createAccessRule, { maxRowBytes: 16 * 1024 }),
      documentedBody: importAccessRules,
      maxBodyBytes: 8 * 1024 * 1024,
      status: 200,
      response: importedAccessRules,
      errors: ['IMPORT_TOO_LARGE', ...additionLimits],
      propagates: true,
    },
    (call) => importRules(call, call.body),
  ),
  vendorEndpoint(
    'licenses.read',
    {
      method: 'get',
      path: '/access-rules/my-ip',
      tag: accessRuleTag,
      operationId: 'readMyIp',
      summary: 'Read your own address',
      description: 'Returns the address and country of this request, as a validator would see them. Neither is stored.',
      status: 200,
      response: myIp,
    },
    async (call) => call.origin(),
  ),
]

import { accessRules as operations } from '@keyward/contract'

import { streamFile } from '../../crud/export.ts'
import { implement } from '../../operations/implement.ts'
import { addRule, importRules } from './add.ts'
import { exportRules } from './export.ts'
import { listRules } from './list.ts'
import { setMode } from './set-mode.ts'
import { changeRule, deleteRule, deleteRulesById, readRule } from './store.ts'

/** The OpenAPI tag of the endpoints for access rules and for their evaluation. */
export const accessRuleTag = {
  name: 'Access rules',
  description:
    'Blacklists reject matching checks, exclusions let matching checks pass, and restrictions reject all other checks.',
}
const limits = ['RULE_LIMIT_REACHED', 'COUNTRY_RULES_NOT_IN_PLAN'] as const

export const accessRules = implement(accessRuleTag, operations, {
  listAccessRules: { summary: 'List access rules', handle: (call) => listRules(call, call.query) },
  createAccessRule: {
    summary: 'Create an access rule',
    description:
      'The value is stored in canonical form. The rule may have the same value as rules of other sources, modes or ends. It replaces expired ' +
      'rules with its kind, type, value and scope.',
    errors: ['RULE_EXISTS', ...limits],
    handle: (call) => addRule(call, call.body),
  },
  readAccessRule: { summary: 'Read an access rule', handle: (call) => readRule(call, call.params.id) },
  updateAccessRule: {
    summary: 'Change an access rule',
    description: 'A later expiry of an expired rule counts as adding a rule.',
    errors: limits,
    handle: (call) => changeRule(call, call.params.id, call.body),
  },
  deleteAccessRule: { summary: 'Delete an access rule', handle: (call) => deleteRule(call, call.params.id) },
  importAccessRules: {
    summary: 'Import access rules',
    description:
      'Adds all rows, at most 1,000, or none. A row is skipped if an existing rule of the same source, or another row, does all that it says. ' +
      'An error response lists every invalid row.',
    errors: ['IMPORT_TOO_LARGE', ...limits],
    handle: (call) => importRules(call, call.body),
  },
  exportAccessRules: {
    summary: 'Export access rules',
    description:
      'Streams all rules of the filter, oldest first, in the format of an import. An import rejects expired rules; `expired=false` omits them. ' +
      'With `format=csv`, the response is `text/csv` with a heading line.',
    handle(call) {
      const { format, ...filter } = call.query
      const file = { name: 'access-rules', format, resourceType: 'access_rule', filter }
      return streamFile(call, file, (page) => exportRules(call, filter, format, page))
    },
  },
  deleteAccessRules: {
    summary: 'Delete many access rules',
    description: 'Deletes the rules with these ids, at most 1,000, in one step. Ids without a rule are counted.',
    handle: (call) => deleteRulesById(call, call.body.ids),
  },
  setAccessRuleMode: {
    summary: 'Change the mode of many access rules',
    description:
      'Enforces or monitors the rules with these ids, of a set, or of a filter, at most 20,000. Changes all of them in one step, or none. ' +
      'Every id must belong to a rule. With `dryRun`, nothing changes, and the response estimates how many checks of the last day would have ' +
      'been rejected.',
    errors: ['NOT_FOUND'],
    handle: (call) => setMode(call, call.body),
  },
  readMyIp: {
    summary: 'Read your own address',
    description:
      'Returns the address and country of this request, as a validator would determine them. Neither is stored.',
    handle: async (call) => call.origin(),
  },
})

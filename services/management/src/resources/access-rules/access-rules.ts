/** Defines the endpoints of access rules. */

import {
  accessRule,
  accessRuleFilter,
  accessRuleSorting,
  createAccessRule,
  deleteAccessRules,
  deletedAccessRules,
  exportAccessRules,
  exportedAccessRules,
  importAccessRules,
  importedAccessRules,
  myIp,
  updateAccessRule,
} from '@keyward/contract'

import { crudEndpoints } from '../../crud/endpoints.ts'
import type { ReadContext } from '../../http/context.ts'
import type { Dependencies } from '../../http/dependencies.ts'
import { vendorEndpoint } from '../../http/endpoint.ts'
import { shareOf } from '../../http/gates.ts'
import { rowsOf } from '../../http/rows.ts'
import { Streamed } from '../../http/streamed.ts'
import { addRule, importRules } from './add.ts'
import { exportRules } from './export.ts'
import { listRules, type RuleFilter } from './list.ts'
import { changeRule, deleteRule, deleteRulesById, readRule } from './store.ts'

/** The OpenAPI tag of the endpoints for access rules and for their evaluation. */
export const accessRuleTag = {
  name: 'Access rules',
  description:
    'Blacklists reject matching checks, exclusions let matching checks pass, and restrictions reject all other checks.',
}
const limits = ['RULE_LIMIT_REACHED', 'COUNTRY_RULES_NOT_IN_PLAN'] as const
const additionLimits = [...limits, 'QUOTA_EXCEEDED'] as const

/** Streams the rules that satisfy a filter. Each page is a separate read, which waits for its share of the connections. */
async function streamRules(
  context: ReadContext & { dependencies: Dependencies },
  filter: RuleFilter,
  format: 'csv' | 'json',
): Promise<Streamed> {
  const { reads, exports } = context.dependencies.gates
  const share = shareOf({ kind: 'vendor', organizationId: context.organizationId })
  const leave = await exports.enter(share)
  const chunks = exportRules(context, filter, format, async (read) => {
    const leaveReads = await reads.enter(share)
    try {
      return await read()
    } finally {
      leaveReads()
    }
  })
  return new Streamed(chunks, leave)
}

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
  crud.list({ ...accessRuleFilter, ...accessRuleSorting }, (call) => listRules(call, call.query)),
  crud.create(
    {
      description:
        'The value is stored in canonical form. A rule that equals an expired rule in kind, type, value and scope replaces it.',
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
        'An error response lists every invalid row.',
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
      path: '/access-rules/export',
      tag: accessRuleTag,
      operationId: 'exportAccessRules',
      summary: 'Export access rules',
      description:
        'Streams all rules of the filter, oldest first, in the format of an import. An import rejects expired rules; `expired=false` omits them. ' +
        'With `format=csv`, the response is `text/csv` with a heading line.',
      query: exportAccessRules,
      status: 200,
      response: exportedAccessRules,
      streams: true,
    },
    async (call) => {
      const { format, ...filter } = call.query
      call.headers['content-type'] = format === 'csv' ? 'text/csv; charset=utf-8' : 'application/json; charset=utf-8'
      call.headers['content-disposition'] = `attachment; filename="access-rules.${format}"`
      return streamRules(call, filter, format)
    },
  ),
  vendorEndpoint(
    'licenses.write',
    {
      method: 'post',
      path: '/access-rules/delete',
      tag: accessRuleTag,
      operationId: 'deleteAccessRules',
      summary: 'Delete many access rules',
      description: 'Deletes the rules with these ids, at most 1,000, in one step. Ids without a rule are counted.',
      body: deleteAccessRules,
      status: 200,
      response: deletedAccessRules,
      propagates: true,
    },
    (call) => deleteRulesById(call, call.body.ids),
  ),
  vendorEndpoint(
    'licenses.read',
    {
      method: 'get',
      path: '/access-rules/my-ip',
      tag: accessRuleTag,
      operationId: 'readMyIp',
      summary: 'Read your own address',
      description:
        'Returns the address and country of this request, as a validator would determine them. Neither is stored.',
      status: 200,
      response: myIp,
    },
    async (call) => call.origin(),
  ),
]

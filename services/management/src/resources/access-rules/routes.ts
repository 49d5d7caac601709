/** Endpoints of access rules (API document, "Endpoints"). */
import {
  accessRule,
  accessRuleFilter,
  createAccessRule,
  evaluateCheck,
  evaluation,
  idParams,
  importAccessRules,
  importedAccessRules,
  listQuery,
  myIp,
  page,
  updateAccessRule,
} from '@keyward/contract'

import { evaluate } from '../../evaluate/dry-run.ts'
import { vendorEndpoint } from '../../http/endpoint.ts'
import { basePath } from '../../http/paths.ts'
import { rowByRow } from '../../http/validation-errors.ts'
import { addRule, importRules } from './add.ts'
import { changeRule, deleteRule, listRules, readRule } from './store.ts'

const tag = 'Access rules'
const path = '/access-rules'
const one = { tag, path: `${path}/{id}`, params: idParams } as const
const limits = ['RULE_LIMIT_REACHED', 'COUNTRY_RULES_NOT_IN_PLAN'] as const

const single = [
  vendorEndpoint(
    'licenses.read',
    {
      method: 'get',
      path,
      tag,
      operationId: 'listAccessRules',
      summary: 'List access rules',
      query: listQuery(accessRuleFilter),
      status: 200,
      answer: page(accessRule),
    },
    ({ db, organizationId, query }) => listRules(db, organizationId, query),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      method: 'post',
      path,
      tag,
      operationId: 'createAccessRule',
      summary: 'Create an access rule',
      description: 'The value is kept in canonical form. An expired rule of the same value and scope is replaced.',
      body: createAccessRule,
      status: 201,
      answer: accessRule,
      errors: ['RULE_EXISTS', ...limits],
      propagates: true,
    },
    async (call) => {
      const created = await addRule(call, call.body)
      call.headers['location'] = `${basePath}${path}/${created.id}`
      return created
    },
  ),
  vendorEndpoint(
    'licenses.read',
    {
      ...one,
      method: 'get',
      operationId: 'readAccessRule',
      summary: 'Read an access rule',
      status: 200,
      answer: accessRule,
    },
    ({ db, organizationId, params }) => readRule(db, organizationId, params.id),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      ...one,
      method: 'patch',
      operationId: 'updateAccessRule',
      summary: 'Change an access rule',
      description: 'Making an expired rule unexpired counts as adding one.',
      body: updateAccessRule,
      status: 200,
      answer: accessRule,
      errors: limits,
      propagates: true,
    },
    (call) => changeRule(call, call.params.id, call.body),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      ...one,
      method: 'delete',
      operationId: 'deleteAccessRule',
      summary: 'Delete an access rule',
      status: 204,
      propagates: true,
    },
    (call) => deleteRule(call, call.params.id),
  ),
]

const others = [
  vendorEndpoint(
    'licenses.write',
    {
      method: 'post',
      path: `${path}/import`,
      tag,
      operationId: 'importAccessRules',
      summary: 'Import access rules',
      description:
        'Every row or none is added, at most 1,000. Rules that exist, and repeats inside the list, are skipped. ' +
        'A refusal points to every bad row.',
      body: rowByRow('rules', createAccessRule),
      documentedBody: importAccessRules,
      importRows: 'rules',
      status: 200,
      answer: importedAccessRules,
      errors: ['IMPORT_TOO_LARGE', ...limits],
      propagates: true,
    },
    (call) => importRules(call, call.body),
  ),
  vendorEndpoint(
    'licenses.read',
    {
      method: 'get',
      path: `${path}/my-ip`,
      tag,
      operationId: 'readMyIp',
      summary: 'Read your own address',
      description: 'As the validators would see it; for creating an exclusion. It is not stored.',
      status: 200,
      answer: myIp,
    },
    async (call) => call.client(),
  ),
  vendorEndpoint(
    'licenses.read',
    {
      method: 'post',
      path: `${path}/evaluate`,
      tag,
      operationId: 'evaluateAccessRules',
      summary: 'Try a check',
      description: 'A dry run with the engine that answers real checks. It takes no machine slot and counts nothing.',
      body: evaluateCheck,
      status: 200,
      answer: evaluation,
      readOnly: true,
    },
    ({ db, organizationId, body }) => evaluate(db, organizationId, body),
  ),
]

export const accessRules = [...single, ...others]

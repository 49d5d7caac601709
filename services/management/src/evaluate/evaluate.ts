/** The endpoint that evaluates a check without making it (docs/api.md#r5). */

import { formatNetwork, parseNetwork } from '@keyward/address'
import { type AccessRule, type Code, evaluateCheck, evaluation } from '@keyward/contract'
import type { z } from 'zod'

import type { ReadContext } from '../http/context.ts'
import type { Dependencies } from '../http/dependencies.ts'
import { vendorEndpoint } from '../http/endpoint.ts'
import { invalid, quote } from '../http/problem.ts'
import { accessRuleTag } from '../resources/access-rules/access-rules.ts'
import { selectRules, showRule } from '../resources/access-rules/rows.ts'
import { readLicenseRow } from '../resources/licenses/rows.ts'

type Input = z.output<typeof evaluateCheck>

/** An unknown id is NOT_FOUND as an HTTP error, an unknown key is the verdict NOT_FOUND. */
async function licenseKeyOf(context: ReadContext, { licenseId, licenseKey = '' }: Input): Promise<string> {
  return licenseId === undefined ? licenseKey : (await readLicenseRow(context, licenseId)).key
}

/** Returns the rules with these ids, in their order. A rule that was deleted since the verdict is left out. */
async function readRules(context: ReadContext, ids: readonly string[]): Promise<Map<string, AccessRule>> {
  if (ids.length === 0) return new Map()
  const rows = await selectRules(context).where('accessRules.id', 'in', ids).execute()
  const rules = new Map(rows.map((row) => [row.id, showRule(row)]))
  return new Map(ids.flatMap((id) => (rules.has(id) ? [[id, rules.get(id)!]] : [])))
}

async function evaluateRules(
  context: ReadContext & { dependencies: Dependencies },
  input: Input,
): Promise<{ code: Code; decidedBy: AccessRule | null; matched: AccessRule[] }> {
  const { ip, machineId, country = null } = input
  const address = ip === undefined || ip.includes('/') ? null : parseNetwork(ip)
  if (ip !== undefined && address === null) throw invalid('#/ip', `must be an IPv4 or IPv6 address; got ${quote(ip)}`)
  const licenseKey = await licenseKeyOf(context, input)
  const check = { licenseKey, machineId, ip: address && formatNetwork(address), country }
  const { code, decidedBy, matched } = await context.dependencies.validators.decide(context, check)
  const rules = await readRules(context, matched)
  return {
    code,
    decidedBy: decidedBy === null ? null : (rules.get(decidedBy) ?? null),
    matched: [...rules.values()],
  }
}

export const evaluate = [
  vendorEndpoint(
    'licenses.read',
    {
      method: 'post',
      path: '/access-rules/evaluate',
      tag: accessRuleTag,
      operationId: 'evaluateAccessRules',
      summary: 'Evaluate a check',
      description:
        'Returns the verdict that a check would get, and the rules that match it. Takes no machine slot and counts nothing. ' +
        'A validator decides; if none is reachable, the response is 503.',
      body: evaluateCheck,
      status: 200,
      response: evaluation,
      readOnly: true,
    },
    (call) => evaluateRules(call, call.body),
  ),
]

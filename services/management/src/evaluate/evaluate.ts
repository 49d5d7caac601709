/** The endpoint that evaluates a check without making it (docs/api.md#r5). */

import { parseNetwork } from '@keyward/address'
import { type AccessRule, type Code, evaluateCheck, evaluation } from '@keyward/contract'
import type { z } from 'zod'

import type { ReadContext } from '../http/context.ts'
import { vendorEndpoint } from '../http/endpoint.ts'
import { invalid, quote } from '../http/problem.ts'
import { accessRuleTag } from '../resources/access-rules/access-rules.ts'
import { showRule } from '../resources/access-rules/rows.ts'
import { type LicenseRow, readLicenseRow, selectLicenses } from '../resources/licenses/rows.ts'
import { dryRun } from './dry-run.ts'

type Input = z.output<typeof evaluateCheck>

/** An unknown id is NOT_FOUND as an HTTP error, an unknown key is the verdict NOT_FOUND (undefined). */
async function findLicense(
  context: ReadContext,
  { licenseId, licenseKey = '' }: Input,
): Promise<LicenseRow | undefined> {
  if (licenseId !== undefined) return readLicenseRow(context, licenseId)
  return selectLicenses(context).where('licenses.key', '=', licenseKey).executeTakeFirst()
}

async function evaluateRules(
  context: ReadContext,
  input: Input,
): Promise<{ code: Code; decidedBy: AccessRule | null; matched: AccessRule[] }> {
  const { ip, machineId, country = null } = input
  const address = ip === undefined || ip.includes('/') ? null : parseNetwork(ip)
  if (ip !== undefined && address === null) throw invalid('#/ip', `must be an IPv4 or IPv6 address; got ${quote(ip)}`)
  const license = await findLicense(context, input)
  if (!license) return { code: 'NOT_FOUND', decidedBy: null, matched: [] }
  const verdict = await dryRun(context, license, { address, machineId, country })
  return {
    code: verdict.code,
    decidedBy: verdict.decidedBy && showRule(verdict.decidedBy),
    matched: verdict.matched.map(showRule),
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
        'Returns the verdict that a check would get, and the rules that match it. Takes no machine slot and counts nothing.',
      body: evaluateCheck,
      status: 200,
      response: evaluation,
      readOnly: true,
    },
    (call) => evaluateRules(call, call.body),
  ),
]

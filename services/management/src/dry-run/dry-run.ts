/** Implements dry runs: the verdict that a check would get, without recording it (docs/api.md#r5). */

import { formatNetwork, parseNetwork } from '@keyward/address'
import type { AccessRule } from '@keyward/contract'
import { dryRuns as operations, type evaluateCheck, type evaluation } from '@keyward/contract/dry-run'
import type { z } from 'zod'

import type { ReadContext } from '../context.ts'
import { invalid, quote } from '../http/problem.ts'
import type { Dependencies } from '../operations/dependencies.ts'
import { implement } from '../operations/implement.ts'
import { accessRuleTag } from '../resources/access-rules/access-rules.ts'
import { selectRules, showRule } from '../resources/access-rules/rule-rows.ts'
import { readLicenseRow } from '../resources/licenses/license-rows.ts'

type Input = z.output<typeof evaluateCheck>

/**
 * Returns the license key of the check. Throws NOT_FOUND for an unknown license id. An unknown license key is no error: its verdict is
 * NOT_FOUND.
 */
async function licenseKeyOf(context: ReadContext, { licenseId, licenseKey = '' }: Input): Promise<string> {
  return licenseId === undefined ? licenseKey : (await readLicenseRow(context, licenseId)).key
}

/** Returns the rules with these ids. Rules that were deleted after the verdict are omitted. */
async function readRules(context: ReadContext, ids: readonly string[]): Promise<Map<string, AccessRule>> {
  if (ids.length === 0) return new Map()
  const rows = await selectRules(context).where('accessRules.id', 'in', ids).execute()
  return new Map(rows.map((row) => [row.id, showRule(row)]))
}

async function runDry(
  context: ReadContext & { dependencies: Dependencies },
  input: Input,
): Promise<z.output<typeof evaluation>> {
  const { licenseId: _, ip, country = null, ...properties } = input
  const address = ip === undefined || ip.includes('/') ? null : parseNetwork(ip)
  if (ip !== undefined && address === null) throw invalid('#/ip', `must be an IPv4 or IPv6 address; got ${quote(ip)}`)
  const licenseKey = await licenseKeyOf(context, input)
  const check = { ...properties, licenseKey, ip: address && formatNetwork(address), country }
  const { code, decidedBy, matched, monitored, restricted } = await context.dependencies.validators.decide(
    context,
    check,
  )
  const rules = await readRules(context, [...matched, ...monitored])
  const shown = (ids: readonly string[]): AccessRule[] => ids.flatMap((id) => rules.get(id) ?? [])
  return {
    code,
    decidedBy: decidedBy === null ? null : (rules.get(decidedBy) ?? null),
    matched: shown(matched),
    monitored: shown(monitored),
    restricted,
  }
}

export const dryRuns = implement(accessRuleTag, operations, {
  evaluateAccessRules: {
    summary: 'Evaluate a check',
    description:
      'Returns the verdict that a check would get, and the rules that match it. Takes no machine slot and counts nothing. ' +
      'A validator decides; if none is reachable, the response is 503.',
    handle: (call) => runDry(call, call.body),
  },
})

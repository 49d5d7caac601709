/**
 * A dry run of one check with the engine that answers real checks: the rows that the check concerns are put into a small index of
 * their own, and the same function decides. It takes no slot and counts nothing.
 */
import { parseNetwork } from '@keyward/address'
import type { AccessRule, Code, evaluateCheck } from '@keyward/contract'
import { bytesToUuid, uuidToBytes } from '@keyward/database'
import { type Change, type Check, CODES, createCheck, createIndex, createVerdict, openIndex } from '@keyward/engine'
import type { z } from 'zod'

import type { Db } from '../http/context.ts'
import { invalid, notFound } from '../http/problem.ts'
import { type RuleRow, showRule } from '../resources/access-rules/show.ts'
import { type LicenseRow, selectLicenses } from '../resources/licenses/show.ts'
import { type Circumstances, countryNumber, findCandidates, toAddress, toRecord } from './candidates.ts'

export interface DryVerdict {
  code: Code
  /** The machine would have to take a slot of the license; `code` tells whether one is free. */
  needsSlot: boolean
  decidedBy: RuleRow | null
  matched: RuleRow[]
}

async function holdsSlot(db: Db, licenseId: string, machineId: string | null): Promise<boolean> {
  if (machineId === null) return false
  const row = await db
    .selectFrom('machines')
    .select('id')
    .where('licenseId', '=', licenseId)
    .where('machineId', '=', Buffer.from(machineId))
    .executeTakeFirst()
  return row !== undefined
}

interface World {
  organizationId: string
  license: LicenseRow
  rules: readonly RuleRow[]
  /** The machine, when it holds a slot. */
  machineId: string | null
}

function changesOf({ organizationId, license, rules, machineId }: World): Change[] {
  const organization = uuidToBytes(organizationId)
  const row = {
    id: uuidToBytes(license.id),
    organizationId: organization,
    productId: uuidToBytes(license.productId),
    customerId: uuidToBytes(license.customerId),
    key: Buffer.from(license.key),
    status: license.status,
    expiresAtMs: license.expiresAt?.getTime() ?? Infinity,
    maxMachines: license.maxMachines,
    used: license.used,
  }
  const { id: licenseId, productId, customerId } = row
  return [
    { entity: 'organization', id: organization, row: { id: organization } },
    { entity: 'product', id: productId, row: { id: productId, organizationId: organization } },
    { entity: 'customer', id: customerId, row: { id: customerId, organizationId: organization } },
    { entity: 'license', id: licenseId, row },
    ...rules.map((rule): Change => {
      const record = toRecord(rule, organization)
      return { entity: 'rule', id: record.id, row: record }
    }),
    ...(machineId === null
      ? []
      : [{ entity: 'machine', licenseId, machineId: Buffer.from(machineId), held: true, used: license.used } as const]),
  ]
}

function toCheck(organization: number, license: LicenseRow, { address, machineId, country }: Circumstances): Check {
  const check: Check = { ...createCheck(), organization, ...(address && toAddress(address)) }
  check.country = countryNumber(country)
  check.licenseKey = Buffer.from(license.key)
  check.licenseKeyLength = check.licenseKey.length
  if (machineId !== null) check.machineId = Buffer.from(machineId)
  check.machineIdLength = machineId === null ? 0 : check.machineId.length
  return check
}

/** Holds what the dry run at hand is about, and nothing else; an index for each would take megabytes each time. */
const writer = createIndex({ reserve: 'small' })
const reader = openIndex(writer.shared)

/** What a check of this license under these circumstances would end in right now. */
export async function dryRun(
  db: Db,
  organizationId: string,
  license: LicenseRow,
  circumstances: Circumstances,
): Promise<DryVerdict> {
  const rules = await findCandidates(db, organizationId, license, circumstances)
  const held = await holdsSlot(db, license.id, circumstances.machineId)
  const world = { organizationId, license, rules, machineId: held ? circumstances.machineId : null }
  // From here to the verdict nothing is waited for. The reload takes out what the dry run before has left.
  writer.beginReload()
  const [rejected] = writer.apply(changesOf(world))
  if (rejected) throw new Error(`The engine did not take a row: ${rejected.reason}`)
  writer.endReload()
  const verdict = createVerdict()
  const organization = reader.findOrganization(uuidToBytes(organizationId))
  reader.decide(toCheck(organization, license, circumstances), Date.now(), verdict)
  const code = CODES[verdict.code]
  if (verdict.busy || code === undefined) throw new Error('The dry run gave no verdict')
  const byId = new Map(rules.map((rule) => [rule.id, rule]))
  const id = new Uint8Array(16)
  const ruleAt = (row: number, generation: number): RuleRow | undefined =>
    reader.ruleId(row, generation, id) ? byId.get(bytesToUuid(id)) : undefined
  const rows = Array.from(verdict.matched.subarray(0, verdict.matchedCount))
  const generations = Array.from(verdict.matchedGenerations.subarray(0, verdict.matchedCount))
  const matched = rows.flatMap((row, i) => ruleAt(row, generations[i] ?? -1) ?? [])
  const decider = rows.indexOf(verdict.decidedBy)
  const decidedBy = decider === -1 ? null : (ruleAt(verdict.decidedBy, generations[decider] ?? -1) ?? null)
  return { code, needsSlot: verdict.slot === 1, decidedBy, matched }
}

async function findLicense(
  db: Db,
  organizationId: string,
  by: { licenseId?: string | undefined; licenseKey?: string | undefined },
): Promise<LicenseRow | undefined> {
  const { licenseId, licenseKey = '' } = by
  const select = selectLicenses(db, organizationId)
  if (licenseId === undefined) return select.where('licenses.key', '=', licenseKey).executeTakeFirst()
  const row = await select.where('licenses.id', '=', licenseId).executeTakeFirst()
  if (!row) throw notFound('license')
  return row
}

export async function evaluate(
  db: Db,
  organizationId: string,
  input: z.output<typeof evaluateCheck>,
): Promise<{ code: Code; decidedBy: AccessRule | null; matched: AccessRule[] }> {
  const { ip, machineId, country = null } = input
  const address = ip === undefined || ip.includes('/') ? null : parseNetwork(ip)
  if (ip !== undefined && address === null) throw invalid('#/ip', 'must be an IPv4 or IPv6 address')
  const license = await findLicense(db, organizationId, input)
  if (!license) return { code: 'NOT_FOUND', decidedBy: null, matched: [] }
  const verdict = await dryRun(db, organizationId, license, { address, machineId, country })
  return {
    code: verdict.code,
    decidedBy: verdict.decidedBy && showRule(verdict.decidedBy),
    matched: verdict.matched.map(showRule),
  }
}

/**
 * Computes the verdict of a check without taking a slot or counting a match (docs/api.md#r5). The rows that concern the check go into a
 * small index, and the engine of the validators decides.
 */

import type { Code } from '@keyward/contract'
import { bytesToUuid, uuidToBytes } from '@keyward/database'
import { type Change, type Check, CODES, createCheck, createIndex, createVerdict, openIndex } from '@keyward/engine'

import type { ReadContext } from '../http/context.ts'
import type { RuleRow } from '../resources/access-rules/rows.ts'
import type { LicenseRow } from '../resources/licenses/rows.ts'
import { type Circumstances, countryNumber, findCandidates, toAddress, toRecord } from './candidates.ts'

export interface DryVerdict {
  code: Code
  /** Whether the check would take a slot. `code` says whether one is free. */
  needsSlot: boolean
  decidedBy: RuleRow | null
  matched: RuleRow[]
}

async function holdsSlot({ db }: ReadContext, licenseId: string, machineId: string | null): Promise<boolean> {
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
  /** The machine id of the check if the machine holds a slot, else null. */
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

/** Holds the rows of the running evaluation. One index for all, because a new one would take megabytes each time. */
const writer = createIndex({ reserve: 'small' })
const reader = openIndex(writer.shared)

/** Returns the verdict of a check of this license at this moment. */
export async function dryRun(
  context: ReadContext,
  license: LicenseRow,
  circumstances: Circumstances,
): Promise<DryVerdict> {
  const rules = await findCandidates(context, license, circumstances)
  const held = await holdsSlot(context, license.id, circumstances.machineId)
  const { organizationId } = context
  const world = { organizationId, license, rules, machineId: held ? circumstances.machineId : null }
  // No await from here to the verdict, so no other evaluation can change the index. The reload removes the rows of the previous one.
  writer.beginReload({ inPlace: true })
  const [rejected] = writer.receive(changesOf(world))
  if (rejected) throw new Error(`the engine rejected a row: ${rejected.reason}`)
  writer.endReload()
  const verdict = createVerdict()
  const organization = reader.findOrganization(uuidToBytes(organizationId))
  reader.decide(toCheck(organization, license, circumstances), Date.now(), verdict)
  const code = CODES[verdict.code]
  if (verdict.busy || code === undefined) throw new Error('the engine returned no verdict')
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

/** Compares the engine with the naive model: runs checks in both, and converts the verdicts to one form. */

import {
  CODES,
  createCheck,
  createEntitlementsView,
  createVerdict,
  type Check,
  type Code,
  type IndexReader,
  type Verdict,
} from '../../src/index.ts'
import { NOW, type History } from './history.ts'
import {
  hex,
  type NaiveCheck,
  naiveDecide,
  naiveEntitlements,
  type NaiveVerdict,
  RESTRICTION_TYPES,
  type World,
} from './naive.ts'

export interface Outcome {
  code: Code | 'busy'
  decidedBy: string | null
  matched: string[]
  restricted: string[]
  slot: 'none' | 'claim' | 'record' | 'start' | 'lease'
  leaseSeconds: number
  excluded: boolean
  license: string | null
  expiresAtMs: number
  graceEndsAtMs: number
  used: number
  max: number
  /** The stored entitlements of the product and of the license, in hexadecimal, or null when the key is unknown. */
  entitlements: [product: string, own: string] | null
}

const SLOTS = ['none', 'claim', 'record', 'start', 'lease'] as const

export function fillCheck(reader: IndexReader, check: NaiveCheck, out: Check): void {
  const { address } = check
  out.organization = reader.findOrganization(check.organizationId)
  out.product = check.productId === null ? 0 : rowOfProduct(reader, check.productId)
  out.licenseKey = check.licenseKey
  out.licenseKeyLength = check.licenseKey.length
  out.machineId = check.machineId ?? new Uint8Array(0)
  out.machineIdLength = check.machineId?.length ?? 0
  out.addressFamily = address?.family ?? 0
  out.a0 = address?.words[0] ?? 0
  out.a1 = address?.words[1] ?? 0
  out.a2 = address?.words[2] ?? 0
  out.a3 = address?.words[3] ?? 0
  out.country = check.country === null ? 0 : (check.country.charCodeAt(0) << 8) | check.country.charCodeAt(1)
}

/** Returns the row of a product, or a number that no product's row has. */
function rowOfProduct(reader: IndexReader, id: Uint8Array): number {
  const row = reader.findProduct(id)
  return row < 0 ? 0x7fffffff : row
}

const view = createEntitlementsView()

function entitlementsOf(reader: IndexReader, verdict: Verdict): Outcome['entitlements'] {
  if (verdict.license < 0) return null
  if (!reader.entitlements(verdict.license, verdict.licenseGeneration, view, () => false)) return null
  const bytes = (of: Uint8Array, length: number): string => hex(of.subarray(0, length))
  return [bytes(view.productBytes, view.productLength), bytes(view.licenseBytes, view.licenseLength)]
}

export function decideNow(reader: IndexReader, check: NaiveCheck, nowMs: number): Outcome {
  const filled = createCheck()
  const verdict = createVerdict()
  fillCheck(reader, check, filled)
  reader.decide(filled, nowMs, verdict)
  return outcomeOf(reader, verdict)
}

/** Decides the check of a batch whose hashes have the index `n`, without its license key. */
export function decideHashed(
  reader: IndexReader,
  check: NaiveCheck,
  hashes: Int32Array,
  n: number,
  nowMs: number,
): Outcome {
  const filled = createCheck()
  const verdict = createVerdict()
  fillCheck(reader, check, filled)
  filled.licenseKey = new Uint8Array(0)
  reader.decideHashed(filled, hashes, n, nowMs, verdict)
  return outcomeOf(reader, verdict)
}

function outcomeOf(reader: IndexReader, verdict: Verdict): Outcome {
  const id = new Uint8Array(16)
  const ruleId = (row: number, generation: number): string => (reader.ruleId(row, generation, id) ? hex(id) : 'gone')
  const matched: string[] = []
  let decidedBy: string | null = null
  for (let i = 0; i < verdict.matchedCount; i++) {
    const row = verdict.matched[i] ?? 0
    matched.push(ruleId(row, verdict.matchedGenerations[i] ?? 0))
    if (row === verdict.decidedBy) decidedBy = matched[i] ?? null
  }
  const license =
    verdict.license < 0 ? null : reader.licenseId(verdict.license, verdict.licenseGeneration, id) ? hex(id) : 'gone'
  return {
    code: verdict.busy ? 'busy' : CODES[verdict.code]!,
    decidedBy,
    matched: matched.toSorted(),
    restricted: RESTRICTION_TYPES.filter((_, i) => (verdict.restrictedTypes & (1 << i)) !== 0),
    slot: SLOTS[verdict.slot],
    leaseSeconds: SLOTS[verdict.slot] === 'lease' ? verdict.leaseSeconds : 0,
    excluded: verdict.excluded,
    license,
    expiresAtMs: verdict.expiresAtMs,
    graceEndsAtMs: verdict.graceEndsAtMs,
    used: verdict.used,
    max: verdict.max,
    entitlements: entitlementsOf(reader, verdict),
  }
}

export function expected(world: World, verdict: NaiveVerdict): Outcome {
  const { license } = verdict
  return {
    code: verdict.code,
    decidedBy: verdict.decidedBy === null ? null : hex(verdict.decidedBy.id),
    matched: verdict.matched.map((rule) => hex(rule.id)).toSorted(),
    restricted: verdict.restricted,
    slot: verdict.slot,
    leaseSeconds: verdict.slot === 'lease' ? (license?.leaseSeconds ?? 0) : 0,
    excluded: verdict.excluded,
    license: license === null ? null : hex(license.id),
    expiresAtMs: license?.expiresAtMs ?? Infinity,
    graceEndsAtMs: verdict.graceEndsAtMs,
    used: license?.used ?? 0,
    max: license?.maxMachines ?? -1,
    entitlements: license === null ? null : naiveEntitlements(world, license),
  }
}

/**
 * Runs random checks in the engine and the naive model. Returns the checks for which the two differ. Calls `onOutcome` with each outcome of
 * the engine.
 */
export function differences(
  reader: IndexReader,
  world: History,
  checks: number,
  onOutcome: (outcome: Outcome) => void = () => {},
): unknown[] {
  const found: unknown[] = []
  for (let i = 0; i < checks; i++) {
    const check = world.randomCheck()
    const now = NOW + world.random.int(3) - 1
    const naive = expected(world, naiveDecide(world, check, now))
    const outcome = decideNow(reader, check, now)
    if (JSON.stringify(outcome) !== JSON.stringify(naive)) found.push({ check, now, outcome, naive })
    onOutcome(outcome)
  }
  return found
}

/**
 * Plans a month of checks, and converts them to activity, analytics and overuse. The counts agree with one another, as they would if
 * validators had recorded the checks.
 */

import type { Code } from '@keyward/contract'
import { type ActivityColumns, type RecordBatch, uuidToBytes } from '@keyward/database'

import { between, chance, pick } from './chance.ts'
import { ARRIVALS_DAYS, DAY_MS, type Plan, type PlannedLicense } from './plan.ts'
import { BLOCKED_CUSTOMER, CRACKED } from './rules.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
export const DAYS = 30

/** The ages, in days, of the changes that affect verdicts. */
export const SUSPENDED_DAYS = 19
export const REVOKED_DAYS = 16
export const BLOCKED_DAYS = 24
const BROKEN_BUILD_DAYS = 9

/** The checks of one license, machine and code in one minute. */
export interface Check {
  readonly atMs: number
  /** The index of the license, or null for an unknown key. */
  readonly license: number | null
  readonly code: Code
  readonly machineId: string | null
  readonly count: number
}

/** Returns the checks of the last month, the oldest first. */
export function planChecks(plan: Plan): Check[] {
  const checks: Check[] = []
  const today = Math.floor(plan.nowMs / DAY_MS) * DAY_MS
  for (let day = DAYS; day >= 0; day--) {
    const startMs = today - day * DAY_MS
    for (const [i, license] of plan.licenses.entries()) checks.push(...checksOfDay(i, license, startMs, plan))
    checks.push(...unknownKeys(startMs, day))
  }
  return checks
    .filter(({ atMs }) => atMs < plan.nowMs && atMs > plan.nowMs - DAYS * DAY_MS)
    .toSorted((a, b) => a.atMs - b.atMs)
}

function checksOfDay(i: number, license: PlannedLicense, startMs: number, plan: Plan): Check[] {
  const createdMs = plan.nowMs - ARRIVALS_DAYS[license.arrival]! * DAY_MS
  const weekday = new Date(startMs).getUTCDay()
  const isWeekend = weekday === 0 || weekday === 6
  const day = Math.round((plan.nowMs - startMs) / DAY_MS)
  const checks: Check[] = []
  const add = (label: string, machineId: string | null, code: Code | null, mostTimes: number) => {
    for (let time = 0; time < between(1, mostTimes + 1, `${label} times`); time++) {
      const atMs = startMs + minuteOfDay(`${label} ${time}`) * MINUTE_MS
      if (atMs < createdMs + HOUR_MS) continue
      const count = between(1, isWeekend ? 3 : 6, `${label} ${time} count`)
      checks.push({ atMs, license: i, code: code ?? codeAt(license, atMs, plan), machineId, count })
    }
  }
  for (const { id } of license.machines) {
    const label = `check ${i} ${id} ${day}`
    if (chance(label) < (isWeekend ? 0.22 : 0.5)) add(label, id, null, 3)
  }
  if (license.fate === 'overused' && day < 12) add(`refused ${i} ${day}`, `MAC-EXTRA-${i}`, 'TOO_MANY_MACHINES', 4)
  if (i % 37 === 5 && day < 22 && license.fate === 'active') add(`cracked ${i} ${day}`, CRACKED, 'BLACKLISTED', 2)
  if (day === BROKEN_BUILD_DAYS && license.product === 1 && license.fate === 'active')
    add(`broken ${i}`, null, license.policy.maxMachines === null ? null : 'FINGERPRINT_REQUIRED', 3)
  return checks
}

/** Returns the code of a check by a machine that holds a slot. */
function codeAt(license: PlannedLicense, atMs: number, { nowMs }: Plan): Code {
  const ageDays = (nowMs - atMs) / DAY_MS
  if (license.customer === BLOCKED_CUSTOMER && ageDays < BLOCKED_DAYS) return 'BLACKLISTED'
  if (license.fate === 'revoked' && ageDays < REVOKED_DAYS) return 'REVOKED'
  if (license.fate === 'suspended' && ageDays < SUSPENDED_DAYS) return 'SUSPENDED'
  return license.endsMs !== null && license.endsMs <= atMs ? 'EXPIRED' : 'VALID'
}

/** Returns a minute of the day, mostly one between 7:00 and 21:59. */
function minuteOfDay(label: string): number {
  const hour = pick([7, 8, 8, 9, 9, 9, 10, 10, 11, 12, 13, 13, 14, 14, 15, 15, 16, 17, 18, 19, 20, 21, 23, 2], label)
  return hour * 60 + between(0, 60, `${label} minute`)
}

function unknownKeys(startMs: number, day: number): Check[] {
  return Array.from({ length: between(4, 14, `unknown ${day}`) }, (_, i) => ({
    atMs: startMs + minuteOfDay(`unknown ${day} ${i}`) * MINUTE_MS,
    license: null,
    code: 'NOT_FOUND',
    machineId: null,
    count: between(1, 5, `unknown ${day} ${i} count`),
  }))
}

/** The ids of the rows that usage refers to. Licenses and products have the indexes of the plan. */
interface UsageIds {
  readonly organizationId: string
  readonly products: readonly string[]
  readonly licenses: readonly string[]
}

/** Converts checks to the usage that a validator would have written. */
export function toUsage(checks: readonly Check[], plan: Plan, ids: UsageIds): RecordBatch {
  const licenseChecks = checks.flatMap(({ license, ...check }) => (license === null ? [] : [{ ...check, license }]))
  const counts = new Map<string, { hourMs: number; product: number | null; code: Code; count: number }>()
  for (const { atMs, license, code, count } of checks) {
    const hourMs = Math.floor(atMs / HOUR_MS) * HOUR_MS
    const product = license === null ? null : plan.licenses[license]!.product
    const entry = counts.get(`${hourMs} ${product} ${code}`) ?? { hourMs, product, code, count: 0 }
    counts.set(`${hourMs} ${product} ${code}`, { ...entry, count: entry.count + count })
  }
  return {
    rules: [],
    checks: [...counts.values()].map(({ hourMs, product, code, count }) => ({
      hourMs,
      organizationId: uuidToBytes(ids.organizationId),
      productId: product === null ? null : uuidToBytes(ids.products[product]!),
      code,
      count,
    })),
    activity: toActivity(licenseChecks, ids),
    overuse: licenseChecks
      .filter(({ code }) => code === 'TOO_MANY_MACHINES')
      .map(({ license, count, atMs }) => ({
        licenseId: uuidToBytes(ids.licenses[license]!),
        count,
        firstAtMs: atMs,
        lastAtMs: atMs,
      })),
    keyUses: [],
    hostnames: [],
  }
}

function toActivity(checks: readonly (Check & { license: number })[], { licenses }: UsageIds): ActivityColumns {
  const codeNames = [...new Set(checks.map(({ code }) => code))]
  const machines = checks.map(({ machineId }) => Buffer.from(machineId ?? ''))
  const machineAt = [0]
  for (const { length } of machines) machineAt.push(machineAt.at(-1)! + length)
  const minutesMs = Float64Array.from(checks, ({ atMs }) => Math.floor(atMs / MINUTE_MS) * MINUTE_MS)
  return {
    minutesMs,
    licenseIds: Buffer.concat(checks.map(({ license }) => uuidToBytes(licenses[license]!))),
    codes: Uint8Array.from(checks, ({ code }) => codeNames.indexOf(code)),
    codeNames,
    machineAt: Int32Array.from(machineAt),
    machineBytes: Buffer.concat(machines),
    counts: Int32Array.from(checks, ({ count }) => count),
    firstsMs: minutesMs,
    lastsMs: Float64Array.from(checks, ({ atMs }) => atMs + 40_000),
    seen: new Uint8Array(checks.length),
  }
}

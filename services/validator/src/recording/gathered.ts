/**
 * What was gathered about checks since the last flush: counts of rules, analytics, activity, machines last seen, overuse
 * (API document, states rule 2: of a check that an exclusion decided, the counts of its rules alone). Bounded: past a limit
 * the machine leaves the coalescing of `VALID` first, and what then still does not fit is counted as dropped. No address and
 * no country ever comes here.
 */

import type { RecordBatch } from '@keyward/database'
import { toHex } from '@keyward/database/ids'
import { type Code, CODES } from '@keyward/engine'

import type { RecordView } from './ring.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const VALID = CODES.indexOf('VALID')

export interface GatherLimits {
  /** Activity entries with a machine; past it, `VALID` is gathered for the license as a whole. */
  machines: number
  /** Activity entries, rules, and analytics entries: past it they are dropped. */
  entries: number
  /** Machines last seen, in one flush. */
  seen: number
}

/** Who a record's rows are. Null: gone since. */
export interface Names {
  licenseId(row: number, serial: number): Uint8Array | null
  productId(row: number, serial: number): Uint8Array | null
  ruleId(row: number, serial: number): Uint8Array | null
  organizationId(row: number): Uint8Array | null
}

interface Activity {
  minuteMs: number
  licenseId: Uint8Array
  code: Code
  machineId: Uint8Array | null
  count: number
  firstAtMs: number
  lastAtMs: number
}

type Rule = { -readonly [K in keyof RecordBatch['rules'][number]]: RecordBatch['rules'][number][K] }
type Checks = RecordBatch['checks'][number]

interface License {
  serial: number
  licenseId: Uint8Array
  organizationId: Uint8Array
  productId: Uint8Array | null
  /** The hour that `counts` belongs to, by code. */
  hourMs: number
  counts: Int32Array
  /** By a hash of code and machine; see `#addActivity`. */
  activity: Map<number, Activity>
}

export class Gathered {
  readonly #names: Names
  readonly #limits: GatherLimits
  readonly #licenses = new Map<number, License>()
  readonly #rules = new Map<number, Rule & { serial: number }>()
  /** Checks of keys that do not exist, by organization and hour. */
  readonly #unknown = new Map<string, { hourMs: number; organizationId: Uint8Array; count: number }>()
  #finished: Activity[] = []
  #finishedChecks: Checks[] = []
  #entries = 0
  #dropped = 0

  constructor(names: Names, limits: GatherLimits) {
    this.#names = names
    this.#limits = limits
  }

  /** How many records were dropped for want of room, ever. */
  get dropped(): number {
    return this.#dropped
  }

  /** How many rows wait to be taken. */
  get rows(): number {
    return this.#entries + this.#rules.size + this.#licenses.size + this.#unknown.size
  }

  add(record: RecordView): void {
    for (let i = 0; i < record.matchedCount; i++)
      this.#addRule(record.matched[i] ?? 0, record.matchedSerials[i] ?? 0, record.atMs)
    if (record.excluded) return
    if (record.license < 0) return this.#addUnknown(record)
    const license = this.#license(record)
    if (license === null) return // deleted since
    const hourMs = record.atMs - (record.atMs % HOUR_MS)
    if (hourMs !== license.hourMs) this.#finishHour(license, hourMs)
    license.counts[record.code] = (license.counts[record.code] ?? 0) + 1
    this.#addActivity(license, record)
  }

  /** Hands over what was gathered, and begins anew. `isDue` says of a machine whether its last sight is to be written. */
  take(isDue: (licenseId: Uint8Array, machineId: Uint8Array) => boolean): RecordBatch {
    for (const license of this.#licenses.values()) this.#finish(license)
    const activity = this.#finished
    const batch = {
      rules: [...this.#rules.values()],
      checks: [...sumChecks(this.#finishedChecks), ...this.#unknownChecks()],
      activity,
      seen: this.#seenIn(activity, isDue),
      overuse: activity.filter((entry) => entry.code === 'TOO_MANY_MACHINES'),
    }
    this.#licenses.clear()
    this.#rules.clear()
    this.#unknown.clear()
    this.#finished = []
    this.#finishedChecks = []
    this.#entries = 0
    return batch
  }

  #seenIn(
    activity: readonly Activity[],
    isDue: (licenseId: Uint8Array, machineId: Uint8Array) => boolean,
  ): RecordBatch['seen'] {
    const seen: RecordBatch['seen'][number][] = []
    for (const { code, licenseId, machineId, lastAtMs } of activity) {
      if (seen.length >= this.#limits.seen) break // the others are due again with their next check
      if (code === 'VALID' && machineId !== null && isDue(licenseId, machineId))
        seen.push({ licenseId, machineId, atMs: lastAtMs })
    }
    return seen
  }

  #license(record: RecordView): License | null {
    const known = this.#licenses.get(record.license)
    if (known && known.serial === record.licenseSerial) return known
    if (known) this.#finish(known)
    const licenseId = this.#names.licenseId(record.license, record.licenseSerial)
    const organizationId = this.#names.organizationId(record.organization)
    if (licenseId === null || organizationId === null) return null
    const license = {
      serial: record.licenseSerial,
      licenseId,
      organizationId,
      productId: this.#names.productId(record.product, record.productSerial),
      hourMs: 0,
      counts: new Int32Array(CODES.length),
      activity: new Map<number, Activity>(),
    }
    this.#licenses.set(record.license, license)
    return license
  }

  #finish(license: License): void {
    this.#finishHour(license, 0)
    for (const entry of license.activity.values()) this.#finished.push(entry)
    license.activity.clear()
  }

  #finishHour(license: License, nextHourMs: number): void {
    const { counts, hourMs, organizationId, productId } = license
    for (const [i, code] of CODES.entries()) {
      const count = counts[i] ?? 0
      if (count > 0) this.#finishedChecks.push({ hourMs, organizationId, productId, code, count })
    }
    counts.fill(0)
    license.hourMs = nextHourMs
  }

  #addRule(row: number, serial: number, atMs: number): void {
    const known = this.#rules.get(row)
    if (known && known.serial === serial) {
      known.count++
      known.lastAtMs = Math.max(known.lastAtMs, atMs)
      return
    }
    const id = this.#names.ruleId(row, serial)
    if (id === null) return
    if (this.#rules.size >= this.#limits.entries) this.#dropped++
    else this.#rules.set(row, { serial, id, count: 1, lastAtMs: atMs })
  }

  #addUnknown(record: RecordView): void {
    const hourMs = record.atMs - (record.atMs % HOUR_MS)
    const key = `${record.organization}/${hourMs}`
    const known = this.#unknown.get(key)
    if (known) {
      known.count++
      return
    }
    const organizationId = this.#names.organizationId(record.organization)
    if (organizationId === null) return
    if (this.#unknown.size >= this.#limits.entries) this.#dropped++
    else this.#unknown.set(key, { hourMs, organizationId, count: 1 })
  }

  #unknownChecks(): Checks[] {
    return [...this.#unknown.values()].map(({ hourMs, organizationId, count }) => {
      return { hourMs, organizationId, productId: null, code: 'NOT_FOUND', count }
    })
  }

  /**
   * Entries are found by a hash of code and machine, without making a text of every machine id. The bytes decide: where two
   * machines share a hash the next place is tried, and after a few the check is gathered for the license as a whole.
   */
  #addActivity(license: License, record: RecordView): void {
    const code = CODES[record.code]
    if (code === undefined) return
    const minuteMs = record.atMs - (record.atMs % MINUTE_MS)
    const isShort = record.code === VALID && this.#entries >= this.#limits.machines
    const machine = isShort ? NO_MACHINE : record.machineId
    let place = hashOf(record.code, machine)
    let known = license.activity.get(place)
    for (let step = 0; known !== undefined && !isFor(known, code, machine); step++) {
      if (step === MOST_STEPS) return this.#addActivity(license, { ...record, machineId: NO_MACHINE })
      known = license.activity.get(++place)
    }
    if (known && known.minuteMs === minuteMs) {
      known.count++
      if (record.atMs > known.lastAtMs) known.lastAtMs = record.atMs
      if (record.atMs < known.firstAtMs) known.firstAtMs = record.atMs
      return
    }
    if (known) this.#finished.push(known)
    else if (this.#entries >= this.#limits.entries) {
      this.#dropped++
      return
    }
    this.#entries++
    const machineId = machine.length === 0 ? null : machine.slice()
    const times = { count: 1, firstAtMs: record.atMs, lastAtMs: record.atMs }
    license.activity.set(place, { minuteMs, licenseId: license.licenseId, code, machineId, ...times })
  }
}

const NO_MACHINE = new Uint8Array(0)
const MOST_STEPS = 4

/** FNV-1a; above all places that steps from another machine's place may reach, when there is none. */
function hashOf(code: number, machine: Uint8Array): number {
  if (machine.length === 0) return 0x2_0000_0000 + code
  let hash = (0x811c9dc5 ^ code) >>> 0
  for (let i = 0; i < machine.length; i++) hash = Math.imul(hash ^ (machine[i] ?? 0), 0x01000193)
  return hash >>> 0
}

function isFor(entry: Activity, code: Code, machine: Uint8Array): boolean {
  if (entry.code !== code) return false
  const { machineId } = entry
  if (machineId === null || machineId.length !== machine.length) return machineId === null && machine.length === 0
  for (let i = 0; i < machine.length; i++) if (machineId[i] !== machine[i]) return false
  return true
}

/** One row for each hour, organization, product and code. */
function sumChecks(checks: readonly Checks[]): Checks[] {
  const sums = new Map<string, { -readonly [K in keyof Checks]: Checks[K] }>()
  for (const check of checks) {
    const product = check.productId === null ? '' : toHex(check.productId)
    const key = `${check.hourMs}/${toHex(check.organizationId)}/${product}/${check.code}`
    const known = sums.get(key)
    if (known) known.count += check.count
    else sums.set(key, { ...check })
  }
  return [...sums.values()]
}

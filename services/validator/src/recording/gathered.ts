/**
 * What was gathered about checks since the last flush: counts of rules, analytics, activity, machines last seen, overuse
 * (API document, states rule 2: of a check that an exclusion decided, the counts of its rules alone). Bounded: past a limit
 * the machine leaves the coalescing of `VALID` first, and what then still does not fit is counted as dropped. No address and
 * no country ever comes here.
 */

import type { RecordBatch } from '@keyward/database'
import { CODES } from '@keyward/engine'

import type { RecordView } from './ring.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const TOO_MANY_MACHINES = CODES.indexOf('TOO_MANY_MACHINES')
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
  code: string
  machineId: Uint8Array | null
  count: number
  firstAtMs: number
  lastAtMs: number
}

type Rule = { -readonly [K in keyof RecordBatch['rules'][number]]: RecordBatch['rules'][number][K] }
type Checks = { -readonly [K in keyof RecordBatch['checks'][number]]: RecordBatch['checks'][number][K] }

interface License {
  licenseId: Uint8Array
  organization: number
  productId: Uint8Array | null
  /** Key: code and machine, as text. */
  activity: Map<string, Activity>
}

export class Gathered {
  readonly #names: Names
  readonly #limits: GatherLimits
  readonly #licenses = new Map<number, License & { serial: number }>()
  readonly #rules = new Map<number, Rule & { serial: number }>()
  readonly #checks = new Map<string, Checks>()
  #finished: Activity[] = []
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
    return this.#entries + this.#rules.size + this.#checks.size
  }

  add(record: RecordView): void {
    for (let i = 0; i < record.matchedCount; i++)
      this.#addRule(record.matched[i] ?? 0, record.matchedSerials[i] ?? 0, record.atMs)
    if (record.excluded) return
    const license = record.license < 0 ? null : this.#license(record)
    if (record.license >= 0 && license === null) return // deleted since
    this.#addCheck(record, license)
    if (license) this.#addActivity(license, record)
  }

  /** Hands over what was gathered, and begins anew. `isDue` says of a machine whether its last sight is to be written. */
  take(isDue: (licenseId: Uint8Array, machineId: Uint8Array) => boolean): RecordBatch {
    const activity = this.#finished
    for (const license of this.#licenses.values()) for (const entry of license.activity.values()) activity.push(entry)
    const batch = {
      rules: [...this.#rules.values()],
      checks: [...this.#checks.values()],
      activity,
      seen: this.#seenIn(activity, isDue),
      overuse: activity.filter((entry) => entry.code === CODES[TOO_MANY_MACHINES]),
    }
    this.#licenses.clear()
    this.#rules.clear()
    this.#checks.clear()
    this.#finished = []
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
      if (code === CODES[VALID] && machineId !== null && isDue(licenseId, machineId))
        seen.push({ licenseId, machineId, atMs: lastAtMs })
    }
    return seen
  }

  #license(record: RecordView): License | null {
    const known = this.#licenses.get(record.license)
    if (known && known.serial === record.licenseSerial) return known
    if (known) this.#finished.push(...known.activity.values())
    const licenseId = this.#names.licenseId(record.license, record.licenseSerial)
    if (licenseId === null) return null
    const license = {
      serial: record.licenseSerial,
      licenseId,
      organization: record.organization,
      productId: this.#names.productId(record.product, record.productSerial),
      activity: new Map<string, Activity>(),
    }
    this.#licenses.set(record.license, license)
    return license
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

  #addCheck(record: RecordView, license: License | null): void {
    const hourMs = record.atMs - (record.atMs % HOUR_MS)
    const product = license?.productId ? `${record.product}:${record.productSerial}` : ''
    const key = `${record.organization}/${product}/${record.code}/${hourMs}`
    const known = this.#checks.get(key)
    if (known) {
      known.count++
      return
    }
    const organizationId = this.#names.organizationId(record.organization)
    const code = CODES[record.code]
    if (organizationId === null || code === undefined) return
    if (this.#checks.size >= this.#limits.entries) this.#dropped++
    else this.#checks.set(key, { hourMs, organizationId, productId: license?.productId ?? null, code, count: 1 })
  }

  #addActivity(license: License, record: RecordView): void {
    const code = CODES[record.code]
    if (code === undefined) return
    const minuteMs = record.atMs - (record.atMs % MINUTE_MS)
    const withMachine = record.code !== VALID || this.#entries < this.#limits.machines
    const machine = withMachine ? latin1(record.machineId) : ''
    const key = String.fromCharCode(record.code) + machine
    const known = license.activity.get(key)
    if (known && known.minuteMs === minuteMs) {
      known.count++
      known.lastAtMs = Math.max(known.lastAtMs, record.atMs)
      known.firstAtMs = Math.min(known.firstAtMs, record.atMs)
      return
    }
    if (known) this.#finished.push(known)
    else if (this.#entries >= this.#limits.entries) {
      this.#dropped++
      return
    }
    this.#entries++
    const { licenseId } = license
    const machineId = machine === '' ? null : record.machineId.slice()
    const times = { count: 1, firstAtMs: record.atMs, lastAtMs: record.atMs }
    license.activity.set(key, { minuteMs, licenseId, code, machineId, ...times })
  }
}

function latin1(bytes: Uint8Array): string {
  return bytes.length === 0 ? '' : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}

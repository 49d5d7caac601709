/**
 * What was gathered about checks since the last flush: counts of rules, analytics, activity, machines last seen, overuse
 * (API document, states rule 2: of a check that an exclusion decided, the counts of its rules alone). Bounded, however long
 * Postgres is away: past a limit the machine leaves the coalescing of `VALID` first, then that of the other codes, and what
 * then still does not fit is dropped and counted. No address and no country ever comes here.
 */

import type { ActivityColumns, RecordBatch } from '@keyward/database'
import { toHex } from '@keyward/database/ids'
import { CODE, CODES, type IndexReader } from '@keyward/engine'

import { ActivityTable, type Machine } from './activity-table.ts'
import type { RecordView } from './ring.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const NO_MACHINE: Machine = {
  bytes: new Uint8Array(0),
  machineAt: 0,
  machineLength: 0,
  machineHash0: 0,
  machineHash1: 0,
}

export interface GatherLimits {
  /** Activity entries; past it, `VALID` is gathered for the license as a whole. */
  valid: number
  /** Activity entries; past it, every code is gathered for the license as a whole. */
  machines: number
  /** Activity entries, rules, and organizations with unknown keys, each: past it they are dropped. */
  entries: number
  /** Machines last seen, in one flush. */
  seen: number
}

export type Dropped = Record<'activity' | 'analytics' | 'rules', number>

/** Who a record's rows are: writes the 16 bytes of the id; false when they are gone since. */
export type Names = Pick<IndexReader, 'licenseId' | 'productId' | 'ruleId' | 'organizationId'>

type IsDue = (activity: ActivityColumns, entry: number) => boolean
type Rule = { -readonly [K in keyof RecordBatch['rules'][number]]: RecordBatch['rules'][number][K] }
type Checks = RecordBatch['checks'][number]

/** Analytics of one product, or of an organization's keys that do not exist, within one hour. */
interface Tally {
  generation: number
  hourMs: number
  organizationId: Uint8Array
  productId: Uint8Array | null
  /** By the number of the code. */
  counts: Float64Array
}

export class Gathered {
  readonly #names: Names
  readonly #limits: GatherLimits
  readonly #activity: ActivityTable
  /** By the rule's row. */
  #rules = new Map<number, Rule & { generation: number }>()
  /** Of rules whose row another has now: what one matched before it was folded into another counts for that. */
  #formerRules: Rule[] = []
  /** By the product's row; for keys that do not exist by the organization's, below zero. */
  #tallies = new Map<number, Tally>()
  #finished: Tally[] = []
  readonly #minute = new Period(MINUTE_MS)
  readonly #hour = new Period(HOUR_MS)
  /** Of the license at hand: a copy for each entry would be most of what the collector has to do. */
  readonly #licenseId = createId()
  readonly #dropped: Dropped = { activity: 0, analytics: 0, rules: 0 }

  constructor(names: Names, limits: GatherLimits) {
    this.#names = names
    this.#limits = limits
    this.#activity = new ActivityTable(limits.entries)
  }

  /** How many checks were left out for want of room, ever, by what they are missing from. */
  get dropped(): Readonly<Dropped> {
    return this.#dropped
  }

  /** How many rows wait to be taken. */
  get rows(): number {
    const rules = this.#rules.size + this.#formerRules.length
    return this.#activity.size + rules + this.#tallies.size + this.#finished.length
  }

  add(record: RecordView): void {
    for (let i = 0; i < record.matchedCount; i++)
      this.#addRule(record.matched[i] ?? 0, record.matchedGenerations[i] ?? 0, record.atMs)
    if (record.excluded) return
    this.#addTally(record)
    if (record.license >= 0) this.#addActivity(record)
  }

  /**
   * Hands over what was gathered, and begins anew; the activity stays as it is until the next call. `isDue` says of an entry
   * whether the last sight of its machine is to be written.
   */
  take(isDue: IsDue): RecordBatch {
    const activity = this.#activity.take()
    markSeen(activity, this.#limits.seen, isDue)
    const checks = sumChecks([...this.#finished, ...this.#tallies.values()])
    const rules = [...this.#formerRules, ...this.#rules.values()]
    // Not cleared: the table that a map leaves behind points at its next one, and once old keeps every later one alive.
    this.#rules = new Map()
    this.#formerRules = []
    this.#tallies = new Map()
    this.#finished = []
    return { rules, checks, activity }
  }

  #addRule(row: number, generation: number, atMs: number): void {
    const known = this.#rules.get(row)
    if (known && known.generation === generation) {
      known.count++
      known.lastAtMs = Math.max(known.lastAtMs, atMs)
      return
    }
    const id = createId()
    if (!this.#names.ruleId(row, generation, id)) return
    if (this.#rules.size + this.#formerRules.length >= this.#limits.entries) {
      this.#dropped.rules++
      return
    }
    if (known) this.#formerRules.push(known)
    this.#rules.set(row, { generation, id, count: 1, lastAtMs: atMs })
  }

  #addTally(record: RecordView): void {
    const hourMs = this.#hour.startOf(record.atMs)
    const isKnown = record.license >= 0
    const place = isKnown ? record.product : -1 - record.organization
    const generation = isKnown ? record.productGeneration : 0
    let tally = this.#tallies.get(place)
    if (!tally || tally.generation !== generation || tally.hourMs !== hourMs) {
      const organizationId = createId()
      const productId = isKnown ? createId() : null
      if (!this.#names.organizationId(record.organization, organizationId)) return // deleted since
      if (productId !== null && !this.#names.productId(record.product, generation, productId)) return
      if (this.#tallies.size + this.#finished.length >= this.#limits.entries) {
        this.#dropped.analytics++
        return
      }
      if (tally) this.#finished.push(tally)
      tally = { generation, hourMs, organizationId, productId, counts: new Float64Array(CODES.length) }
      this.#tallies.set(place, tally)
    }
    tally.counts[record.code] = (tally.counts[record.code] ?? 0) + 1
  }

  #addActivity(record: RecordView): void {
    const { atMs, code } = record
    const minuteMs = this.#minute.startOf(atMs)
    if (this.#countActivity(record, minuteMs, record)) return
    const isShort = this.#activity.size >= (code === CODE.VALID ? this.#limits.valid : this.#limits.machines)
    const isNamed = record.machineLength > 0
    if (!(isShort && isNamed) && this.#startActivity(record, minuteMs, record)) return
    if (isNamed) {
      if (this.#countActivity(record, minuteMs, NO_MACHINE)) return
      if (this.#startActivity(record, minuteMs, NO_MACHINE)) return
    }
    this.#dropped.activity++
  }

  #countActivity({ license, licenseGeneration, code, atMs }: RecordView, minuteMs: number, machine: Machine): boolean {
    const entry = this.#activity.find(license, licenseGeneration, code, minuteMs, machine)
    if (entry < 0) return false
    this.#activity.count(entry, atMs)
    return true
  }

  #startActivity({ license, licenseGeneration, code, atMs }: RecordView, minuteMs: number, machine: Machine): boolean {
    if (this.#activity.isFull) return false
    // Of a license that was deleted since, nothing is left to be told.
    if (!this.#names.licenseId(license, licenseGeneration, this.#licenseId)) return true
    return this.#activity.add(license, licenseGeneration, code, minuteMs, machine, this.#licenseId, atMs)
  }
}

function createId(): Uint8Array {
  return new Uint8Array(16)
}

/** The start of the minute or hour of a moment, remembered: a division of large numbers would cost more than all the rest. */
class Period {
  readonly #lengthMs: number
  #startMs = 0

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs
  }

  startOf(ms: number): number {
    const inMs = ms - this.#startMs
    if (inMs < 0 || inMs >= this.#lengthMs) this.#startMs = ms - (ms % this.#lengthMs)
    return this.#startMs
  }
}

/** Marks the machines whose last sight is due, at most so many; the others are due again with their next check. */
function markSeen(activity: ActivityColumns, most: number, isDue: IsDue): void {
  const { codes, machineAt, seen } = activity
  for (let entry = 0, count = 0; entry < codes.length && count < most; entry++) {
    if (codes[entry] !== CODE.VALID || machineAt[entry] === machineAt[entry + 1] || !isDue(activity, entry)) continue
    seen[entry] = 1
    count++
  }
}

/** One row for each hour, organization, product and code. */
function sumChecks(tallies: readonly Tally[]): Checks[] {
  const sums = new Map<string, { -readonly [K in keyof Checks]: Checks[K] }>()
  for (const { hourMs, organizationId, productId, counts } of tallies) {
    const owner = `${hourMs}/${toHex(organizationId)}/${productId === null ? '' : toHex(productId)}`
    for (const [i, code] of CODES.entries()) {
      const count = counts[i] ?? 0
      if (count === 0) continue
      const known = sums.get(`${owner}/${code}`)
      if (known) known.count += count
      else sums.set(`${owner}/${code}`, { hourMs, organizationId, productId, code, count })
    }
  }
  return [...sums.values()]
}

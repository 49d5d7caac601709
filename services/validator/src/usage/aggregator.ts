/**
 * Aggregates checks in memory until the next flush: matches of rules, analytics, activity and the last use of machines
 * (docs/api.md#recorded-data). Of a check that an exclusion decided, only the matches of its rules count
 * (docs/api.md#v7). No address and no country reaches this class.
 *
 * Memory is bounded during a Postgres outage. As the table of activity fills up, it first aggregates `VALID` checks per
 * license instead of per machine, then does the same for all codes, and finally drops entries and counts them in `dropped`.
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

export interface AggregatorLimits {
  /** Above this number of activity entries, `VALID` checks are aggregated per license. */
  valid: number
  /** Above this number of activity entries, the checks of every code are aggregated per license. */
  machines: number
  /** The capacity for activity entries, for rules, and for analytics, each. */
  entries: number
  /** How many machines' last use is written in one flush. */
  seen: number
}

/** How many checks were dropped, by what they are missing from. */
export type Dropped = Record<'activity' | 'analytics' | 'rules', number>

/** Reads the ids of rows. Each function writes 16 bytes, or returns false if the row was deleted since. */
export type Ids = Pick<IndexReader, 'licenseId' | 'productId' | 'ruleId' | 'organizationId'>

type IsDue = (activity: ActivityColumns, entry: number) => boolean
type Rule = { -readonly [K in keyof RecordBatch['rules'][number]]: RecordBatch['rules'][number][K] }
type Checks = RecordBatch['checks'][number]

/** The checks of one product in one hour, or those of an organization with unknown keys. */
interface Tally {
  generation: number
  hourMs: number
  organizationId: Uint8Array
  /** Null for unknown keys. */
  productId: Uint8Array | null
  /** By the engine's number of the code. */
  counts: Float64Array
}

export class Aggregator {
  readonly #ids: Ids
  readonly #limits: AggregatorLimits
  readonly #activity: ActivityTable
  /** By the rule's row: the matches of the rule that has the row now. */
  #rules = new Map<number, Rule & { generation: number }>()
  /** The matches of rules whose row belongs to another rule now. */
  #formerRules: Rule[] = []
  /** The tally of the current hour, by the product's row; for unknown keys by -1 minus the organization's row. */
  #tallies = new Map<number, Tally>()
  /** The tallies of earlier hours, and of products whose row belongs to another product now. */
  #finished: Tally[] = []
  readonly #minute = new Period(MINUTE_MS)
  readonly #hour = new Period(HOUR_MS)
  /** The license of the current check. One buffer serves all checks; one for each would burden the garbage collector. */
  readonly #licenseId = createId()
  readonly #dropped: Dropped = { activity: 0, analytics: 0, rules: 0 }

  constructor(ids: Ids, limits: AggregatorLimits) {
    this.#ids = ids
    this.#limits = limits
    this.#activity = new ActivityTable(limits.entries)
  }

  /** Since the start. */
  get dropped(): Readonly<Dropped> {
    return this.#dropped
  }

  /** How many rows the next `take` returns, about. */
  get rows(): number {
    const rules = this.#rules.size + this.#formerRules.length
    return this.#activity.size + rules + this.#tallies.size + this.#finished.length
  }

  add(record: RecordView): void {
    for (let i = 0; i < record.matchedCount; i++)
      this.#addRule(record.matched[i]!, record.matchedGenerations[i]!, record.atMs)
    if (record.excluded) return
    this.#addTally(record)
    if (record.license >= 0) this.#addActivity(record)
  }

  /**
   * Returns everything that was added since the previous call, and starts anew. The activity in the result is valid until
   * the next call. `isDue` returns whether the last use of an entry's machine is to be written.
   */
  take(isDue: IsDue): RecordBatch {
    const activity = this.#activity.take()
    markSeen(activity, this.#limits.seen, isDue)
    const checks = sumChecks([...this.#finished, ...this.#tallies.values()])
    const rules = [...this.#formerRules, ...this.#rules.values()]
    // Replaced instead of cleared: the old table of a cleared Map refers to its next one, and keeps all later ones alive.
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
    if (!this.#ids.ruleId(row, generation, id)) return
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
    const key = isKnown ? record.product : -1 - record.organization
    const generation = isKnown ? record.productGeneration : 0
    let tally = this.#tallies.get(key)
    if (!tally || tally.generation !== generation || tally.hourMs !== hourMs) {
      const organizationId = createId()
      const productId = isKnown ? createId() : null
      if (!this.#ids.organizationId(record.organization, organizationId)) return // deleted since
      if (productId !== null && !this.#ids.productId(record.product, generation, productId)) return
      if (this.#tallies.size + this.#finished.length >= this.#limits.entries) {
        this.#dropped.analytics++
        return
      }
      if (tally) this.#finished.push(tally)
      tally = { generation, hourMs, organizationId, productId, counts: new Float64Array(CODES.length) }
      this.#tallies.set(key, tally)
    }
    tally.counts[record.code] = tally.counts[record.code]! + 1
  }

  #addActivity(record: RecordView): void {
    const { atMs, code } = record
    const minuteMs = this.#minute.startOf(atMs)
    if (this.#countActivity(record, minuteMs, record)) return
    const isShort = this.#activity.size >= (code === CODE.VALID ? this.#limits.valid : this.#limits.machines)
    const hasMachine = record.machineLength > 0
    if (!(isShort && hasMachine) && this.#startActivity(record, minuteMs, record)) return
    if (hasMachine) {
      if (this.#countActivity(record, minuteMs, NO_MACHINE)) return
      if (this.#startActivity(record, minuteMs, NO_MACHINE)) return
    }
    this.#dropped.activity++
  }

  /** Counts the check in an existing entry. Returns false if there is none. */
  #countActivity({ license, licenseGeneration, code, atMs }: RecordView, minuteMs: number, machine: Machine): boolean {
    const entry = this.#activity.find(license, licenseGeneration, code, minuteMs, machine)
    if (entry < 0) return false
    this.#activity.count(entry, atMs)
    return true
  }

  /** Starts an entry with the check. Returns false if it does not fit. */
  #startActivity({ license, licenseGeneration, code, atMs }: RecordView, minuteMs: number, machine: Machine): boolean {
    if (this.#activity.isFull) return false
    // Nothing is recorded for a license that was deleted since.
    if (!this.#ids.licenseId(license, licenseGeneration, this.#licenseId)) return true
    return this.#activity.add(license, licenseGeneration, code, minuteMs, machine, this.#licenseId, atMs)
  }
}

function createId(): Uint8Array {
  return new Uint8Array(16)
}

/** Computes the start of the minute or hour of a time. It caches the last one, because the division is expensive. */
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

/** Marks at most `limit` machines whose last use is due. The others are due again with their next check. */
function markSeen(activity: ActivityColumns, limit: number, isDue: IsDue): void {
  const { codes, machineAt, seen } = activity
  for (let entry = 0, count = 0; entry < codes.length && count < limit; entry++) {
    if (codes[entry] !== CODE.VALID || machineAt[entry] === machineAt[entry + 1] || !isDue(activity, entry)) continue
    seen[entry] = 1
    count++
  }
}

/** Returns one row for each hour, organization, product and code. */
function sumChecks(tallies: readonly Tally[]): Checks[] {
  const sums = new Map<string, { -readonly [K in keyof Checks]: Checks[K] }>()
  for (const { hourMs, organizationId, productId, counts } of tallies) {
    const owner = `${hourMs}/${toHex(organizationId)}/${productId === null ? '' : toHex(productId)}`
    for (const [i, code] of CODES.entries()) {
      const count = counts[i]!
      if (count === 0) continue
      const known = sums.get(`${owner}/${code}`)
      if (known) known.count += count
      else sums.set(`${owner}/${code}`, { hourMs, organizationId, productId, code, count })
    }
  }
  return [...sums.values()]
}

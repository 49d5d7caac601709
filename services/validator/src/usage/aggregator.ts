/**
 * Aggregates the usage of checks in memory until the next flush: matches of rules, analytics, activity and the last use of
 * machines (docs/api.md#recorded-data). A check that an exclusion decided is counted only in the matches of its rules (docs/api.md#v7).
 * The records contain no address and no country.
 *
 * Memory is bounded, even during a Postgres outage, and divided fairly between organizations. Checks of a machine that does not
 * fit are counted for its license. Checks of a license that does not fit are dropped and counted in `dropped`. Checks with the
 * code `TOO_MANY_MACHINES` also have a separate capacity, so alerts do not depend on the activity.
 */

import type { ActivityColumns, RecordBatch } from '@keyward/database'
import { machineKey } from '@keyward/database/ids'
import { CODE, type IndexReader } from '@keyward/engine'

import { FairShare } from '../shared/fair-share.ts'
import { ActivityBudget } from './activity-budget.ts'
import { ActivityTable, BYTES_PER_ENTRY, type Machine } from './activity-table.ts'
import { CheckCounts } from './check-counts.ts'
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

interface AggregatorLimits {
  /** The capacity for activity of machines with `VALID` checks, in units of 64 bytes of machine id. */
  valid: number
  /** The capacity for activity of machines with other checks, in the same units. */
  machines: number
  /** The capacity for license entries, which name no machine. */
  licenses: number
  /** The maximum number of rules with matches. Analytics and overuse each have a separate capacity of the same size. */
  entries: number
  /** The maximum number of machines whose last use is written in one flush. */
  seen: number
  /** The maximum number of hostnames that are written in one flush. */
  hostnames: number
}

/** The number of dropped entries, by the part of the usage that lacks them. */
export type Dropped = Record<'activity' | 'analytics' | 'rules' | 'alerts', number>

/** Reads the ids of rows. Each function writes 16 bytes, or returns false if the row has been deleted. */
export type Ids = Pick<IndexReader, 'licenseId' | 'productId' | 'ruleId' | 'organizationId'>

type IsDue = (activity: ActivityTable, entry: number) => boolean
type Overuse = { -readonly [K in keyof RecordBatch['overuse'][number]]: RecordBatch['overuse'][number][K] }
type Rule = { -readonly [K in keyof RecordBatch['rules'][number]]: RecordBatch['rules'][number][K] }

export class Aggregator {
  readonly #ids: Ids
  readonly #limits: AggregatorLimits
  readonly #activity: ActivityTable
  readonly #budget: ActivityBudget
  /**
   * The fairly divided capacities for activity: of machines with `VALID` checks, of machines with other checks, and of
   * licenses.
   */
  readonly #shares: { valid: FairShare; machines: FairShare; licenses: FairShare }
  /** The checks with the code `TOO_MANY_MACHINES`, by the license's row. */
  #overuse = new Map<number, Overuse & { generation: number }>()
  /** The overuse of licenses whose row belongs to another license now. */
  #formerOveruse: Overuse[] = []
  readonly #ruleShare: FairShare
  readonly #overuseShare: FairShare
  /** The hostnames to write, by license and machine id. */
  #hostnames = new Map<string, RecordBatch['hostnames'][number]>()
  readonly #hostnameShare: FairShare
  /** The matches of the rules, by the rule's row. */
  #rules = new Map<number, Rule & { generation: number }>()
  /** The matches of rules whose row belongs to another rule now. */
  #formerRules: Rule[] = []
  readonly #checks: CheckCounts
  readonly #minute = new Period(MINUTE_MS)
  readonly #hour = new Period(HOUR_MS)
  /**
   * The license id of the current check. All checks share one buffer, because allocations would burden the garbage collector.
   */
  readonly #licenseId = createId()
  readonly #dropped: Dropped = { activity: 0, analytics: 0, rules: 0, alerts: 0 }

  constructor(ids: Ids, limits: AggregatorLimits, budget = new ActivityBudget()) {
    const { valid, machines, licenses, entries } = limits
    this.#ids = ids
    this.#limits = limits
    this.#budget = budget
    this.#activity = new ActivityTable(valid + machines + licenses)
    const shares = { valid: new FairShare(valid), machines: new FairShare(machines), licenses: new FairShare(licenses) }
    this.#shares = shares
    this.#ruleShare = new FairShare(entries)
    this.#checks = new CheckCounts(ids, entries)
    this.#overuseShare = new FairShare(entries)
    this.#hostnameShare = new FairShare(limits.hostnames)
  }

  /** The number of entries that were dropped since the start. */
  get dropped(): Readonly<Dropped> {
    return this.#dropped
  }

  /** The approximate number of rows that the next `take` returns. */
  get rows(): number {
    const rules = this.#rules.size + this.#formerRules.length
    const overuse = this.#overuse.size + this.#formerOveruse.length
    return this.#activity.size + rules + this.#checks.size + overuse + this.#hostnames.size
  }

  add(record: RecordView): void {
    for (let i = 0; i < record.matchedCount; i++)
      this.#addRule(record, record.matched[i]!, record.matchedGenerations[i]!)
    if (record.excluded) return
    if (!this.#checks.add(record, this.#hour.startOf(record.atMs))) this.#dropped.analytics++
    if (record.license < 0) return
    this.#addActivity(record)
    if (record.code === CODE.TOO_MANY_MACHINES) this.#addOveruse(record)
    if (record.hostname !== null && !record.isNewMachine) this.#addHostname(record, record.hostname)
  }

  /**
   * Returns all usage since the previous call, and empties the aggregator. The activity in the result is valid until the next
   * call. `keyUses` is empty. `isDue` returns whether to write the last use of an entry's machine.
   */
  take(isDue: IsDue): RecordBatch {
    const activity = this.#activity.take()
    markSeen(activity, this.#limits.seen, (entry) => isDue(this.#activity, entry))
    const checks = this.#checks.take()
    const rules = [...this.#formerRules, ...this.#rules.values()]
    // The Maps are replaced, because the old table of a cleared Map refers to the next one and so keeps all later tables alive.
    this.#rules = new Map()
    this.#formerRules = []
    const overuse = [...this.#formerOveruse, ...this.#overuse.values()]
    const hostnames = [...this.#hostnames.values()]
    this.#overuse = new Map()
    this.#formerOveruse = []
    this.#hostnames = new Map()
    for (const share of Object.values(this.#shares)) share.clear()
    for (const share of [this.#ruleShare, this.#overuseShare, this.#hostnameShare]) share.clear()
    return { rules, checks, activity, overuse, keyUses: [], hostnames }
  }

  #addRule({ organization, atMs }: RecordView, row: number, generation: number): void {
    const known = this.#rules.get(row)
    if (known && known.generation === generation) {
      known.count++
      known.lastAtMs = Math.max(known.lastAtMs, atMs)
      return
    }
    const id = createId()
    if (!this.#ids.ruleId(row, generation, id)) return
    if (!this.#ruleShare.take(organization)) {
      this.#dropped.rules++
      return
    }
    if (known) this.#formerRules.push(known)
    this.#rules.set(row, { generation, id, count: 1, lastAtMs: atMs })
  }

  #addActivity(record: RecordView): void {
    const minuteMs = this.#minute.startOf(record.atMs)
    if (this.#countActivity(record, minuteMs, record)) return
    if (record.machineLength > 0) {
      if (this.#mayName(record, minuteMs) && this.#startActivity(record, minuteMs, record)) return
    }
    const startMs = this.#budget.isCoarse(record.organization, minuteMs) ? this.#hour.startOf(record.atMs) : minuteMs
    if ((record.machineLength > 0 || startMs !== minuteMs) && this.#countActivity(record, startMs, NO_MACHINE)) return
    const hasCapacity = this.#shares.licenses.take(record.organization)
    if (!hasCapacity || !this.#startActivity(record, startMs, NO_MACHINE)) this.#dropped.activity++
    else this.#budget.countLicense(record.organization)
  }

  /**
   * Takes capacity for an entry of the machine. Returns false if there is no capacity or the budget does not allow the entry.
   */
  #mayName(record: RecordView, minuteMs: number): boolean {
    const isValid = record.code === CODE.VALID
    const share = isValid ? this.#shares.valid : this.#shares.machines
    const weight = Math.ceil(record.machineLength / BYTES_PER_ENTRY)
    if (!share.take(record.organization, weight)) return false
    if (this.#budget.allows(record, minuteMs, isValid)) return true
    share.release(record.organization, weight)
    return false
  }

  #addOveruse({ license, licenseGeneration: generation, organization, atMs }: RecordView): void {
    const known = this.#overuse.get(license)
    if (known && known.generation === generation) {
      known.count++
      known.firstAtMs = Math.min(known.firstAtMs, atMs)
      known.lastAtMs = Math.max(known.lastAtMs, atMs)
      return
    }
    const licenseId = createId()
    if (!this.#ids.licenseId(license, generation, licenseId)) return // deleted since
    if (!this.#overuseShare.take(organization)) {
      this.#dropped.alerts++
      return
    }
    if (known) this.#formerOveruse.push(known)
    this.#overuse.set(license, { generation, licenseId, count: 1, firstAtMs: atMs, lastAtMs: atMs })
  }

  /** Adds a hostname. A hostname that does not fit is added by a later check. */
  #addHostname(record: RecordView, hostname: string): void {
    const licenseId = createId()
    const { bytes, machineAt, machineLength, organization } = record
    if (!this.#ids.licenseId(record.license, record.licenseGeneration, licenseId)) return
    const machineId = bytes.slice(machineAt, machineAt + machineLength)
    const key = machineKey(licenseId, machineId)
    if (this.#hostnames.has(key) || !this.#hostnameShare.take(organization)) return
    this.#hostnames.set(key, { licenseId, machineId, hostname })
  }

  /** Counts the check in its entry. Returns false if this entry does not exist. */
  #countActivity({ license, licenseGeneration, code, atMs }: RecordView, minuteMs: number, machine: Machine): boolean {
    const entry = this.#activity.find(license, licenseGeneration, code, minuteMs, machine)
    if (entry < 0) return false
    this.#activity.count(entry, atMs)
    return true
  }

  /** Adds an entry for the check. Returns false if the entry does not fit. */
  #startActivity({ license, licenseGeneration, code, atMs }: RecordView, minuteMs: number, machine: Machine): boolean {
    // Checks of a license that has been deleted since are not recorded.
    if (!this.#ids.licenseId(license, licenseGeneration, this.#licenseId)) return true
    return this.#activity.add(license, licenseGeneration, code, minuteMs, machine, this.#licenseId, atMs)
  }
}

function createId(): Uint8Array {
  return new Uint8Array(16)
}

/** Computes the start of the minute or hour that contains a time. Caches the last start, because the division is expensive. */
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

/** Marks at most `limit` machines whose last use is to be written. The other machines are due again with their next check. */
function markSeen(activity: ActivityColumns, limit: number, isDue: (entry: number) => boolean): void {
  const { codes, machineAt, seen } = activity
  for (let entry = 0, count = 0; entry < codes.length && count < limit; entry++) {
    if (codes[entry] !== CODE.VALID || machineAt[entry] === machineAt[entry + 1] || !isDue(entry)) continue
    seen[entry] = 1
    count++
  }
}

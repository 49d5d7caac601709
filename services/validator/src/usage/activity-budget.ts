/**
 * Decides which machines are named in the activity feed (docs/api.md#d3). A caller can invent machine ids, so without a limit
 * one caller could fill the feed and the disk. The number of named machines is limited for each license and minute, and for
 * each organization and day. The memory for the machines of a minute is also divided fairly between organizations. Checks of
 * machines that are not named are counted for their license. After an organization has reached its limit of license entries for a day, its
 * further license entries are combined by hour instead of by minute.
 *
 * The machines of a minute are stored as a set of keyed hashes, because a machine may appear in each flush of the minute.
 */

import { FairShare } from '../shared/fair-share.ts'
import { RowTable } from '../shared/row-table.ts'
import { PairSet } from './pair-set.ts'

const DAY_MS = 86_400_000

interface ActivityLimits {
  /**
   * The maximum number of machines with `VALID` checks per license and minute. Machine limits make it hard to invent such
   * machines.
   */
  valid: number
  /** The maximum number of machines with other checks per license and minute. */
  rejected: number
  /** The maximum number of machines per organization and day (UTC). A machine counts once per minute and code. */
  day: number
  /** The maximum number of license entries per organization and day (UTC). An entry is counted again in each flush. */
  dayLicenses: number
  /** The maximum number of machines of all organizations per minute. */
  minute: number
}

const LIMITS: ActivityLimits = { valid: 1_000, rejected: 100, day: 1_000_000, dayLicenses: 20_000_000, minute: 65_536 }

/** The machine, license and code of a check. */
interface NamedCheck {
  organization: number
  license: number
  licenseGeneration: number
  code: number
  machineHash0: number
  machineHash1: number
}

export class ActivityBudget {
  readonly #limits: ActivityLimits
  /** The machines that were named in this minute, as hashes of the machine, the license and the code. */
  readonly #names: PairSet
  readonly #share: FairShare
  /** The number of named machines of a license in this minute. The key is twice the license's row, plus 1 for `VALID`. */
  #named = new Map<number, number>()
  /** The number of machines that were named today, by the organization's row. */
  readonly #today = new RowTable()
  /** The number of license entries that were added today, by the organization's row. */
  readonly #licensesToday = new RowTable()
  #minuteMs = 0
  #day = 0

  constructor(limits: ActivityLimits = LIMITS) {
    this.#limits = limits
    this.#names = new PairSet(limits.minute)
    this.#share = new FairShare(limits.minute)
  }

  /**
   * Returns whether the machine of the check may be named. If so, counts the machine unless it was already named with this code
   * in this minute.
   */
  allows(check: NamedCheck, minuteMs: number, isValid: boolean): boolean {
    this.#startMinute(minuteMs)
    const { organization, license, licenseGeneration: generation } = check
    const at = this.#names.find(check.machineHash0, check.machineHash1, license, generation * 16 + check.code)
    if (at < 0) return false
    if (this.#names.isTaken(at)) return true
    const key = license * 2 + Number(isValid)
    const named = this.#named.get(key) ?? 0
    const today = this.#today.get(organization)
    if (named >= (isValid ? this.#limits.valid : this.#limits.rejected) || today >= this.#limits.day) return false
    if (!this.#share.take(organization)) return false
    this.#named.set(key, named + 1)
    this.#today.set(organization, today + 1)
    this.#names.take(at)
    return true
  }

  /** Counts a license entry, which names no machine. */
  countLicense(organization: number): void {
    this.#licensesToday.set(organization, this.#licensesToday.get(organization) + 1)
  }

  /** Returns whether further license entries of the organization are combined by hour. */
  isCoarse(organization: number, minuteMs: number): boolean {
    this.#startMinute(minuteMs)
    return this.#licensesToday.get(organization) >= this.#limits.dayLicenses
  }

  /** Clears the set for a later minute, or after the clock was set back. Late records of the last two minutes do not clear it. */
  #startMinute(minuteMs: number): void {
    if (minuteMs <= this.#minuteMs && minuteMs >= this.#minuteMs - 120_000) return
    this.#minuteMs = minuteMs
    this.#names.clear()
    this.#share.clear()
    this.#named = new Map()
    const day = Math.floor(minuteMs / DAY_MS)
    if (day !== this.#day) {
      this.#today.clear()
      this.#licensesToday.clear()
    }
    this.#day = day
  }
}

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

const DAY_MS = 86_400_000
const MAX_STEPS = 64

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
  readonly #mask: number
  /**
   * A hash table of pairs of words. The first word selects the slot at which linear probing starts. The second word of a pair
   * is never 0.
   */
  readonly #words: Int32Array
  readonly #share: FairShare
  /** The number of named machines of a license in this minute. The key is twice the license's row, plus 1 for `VALID`. */
  #named = new Map<number, number>()
  /** The number of machines that were named today, by the organization's row. */
  #today = new Map<number, number>()
  /** The number of license entries that were added today, by the organization's row. */
  #licensesToday = new Map<number, number>()
  #minuteMs = 0
  #day = 0

  constructor(limits: ActivityLimits = LIMITS) {
    this.#limits = limits
    const slots = 2 ** Math.ceil(Math.log2(limits.minute * 2))
    this.#mask = slots - 1
    this.#words = new Int32Array(slots * 2)
    this.#share = new FairShare(limits.minute)
  }

  /**
   * Returns whether the machine of the check may be named. If so, counts the machine unless it was already named with this code
   * in this minute.
   */
  allows(check: NamedCheck, minuteMs: number, isValid: boolean): boolean {
    this.#startMinute(minuteMs)
    const { organization, license, licenseGeneration: generation } = check
    const high = check.machineHash0 ^ Math.imul(license, 0x2c1b3c6d)
    const low = check.machineHash1 ^ Math.imul(generation * 16 + check.code, 0x297a2d39) || 1
    const at = this.#find(high, low)
    if (at < 0) return false
    if (this.#words[at + 1] !== 0) return true
    const key = license * 2 + Number(isValid)
    const named = this.#named.get(key) ?? 0
    const today = this.#today.get(organization) ?? 0
    if (named >= (isValid ? this.#limits.valid : this.#limits.rejected) || today >= this.#limits.day) return false
    if (!this.#share.take(organization)) return false
    this.#named.set(key, named + 1)
    this.#today.set(organization, today + 1)
    this.#words[at] = high
    this.#words[at + 1] = low
    return true
  }

  /** Counts a license entry, which names no machine. */
  countLicense(organization: number): void {
    this.#licensesToday.set(organization, (this.#licensesToday.get(organization) ?? 0) + 1)
  }

  /** Returns whether further license entries of the organization are combined by hour. */
  isCoarse(organization: number, minuteMs: number): boolean {
    this.#startMinute(minuteMs)
    return (this.#licensesToday.get(organization) ?? 0) >= this.#limits.dayLicenses
  }

  /** Clears the set for a later minute, or after the clock was set back. Late records of the last two minutes do not clear it. */
  #startMinute(minuteMs: number): void {
    if (minuteMs <= this.#minuteMs && minuteMs >= this.#minuteMs - 120_000) return
    this.#minuteMs = minuteMs
    this.#words.fill(0)
    this.#share.clear()
    this.#named = new Map()
    const day = Math.floor(minuteMs / DAY_MS)
    if (day !== this.#day) {
      this.#today = new Map()
      this.#licensesToday = new Map()
    }
    this.#day = day
  }

  /** Returns the index of the pair or of a free slot for it. Returns -1 if neither exists within MAX_STEPS. */
  #find(high: number, low: number): number {
    for (let step = 0; step < MAX_STEPS; step++) {
      const at = ((high + step) & this.#mask) * 2
      if (this.#words[at + 1] === 0 || (this.#words[at] === high && this.#words[at + 1] === low)) return at
    }
    return -1
  }
}

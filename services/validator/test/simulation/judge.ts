/**
 * Judges the verdicts of a validator's index at one moment. All checks of an organization together must have the verdicts of
 * one version. That version must be neither older than the versions that the organization's checks have shown before, nor older
 * than the snapshot that the validator has published as applied. While the validator is ready and undisturbed, the version must
 * also not be older than the propagation bound allows.
 *
 * A claim or release of this validator is applied at once, so a machine may be newer than the version. The machine then has the
 * state after that claim or release.
 */

import { bytesToUuid } from '@keyward/database/ids'
import { Snapshot } from '@keyward/database/snapshot'
import {
  type Check,
  CLAIM_SLOT,
  CODES,
  createCheck,
  createCredentialView,
  createVerdict,
  type IndexReader,
  RECORD_MACHINE,
} from '@keyward/engine'

import type { SimulatedPostgres } from './postgres.ts'
import { bytesOf, idOf, keyOf, numberOf, secretHashOf } from './rows.ts'
import { type Policy, policyOf, type WatchedCheck, wordOf } from './verdicts.ts'
import { keyNumberOf, licenseOf, machineName, type State, usedOf } from './world.ts'

/**
 * The propagation bound: a ready and undisturbed validator shows a version at most this long after the commit of that version.
 */
export const BOUND_MS = 2_000

/** The interval at which a validator compares the age of its index with STALE_LIMIT, plus a margin for the network. */
const TICK_MS = 150

/** The maximum age of the heartbeat of a live validator. */
const LIVE_MS = 5_000

/**
 * The kinds of problems. `wrongly allowed`: a check is VALID although every possible version rejects it. `backwards`: the
 * version is older than a version that was shown before. `mixed`: the verdicts match no version. `late`: the version is older
 * than the propagation bound allows. `applied too early`: the version is older than the published snapshot.
 */
export type Problem = 'wrongly allowed' | 'backwards' | 'mixed' | 'late' | 'applied too early'

export interface Finding {
  readonly problem: Problem
  readonly atMs: number
  readonly text: string
}

export interface Shown {
  readonly code: string
  readonly slot: 'none' | 'claim' | 'record'
  readonly used: number
  /** The number of the license, or null if the index contains none with the key. */
  readonly license: number | null
}

/** The result of a claim or release of this validator, with the version that was current when it committed. */
interface OwnMachine {
  readonly version: number
  /** Whether the transaction wrote the machine. If the transaction only read it, the feed may still deliver an older state. */
  readonly isWrite: boolean
}

export interface Condition {
  readonly nowMs: number
  readonly isReady: boolean
  /** `STALE_LIMIT`: the maximum age of the index at which checks are decided. */
  readonly staleLimitMs: number
  /** The time at which a fault last disturbed the validator. */
  readonly troubledMs: number
}

export class Judge {
  readonly #postgres: SimulatedPostgres
  #reader: IndexReader
  /** The number of the validator that is judged. */
  #life = 0
  readonly #checks: readonly WatchedCheck[]
  readonly #organizations: readonly number[]
  /** The oldest version that explains the verdicts shown so far, by organization. */
  readonly #shown = new Map<number, number>()
  /** The latest version that a heartbeat has published as applied, by organization. */
  readonly #acknowledged = new Map<number, number>()
  readonly #policies = new Map<WatchedCheck, Policy[]>()
  readonly #ownMachines = new Map<string, OwnMachine[]>()
  /** The organizations whose large change is being applied in pages. */
  #paged: readonly number[] = []
  /** The parsed snapshots, by their text. */
  readonly #parsed = new Map<string, Snapshot>()
  readonly #check = createCheck()
  readonly #id = new Uint8Array(16)
  readonly #verdict = createVerdict()

  constructor(postgres: SimulatedPostgres, reader: IndexReader, checks: readonly WatchedCheck[]) {
    this.#postgres = postgres
    this.#reader = reader
    this.#checks = checks
    this.#organizations = [...new Set(checks.map(({ organization }) => organization))]
  }

  /**
   * Records that a large change of these organizations is applied in pages from now on. Until `endPages`, the verdicts of these
   * organizations may be old, and checks may be rejected without reason. A check may be VALID only if a version allows it.
   */
  beginPages(organizations: readonly number[]): void {
    this.#paged = [...this.#paged, ...organizations]
  }

  endPages(): void {
    this.#paged = []
  }

  /** Records that a claim or release was applied to the index. */
  own(license: number, machine: string, xid: bigint, isWrite: boolean): void {
    const { versionOfTransaction, firstFreshXid } = this.#postgres
    const version = versionOfTransaction.get(xid) ?? 0
    // A transaction number that is used again may count as already read. The claim then arrives with the next load. Without its license, the
    // index cannot store a machine, which then arrives with the next read after the license.
    const own = { version, isWrite: isWrite && xid >= firstFreshXid && this.#isKnown(license) }
    const name = machineName(license, machine)
    this.#ownMachines.set(name, [...(this.#ownMachines.get(name) ?? []), own])
  }

  /**
   * Records that the next validator decides checks from now on. Its verdicts must not be older than `version`, nor older than a version that
   * an earlier validator has acknowledged.
   */
  restart(life: number, reader: IndexReader, version: number): void {
    // A validator that begins to decide checks from its index file may have applied a part of the pages.
    if (life !== this.#life) this.#paged = []
    this.#life = life
    this.#reader = reader
    for (const organization of this.#organizations)
      this.#shown.set(organization, Math.max(version, this.#acknowledged.get(organization) ?? 0))
    // The index contains the claims and releases of earlier validators only if the index file contains them.
    for (const [name, machines] of this.#ownMachines)
      this.#ownMachines.set(
        name,
        machines.map((one) => ({ version: one.version, isWrite: false })),
      )
  }

  /** Returns the problem with the current verdicts, or null. `isWritten` means that the index has changed since the last call. */
  judge(condition: Condition, isWritten: boolean): Finding | null {
    const bound = this.#boundVersion(condition)
    for (const organization of this.#organizations) {
      const applied = this.#appliedVersion(organization, condition.nowMs)
      if (applied > (this.#acknowledged.get(organization) ?? 0)) this.#acknowledged.set(organization, applied)
      if (!isWritten && Math.max(bound, applied) <= (this.#shown.get(organization) ?? -1)) continue
      const checks = this.#checks.filter((check) => check.organization === organization)
      const shown = checks.map((check) => this.show(check))
      const isApiKeyValid = this.#isApiKeyValid(organization)
      const before = this.#shown.get(organization) ?? 0
      if (this.#paged.includes(organization)) {
        const wrong = checks.find((check, i) => isApiKeyValid && !this.#mayBe(check, shown[i]!, before))
        if (wrong === undefined) continue
        const text = this.#describe(organization, { before, bound: 0, applied: 0 }, checks, shown)
        return { problem: 'wrongly allowed', atMs: condition.nowMs, text }
      }
      const explains = (version: number): boolean =>
        isApiKeyValid === isValidIn(this.#postgres.versions[version]!.state, organization) &&
        checks.every((check, i) => this.#explains(version, check, shown[i]!))
      const found = this.#find(Math.max(before, bound, applied), explains)
      if (found !== null) {
        this.#shown.set(organization, found)
        continue
      }
      const singles = checks.map((check, i) => (version: number) => this.#explains(version, check, shown[i]!))
      const problem = this.#classify({ before, bound, applied }, explains, singles, shown)
      const where = { before, bound, applied }
      return { problem, atMs: condition.nowMs, text: this.#describe(organization, where, checks, shown) }
    }
    return null
  }

  /** Returns a description of the first check whose verdict or slot count differs from the latest version, or null. */
  judgeEnd(): string | null {
    const { state } = this.#postgres
    for (const check of this.#checks) {
      const shown = this.show(check)
      const policy = this.#policy(this.#postgres.latest, check)
      const [number, license] = licenseOf(state, check.license) ?? [0, undefined]
      const used = usedOf(state, number)
      const isHeld = this.#holds(this.#postgres.latest, check)
      const isRight =
        policy === 'SLOT' ? isSlotVerdict(license?.max ?? null, isHeld, used, shown) : isPolicy(policy, shown)
      if (!isRight) return `${nameOf(check)} is ${shown.code} instead of ${policy}`
      if (license !== undefined && policy !== 'NOT_FOUND' && shown.used !== used)
        return `license ${number} counts ${shown.used} machines instead of ${used}`
    }
    return null
  }

  show(watched: WatchedCheck): Shown {
    const verdict = this.#verdict
    this.#reader.decide(fill(this.#check, this.#reader, watched), 0, verdict)
    const slot = verdict.slot === CLAIM_SLOT ? 'claim' : verdict.slot === RECORD_MACHINE ? 'record' : 'none'
    const isFound = this.#reader.licenseId(verdict.license, verdict.licenseGeneration, this.#id)
    const license = isFound ? numberOf(this.#id) : null
    return { code: verdict.busy ? 'busy' : CODES[verdict.code]!, slot, used: verdict.used, license }
  }

  /** Returns whether the check is rejected, or a version from `from` on allows it. */
  #mayBe(check: WatchedCheck, { code }: Shown, from: number): boolean {
    const isAllowed = (version: number): boolean => ['VALID', 'SLOT'].includes(this.#policy(version, check))
    return code !== 'VALID' || this.#find(from, isAllowed) !== null
  }

  #find(from: number, explains: (version: number) => boolean): number | null {
    for (let version = from; version <= this.#postgres.latest; version++) if (explains(version)) return version
    return null
  }

  #boundVersion({ nowMs, isReady, staleLimitMs, troubledMs }: Condition): number {
    const isUndisturbed = isReady && nowMs - troubledMs >= BOUND_MS
    const latestMs = nowMs - (isUndisturbed ? BOUND_MS : staleLimitMs + TICK_MS)
    return Math.max(
      0,
      this.#postgres.versions.findLastIndex(({ atMs }) => atMs <= latestMs),
    )
  }

  /** Returns the latest version that management would consider applied by this validator for the organization. */
  #appliedVersion(organization: number, nowMs: number): number {
    const heartbeat = this.#postgres.heartbeatOf(this.#life)
    if (heartbeat === null || heartbeat.applied === null || nowMs - heartbeat.seenMs > LIVE_MS) return 0
    const { applied, others } = heartbeat
    const isCounted = others !== undefined && applied !== '1:1:'
    const isApart = others?.except.includes(bytesToUuid(idOf('organization', organization)))
    return Math.max(this.#versionOf(applied), isCounted && !isApart ? this.#versionOf(others.snapshot) : 0)
  }

  /** Returns the latest version of the current history that is visible in a snapshot. */
  #versionOf(snapshot: string): number {
    const { versions, historyStart } = this.#postgres
    const parsed = this.#parsed.get(snapshot) ?? new Snapshot(snapshot)
    this.#parsed.set(snapshot, parsed)
    return Math.max(
      0,
      versions.findLastIndex(({ xid }, i) => i >= historyStart && xid !== null && parsed.contains(xid)),
    )
  }

  #policy(version: number, check: WatchedCheck): Policy {
    let known = this.#policies.get(check)
    if (known === undefined) this.#policies.set(check, (known = []))
    return (known[version] ??= policyOf(this.#postgres.versions[version]!.state, check))
  }

  #explains(version: number, check: WatchedCheck, shown: Shown): boolean {
    const policy = this.#policy(version, check)
    if (policy !== 'SLOT') return isPolicy(policy, shown)
    const { versions, latest } = this.#postgres
    const [number, { max }] = licenseOf(versions[version]!.state, check.license)!
    if (shown.license !== number) return false
    const name = machineName(number, check.machine)
    const own = (this.#ownMachines.get(name) ?? []).filter((one) => one.version >= version)
    const held = new Set(own.map((one) => this.#holds(one.version, check)))
    if (!own.some(({ isWrite }) => isWrite)) held.add(this.#holds(version, check))
    // In the change log, the machines of a deleted license belong to no organization. They may be removed from the index before the license.
    if (versions.some(({ state }, i) => i > version && !state.license.has(number))) held.add(false)
    for (let counted = version; counted <= latest; counted++) {
      const used = usedOf(versions[counted]!.state, number)
      for (const isHeld of held) if (isSlotVerdict(max, isHeld, used, shown)) return true
    }
    return false
  }

  #holds(version: number, { license, machine }: WatchedCheck): boolean {
    const { state } = this.#postgres.versions[version]!
    const found = licenseOf(state, license)
    return found !== undefined && state.machine.has(machineName(found[0], machine))
  }

  #classify(
    floors: { before: number; bound: number; applied: number },
    explains: (version: number) => boolean,
    singles: readonly ((version: number) => boolean)[],
    shown: readonly Shown[],
  ): Problem {
    const { before, bound } = floors
    const isExplained = this.#find(before, explains) !== null
    if (isExplained) return this.#find(Math.max(before, bound), explains) === null ? 'late' : 'applied too early'
    const isAllowed = shown.some(({ code }, i) => code === 'VALID' && this.#find(before, singles[i]!) === null)
    if (isAllowed) return 'wrongly allowed'
    return this.#find(0, explains) === null ? 'mixed' : 'backwards'
  }

  /** Returns whether the index contains the license. */
  #isKnown(license: number): boolean {
    const watched = this.#checks.find((check) => check.license === keyNumberOf(license))
    return watched !== undefined && this.show(watched).license === license
  }

  #isApiKeyValid(organization: number): boolean {
    const view = createCredentialView()
    const row = this.#reader.findCredential(secretHashOf(organization))
    return row >= 0 && this.#reader.credential(row, view)
  }

  #describe(
    organization: number,
    floors: { before: number; bound: number; applied: number },
    checks: readonly WatchedCheck[],
    shown: readonly Shown[],
  ): string {
    const from = Math.max(floors.before, floors.bound, floors.applied)
    const lines = checks.map((check, i) => {
      const explained = this.#find(from, (version) => this.#explains(version, check, shown[i]!))
      const versions = this.#postgres.versions.slice(from).map((_, at) => this.#policy(from + at, check))
      const verdict = `${shown[i]!.code}${shown[i]!.slot === 'none' ? '' : ` (${shown[i]!.slot})`}`
      const mark = explained === null ? '!' : ' '
      return `  ${mark} ${nameOf(check)}: ${verdict}; versions from ${from} on: ${versions.join(', ')}`
    })
    const { before, bound, applied } = floors
    return `organization ${organization}, shown ${before}, due ${bound}, applied ${applied}:\n${lines.join('\n')}`
  }
}

function isValidIn(state: State, organization: number): boolean {
  const credential = state.credential.get(organization)
  return credential !== undefined && !credential.revoked
}

function isPolicy(policy: Policy, shown: Shown): boolean {
  return shown.code === policy && shown.slot === 'none'
}

function isSlotVerdict(max: number | null, isHeld: boolean, used: number, { code, slot }: Shown): boolean {
  if (isHeld) return code === 'VALID' && slot === 'none'
  if (max === null) return code === 'VALID' && slot === 'record'
  return slot === 'claim' && code === (used < max ? 'VALID' : 'TOO_MANY_MACHINES')
}

export function nameOf({ license, machine, address, country }: WatchedCheck): string {
  return `license ${license} on ${machine} from ${address} ${country}`
}

function fill(check: Check, reader: IndexReader, watched: WatchedCheck): Check {
  check.organization = reader.findOrganization(idOf('organization', watched.organization))
  check.licenseKey = keyOf(watched.license)
  check.licenseKeyLength = check.licenseKey.length
  check.machineId = bytesOf(watched.machine)
  check.machineIdLength = check.machineId.length
  check.addressFamily = 4
  check.a0 = wordOf(watched.address)
  check.country = (watched.country.charCodeAt(0) << 8) | watched.country.charCodeAt(1)
  return check
}

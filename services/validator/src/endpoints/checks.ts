/**
 * Implements the steps that follow the decision of a check: leases, claims, the response and the recording. Single checks and batches share
 * this code, so they have the same verdicts and effects (docs/api.md#h13).
 */

import {
  type Check,
  CLAIM_SLOT,
  CODE,
  HOLDS_LEASE,
  type IndexReader,
  NO_SLOT,
  NOT_STARTED,
  RECORD_MACHINE,
  START_TERM,
  type Verdict,
} from '@keyward/engine'

import {
  entitledResponse,
  gatewayResponse,
  type PreparedResponse,
  rejectionResponse,
  type Shape,
  validResponse,
} from '../http/responses.ts'
import { monotonicMs } from '../shared/clock.ts'
import type { Control } from '../shared/control.ts'
import type { Counters } from '../shared/counters.ts'
import type { LeaseKey, Leases } from '../shared/leases.ts'
import type { ClaimDecision } from '../shared/messages.ts'
import type { Throttle } from '../shared/throttle.ts'
import { HostnameFilter } from '../usage/hostname-filter.ts'
import { EntitlementsSource } from './entitlements.ts'
import { createRequestBody, type RequestBody } from './request-body.ts'

/** Claims slots in Postgres through the main thread. The caller must not write to the arrays after the call. */
interface SlotClaims {
  claim(
    organization: number,
    licenseId: Uint8Array,
    machineId: Uint8Array,
    hostname: string | null,
    isRecheck: boolean,
    lease: LeaseKey,
    done: (decision: ClaimDecision) => void,
  ): void
  /** Renews the lease of a machine. The check does not wait for the renewal. */
  renew(
    organization: number,
    licenseId: Uint8Array,
    machineId: Uint8Array,
    hostname: string | null,
    lease: LeaseKey,
  ): void
}

/** Receives every check that has a verdict, without its address and country (docs/api.md#d1). */
interface UsageSink {
  /**
   * Records a check. The caller may reuse the arguments after the call. `hostname` is null unless it is to be recorded.
   */
  record(check: Check, verdict: Verdict, code: number, nowMs: number, hostname: string | null): void
  /** Makes the recorded checks visible to the main thread. */
  publish(): void
}

interface ChecksParts {
  reader: IndexReader
  control: Control
  counters: Counters
  recheckThrottle: Throttle
  /** Limits how often the checks of a machine request a renewal of its lease. */
  renewalThrottle: Throttle
  leases: Leases
  usage: UsageSink
  claims: SlotClaims
}

/** A check together with the fields of its body. */
export type CheckRequest = Check & RequestBody

export function createCheckRequest(): CheckRequest {
  return {
    ...createRequestBody(),
    organization: -1,
    product: 0,
    hasOrigin: true,
    addressFamily: 0,
    a0: 0,
    a1: 0,
    a2: 0,
    a3: 0,
    country: 0,
  }
}

/** The outcome of a check. `code` is one of the values of `CODE`. */
export interface CheckOutcome {
  code: number
  used: number
  max: number
}

/**
 * A check that waits for Postgres. It contains copies, because other requests overwrite the original check and verdict before Postgres
 * responds.
 */
export interface WaitingCheck {
  check: CheckRequest
  verdict: Verdict
  licenseId: Uint8Array
  /** Whether the claim rechecks a full license. If so, the verdict of the index applies when Postgres does not decide. */
  isRecheck: boolean
}

export class Checks {
  readonly #parts: ChecksParts
  readonly #hostnames = new HostnameFilter()
  readonly #entitlements: EntitlementsSource

  constructor(parts: ChecksParts) {
    this.#parts = parts
    this.#entitlements = new EntitlementsSource(parts.reader)
  }

  /** Returns whether the check must claim a slot in Postgres. A machine with a valid lease passes without a claim. */
  mustClaim(check: CheckRequest, verdict: Verdict, nowMs: number): boolean {
    if (verdict.slot === HOLDS_LEASE) this.#useLease(check, verdict, nowMs)
    if (verdict.slot !== CLAIM_SLOT && verdict.slot !== START_TERM && verdict.slot !== HOLDS_LEASE) return false
    if (verdict.code !== CODE.TOO_MANY_MACHINES) return true
    // A full license needs a claim only when a recheck is due (docs/api.md#s5).
    const { control, recheckThrottle } = this.#parts
    // Only Postgres can determine whether a lease has ended, so during an outage the check requires a claim and ends with a 503.
    if (verdict.leaseSeconds > 0 && !control.isDatabaseReachable) return true
    return control.isDatabaseReachable && recheckThrottle.isDue(verdict.license, nowMs)
  }

  /** Prepares the claim of a check. When the license was deleted since the verdict, changes the verdict to NOT_FOUND and returns null. */
  prepareClaim(check: CheckRequest, verdict: Verdict): WaitingCheck | null {
    const { control, reader } = this.#parts
    const licenseId = new Uint8Array(16)
    if (!reader.licenseId(verdict.license, verdict.licenseGeneration, licenseId)) {
      setNotFound(verdict)
      return null
    }
    const { matched, matchedGenerations, matchedCount } = verdict
    return {
      check: { ...check, machineId: check.machineId.slice(0, check.machineIdLength) },
      verdict: {
        ...verdict,
        matched: matched.slice(0, matchedCount),
        matchedGenerations: matchedGenerations.slice(0, matchedCount),
      },
      licenseId,
      isRecheck: verdict.code === CODE.TOO_MANY_MACHINES && (verdict.leaseSeconds === 0 || control.isDatabaseReachable),
    }
  }

  /** Claims the slot of a check. `done` receives the outcome, or null when the check remains undecided. */
  claim({ check, verdict, licenseId, isRecheck }: WaitingCheck, done: (outcome: CheckOutcome | null) => void): void {
    const { organization, machineId, hostname } = check
    const lease = leaseKeyOf(verdict)
    this.#parts.claims.claim(organization, licenseId, machineId, hostname, isRecheck, lease, (decision) => {
      if (decision.isDecided && decision.leaseEndsMs > monotonicMs()) {
        if (verdict.expiresAtMs === NOT_STARTED) verdict.expiresAtMs = decision.expiresAtMs
        done(decision)
      } else done(isRecheck ? verdict : null)
    })
  }

  /**
   * Returns the response to a check. Returns null when the response needs entitlements, but the license was deleted since the verdict or
   * the index is busy, and when an index without contact to Postgres does not contain the license. The next call may overwrite the bytes.
   */
  responseOf(
    shape: Shape,
    { wantsEntitlements }: CheckRequest,
    { license, licenseGeneration, expiresAtMs, graceEndsAtMs }: Verdict,
    code: number,
    used: number,
    max: number,
  ): PreparedResponse | null {
    if (code === CODE.NOT_FOUND && this.#parts.control.isUnconfirmed) return null
    if (shape === 'gateway') return gatewayResponse(code, license < 0 ? Infinity : expiresAtMs, graceEndsAtMs)
    if (code !== CODE.VALID) return rejectionResponse(shape, code, used, max)
    if (!wantsEntitlements) return validResponse(shape, expiresAtMs, graceEndsAtMs)
    const entitlements = this.#entitlements.read(license, licenseGeneration)
    return entitlements === null ? null : entitledResponse(shape, expiresAtMs, graceEndsAtMs, entitlements)
  }

  /** Counts and records a check. The main thread reads the record after the next `publish`. */
  record(shape: Shape, check: CheckRequest, verdict: Verdict, code: number, nowMs: number): void {
    this.#parts.counters.countCheck(shape === 'v1' ? 0 : 1, code)
    const { hostname } = check
    const recorded = hostname === null ? null : this.#toRecord(hostname, verdict, code, nowMs)
    this.#parts.usage.record(check, verdict, code, nowMs, recorded)
  }

  publish(): void {
    this.#parts.usage.publish()
  }

  /**
   * Removes the claim from the verdict if the machine has a valid lease. In the second half of the lease, also requests a
   * renewal, for which the check does not wait (docs/api.md#l4).
   */
  #useLease(check: CheckRequest, verdict: Verdict, nowMs: number): void {
    const { claims, control, leases, reader, renewalThrottle } = this.#parts
    const leftMs = leases.deadlineMs(verdict, verdict.leaseSeconds) - monotonicMs()
    if (leftMs <= 0) return
    verdict.slot = NO_SLOT
    if (leftMs >= 500 * verdict.leaseSeconds || !control.isDatabaseReachable) return
    if (!renewalThrottle.isDue(verdict.machineHash0 ^ verdict.license, nowMs)) return
    const licenseId = new Uint8Array(16)
    if (!reader.licenseId(verdict.license, verdict.licenseGeneration, licenseId)) return
    const { organization, machineId, machineIdLength, hostname } = check
    claims.renew(organization, licenseId, machineId.slice(0, machineIdLength), hostname, leaseKeyOf(verdict))
  }

  /** Returns the hostname if the machine is to be recorded, or if the machine is known and may lack a hostname. Returns null otherwise. */
  #toRecord(
    hostname: string,
    { slot, excluded, license, machineHash0, machineHash1 }: Verdict,
    code: number,
    nowMs: number,
  ): string | null {
    if (slot === RECORD_MACHINE) return hostname
    if (code !== CODE.VALID || slot !== NO_SLOT || excluded) return null
    return this.#hostnames.isDue(license, machineHash0, machineHash1, nowMs) ? hostname : null
  }
}

/** Sets the verdict to NOT_FOUND, for a check whose key no license can have or whose license was deleted. */
export function setNotFound(verdict: Verdict): void {
  verdict.busy = verdict.needsOrigin = false
  verdict.code = CODE.NOT_FOUND
  verdict.slot = NO_SLOT
  verdict.excluded = false
  verdict.license = verdict.product = verdict.decidedBy = -1
  verdict.matchedCount = 0
}

function leaseKeyOf({ license, licenseGeneration, machineHash0, machineHash1 }: Verdict): LeaseKey {
  return { license, licenseGeneration, machineHash0, machineHash1 }
}

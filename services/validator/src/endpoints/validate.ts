/**
 * Validates licenses. v1 and v2 apply the same rules and differ only in their shape (docs/api.md#h1). Most checks are decided
 * from memory. A check waits for Postgres, through the main thread, in two cases: its machine may need a slot of a limited
 * license, or the check starts a term (docs/api.md#l1).
 */

import { type OriginResolver } from '@keyward/address'
import { MAX_LICENSE_KEY_BYTES } from '@keyward/contract/text'
import {
  type Check,
  CLAIM_SLOT,
  CODE,
  createVerdict,
  HOLDS_LEASE,
  type IndexReader,
  NO_SLOT,
  NOT_STARTED,
  RECORD_MACHINE,
  START_TERM,
  type Verdict,
} from '@keyward/engine'

import type { Authenticator } from '../http/authenticator.ts'
import type { Exchange } from '../http/exchange.ts'
import { ExchangeSource } from '../http/origin-source.ts'
import {
  entitledResponse,
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
import type { RecheckThrottle } from '../shared/recheck-throttle.ts'
import { HostnameFilter } from '../usage/hostname-filter.ts'
import { EntitlementsSource } from './entitlements.ts'
import { describeBody } from './request-body-errors.ts'
import { parsePlainBody } from './request-body-fast-path.ts'
import { type BodyKind, createRequestBody, parseBody, type RequestBody } from './request-body.ts'

/** Claims slots in Postgres through the main thread. The caller must not write to the arrays after the call. */
export interface SlotClaims {
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
export interface UsageSink {
  /**
   * Records a check. The caller may reuse the arguments after the call. `hostname` is null unless the machine is to be
   * recorded.
   */
  record(check: Check, verdict: Verdict, code: number, nowMs: number, hostname: string | null): void
}

export interface ValidationParts {
  reader: IndexReader
  authenticator: Authenticator
  resolver: OriginResolver
  control: Control
  counters: Counters
  recheckThrottle: RecheckThrottle
  /** Limits how often the checks of a machine request a renewal of its lease. */
  renewalThrottle: RecheckThrottle
  leases: Leases
  usage: UsageSink
  claims: SlotClaims
}

export class Validation {
  readonly #parts: ValidationParts
  readonly #source: ExchangeSource
  readonly #hostnames = new HostnameFilter()
  readonly #entitlements: EntitlementsSource
  /** The check of the current request. The next request overwrites it. */
  readonly #check: Check & RequestBody = {
    ...createRequestBody(),
    organization: -1,
    product: 0,
    addressFamily: 0,
    a0: 0,
    a1: 0,
    a2: 0,
    a3: 0,
    country: 0,
  }
  /** The verdict of the current request. The next request overwrites it. */
  readonly #verdict = createVerdict()

  constructor(parts: ValidationParts) {
    this.#parts = parts
    this.#source = new ExchangeSource(parts.resolver)
    this.#entitlements = new EntitlementsSource(parts.reader)
  }

  run(exchange: Exchange, body: Uint8Array, kind: BodyKind): void {
    const { authenticator, counters, reader, resolver } = this.#parts
    const nowMs = Date.now()
    const credential = authenticator.authenticate(exchange, nowMs)
    if (credential === null) return
    const check = this.#check
    const verdict = this.#verdict
    if (!parsePlainBody(kind, body, check)) {
      counters.count('slowBody')
      if (!parseBody(kind, body, check)) return exchange.fail('INVALID_REQUEST', describeBody(kind, body))
    }
    check.organization = credential.organization
    check.product = credential.product
    if (credential.addressRules) resolver.resolve(this.#source.of(exchange), check)
    else check.addressFamily = check.country = 0
    if (check.licenseKeyLength > MAX_LICENSE_KEY_BYTES) setNotFound(verdict)
    else reader.decide(check, nowMs, verdict)
    if (verdict.busy) {
      counters.count('indexBusy')
      return exchange.fail('UNAVAILABLE')
    }
    if (verdict.slot === HOLDS_LEASE) this.#useLease(verdict, nowMs)
    const isClaim = verdict.slot === CLAIM_SLOT || verdict.slot === START_TERM || verdict.slot === HOLDS_LEASE
    if (isClaim && this.#mustClaim(verdict, nowMs)) this.#claim(exchange, nowMs)
    else this.#respond(exchange, check, verdict, verdict.code, verdict.used, verdict.max, nowMs)
  }

  /** Returns whether to claim a slot in Postgres. A full license needs a claim only when a recheck is due (docs/api.md#s5). */
  #mustClaim(verdict: Verdict, nowMs: number): boolean {
    if (verdict.code !== CODE.TOO_MANY_MACHINES) return true
    // Only Postgres can determine whether a lease has ended, so during an outage the check sends a claim and then receives a
    // 503.
    if (verdict.leaseSeconds > 0 && !this.#parts.control.isDatabaseReachable) return true
    return this.#parts.control.isDatabaseReachable && this.#parts.recheckThrottle.isDue(verdict.license, nowMs)
  }

  /**
   * Removes the claim from the verdict if the machine has a valid lease. In the second half of the lease, also requests a
   * renewal, for which the check does not wait (docs/api.md#l4).
   */
  #useLease(verdict: Verdict, nowMs: number): void {
    const { claims, control, leases, reader, renewalThrottle } = this.#parts
    const leftMs = leases.deadlineMs(verdict, verdict.leaseSeconds) - monotonicMs()
    if (leftMs <= 0) return
    verdict.slot = NO_SLOT
    if (leftMs >= 500 * verdict.leaseSeconds || !control.isDatabaseReachable) return
    if (!renewalThrottle.isDue(verdict.machineHash0 ^ verdict.license, nowMs)) return
    const licenseId = new Uint8Array(16)
    if (!reader.licenseId(verdict.license, verdict.licenseGeneration, licenseId)) return
    const { organization, machineId, machineIdLength, hostname } = this.#check
    claims.renew(organization, licenseId, machineId.slice(0, machineIdLength), hostname, leaseKeyOf(verdict))
  }

  #claim(exchange: Exchange, nowMs: number): void {
    const { claims, control, reader } = this.#parts
    const licenseId = new Uint8Array(16)
    const exists = reader.licenseId(this.#verdict.license, this.#verdict.licenseGeneration, licenseId)
    if (!exists) setNotFound(this.#verdict) // deleted since the verdict
    const { hostname } = this.#check
    // The claim needs copies, because other requests overwrite the originals before Postgres responds.
    const check = { ...this.#check, machineId: this.#check.machineId.slice(0, this.#check.machineIdLength) }
    const { matched, matchedGenerations, matchedCount } = this.#verdict
    const verdict = {
      ...this.#verdict,
      matched: matched.slice(0, matchedCount),
      matchedGenerations: matchedGenerations.slice(0, matchedCount),
    }
    const { code, used, max } = verdict
    if (!exists) return this.#respond(exchange, check, verdict, code, used, max, nowMs)
    const isRecheck = code === CODE.TOO_MANY_MACHINES && (verdict.leaseSeconds === 0 || control.isDatabaseReachable)
    exchange.wait()
    if (isRecheck) exchange.fallback = rejectionResponse(exchange.shape, code, used, max)
    claims.claim(
      check.organization,
      licenseId,
      check.machineId,
      hostname,
      isRecheck,
      leaseKeyOf(verdict),
      (decision) => {
        if (exchange.isDone) return
        if (decision.isDecided && decision.leaseEndsMs > monotonicMs()) {
          if (verdict.expiresAtMs === NOT_STARTED) verdict.expiresAtMs = decision.expiresAtMs
          this.#respond(exchange, check, verdict, decision.code, decision.used, decision.max, nowMs)
        } else if (isRecheck) this.#respond(exchange, check, verdict, code, used, max, nowMs)
        else exchange.fail('UNAVAILABLE')
      },
    )
  }

  /**
   * Returns the hostname if the machine is to be recorded, or if it is known and may lack a hostname. Returns null otherwise.
   */
  #toRecord(
    hostname: string,
    { slot, excluded, machineHash0, machineHash1 }: Verdict,
    code: number,
    nowMs: number,
  ): string | null {
    if (slot === RECORD_MACHINE) return hostname
    if (code !== CODE.VALID || slot !== NO_SLOT || excluded) return null
    return this.#hostnames.isDue(machineHash0, machineHash1, nowMs) ? hostname : null
  }

  #respond(
    exchange: Exchange,
    check: Check & RequestBody,
    verdict: Verdict,
    code: number,
    used: number,
    max: number,
    nowMs: number,
  ): void {
    const { shape, timed } = exchange
    if (timed !== null) this.#parts.counters.observe((performance.now() - timed.fromMs) / 1_000)
    const response =
      code === CODE.VALID && check.wantsEntitlements
        ? this.#entitledResponse(shape, verdict)
        : verdictResponse(shape, code, verdict.expiresAtMs, used, max)
    if (response === null) return exchange.fail('UNAVAILABLE')
    exchange.send(response)
    this.#parts.counters.countCheck(shape === 'v1' ? 0 : 1, code)
    const { hostname } = check
    this.#parts.usage.record(
      check,
      verdict,
      code,
      nowMs,
      hostname === null ? null : this.#toRecord(hostname, verdict, code, nowMs),
    )
  }

  /** Returns the response with entitlements, or null when the license was deleted since the verdict or the index is busy. */
  #entitledResponse(shape: Shape, { license, licenseGeneration, expiresAtMs }: Verdict): PreparedResponse | null {
    const entitlements = this.#entitlements.read(license, licenseGeneration)
    return entitlements === null ? null : entitledResponse(shape, expiresAtMs, entitlements)
  }
}

function leaseKeyOf({ license, licenseGeneration, machineHash0, machineHash1 }: Verdict): LeaseKey {
  return { license, licenseGeneration, machineHash0, machineHash1 }
}

function verdictResponse(shape: Shape, code: number, expiresAtMs: number, used: number, max: number): PreparedResponse {
  return code === CODE.VALID ? validResponse(shape, expiresAtMs) : rejectionResponse(shape, code, used, max)
}

function setNotFound(verdict: Verdict): void {
  verdict.busy = false
  verdict.code = CODE.NOT_FOUND
  verdict.slot = NO_SLOT
  verdict.excluded = false
  verdict.license = verdict.product = verdict.decidedBy = -1
  verdict.matchedCount = 0
}

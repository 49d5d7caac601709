/**
 * Validation (API document, "Endpoints", rules 1 to 4): v1 and v2 apply the same rules and differ in the shape of the answer
 * alone. A check is answered from memory; only a machine that may need a slot of a limited license waits for the main thread.
 */

import { type ClientResolver } from '@keyward/address'
import { maxLicenseKeyBytes } from '@keyward/contract/text'
import {
  type Check,
  CLAIM_SLOT,
  CODE,
  createVerdict,
  type IndexReader,
  RECORD_MACHINE,
  type Verdict,
} from '@keyward/engine'

import type { Authorizer } from '../http/authenticator.ts'
import { ExchangeSource } from '../http/client-source.ts'
import type { Exchange } from '../http/exchange.ts'
import { type Answer, rejectionAnswer, type Shape, validAnswer } from '../http/responses.ts'
import type { Control } from '../shared/control.ts'
import type { Counters } from '../shared/counters.ts'
import type { ClaimOutcome } from '../shared/messages.ts'
import type { Reverified } from '../shared/recheck-throttle.ts'
import { scanFields } from './request-body-fast-path.ts'
import { createFields, type Fields, readFields } from './request-body.ts'

/** Who takes slots: in the main thread, over Postgres. The arrays must not be written again. */
export interface SlotClaims {
  claim(
    licenseId: Uint8Array,
    machineId: Uint8Array,
    hostname: string | null,
    isRecheck: boolean,
    done: (outcome: ClaimOutcome) => void,
  ): void
}

/** What is told of each check that was answered. The address and the country are no part of it, by design. */
export interface Recorder {
  /** Reads both records before it returns. `hostname` counts only for a machine that is to be recorded. */
  checked(check: Check, verdict: Verdict, code: number, nowMs: number, hostname: string | null): void
}

export interface ValidationParts {
  reader: IndexReader
  authorizer: Authorizer
  resolver: ClientResolver
  control: Control
  counters: Counters
  reverified: Reverified
  recorder: Recorder
  claims: SlotClaims
}

export class Validation {
  readonly #parts: ValidationParts
  readonly #source: ExchangeSource
  readonly #check: Check & Fields = {
    ...createFields(),
    organization: -1,
    addressFamily: 0,
    a0: 0,
    a1: 0,
    a2: 0,
    a3: 0,
    country: 0,
  }
  readonly #verdict = createVerdict()

  constructor(parts: ValidationParts) {
    this.#parts = parts
    this.#source = new ExchangeSource(parts.resolver)
  }

  run(exchange: Exchange, body: Uint8Array): void {
    const { authorizer, counters, reader, resolver } = this.#parts
    const nowMs = Date.now()
    const credential = authorizer.admit(exchange, nowMs)
    if (credential === null) return
    const check = this.#check
    const verdict = this.#verdict
    const { shape } = exchange
    if (!scanFields(shape, body, check)) {
      counters.count('slowBody')
      if (!readFields(shape, body, check)) return exchange.fail('INVALID_REQUEST')
    }
    check.organization = credential.organization
    if (credential.addressRules) resolver.resolve(this.#source.of(exchange), check)
    else check.addressFamily = check.country = 0
    if (check.licenseKeyLength > maxLicenseKeyBytes) setNotFound(verdict)
    else reader.decide(check, nowMs, verdict)
    if (verdict.busy) {
      counters.count('indexBusy')
      return exchange.fail('UNAVAILABLE')
    }
    if (verdict.slot === CLAIM_SLOT && this.#mustClaim(verdict, nowMs)) this.#claim(exchange, nowMs)
    else this.#answer(exchange, check, verdict, verdict.code, verdict.used, verdict.max, nowMs)
  }

  /** A full license is answered from memory, and asked for again a few times a second, while Postgres is heard. */
  #mustClaim(verdict: Verdict, nowMs: number): boolean {
    if (verdict.code !== CODE.TOO_MANY_MACHINES) return true
    return this.#parts.control.databaseHeard && this.#parts.reverified.isDue(verdict.license, nowMs)
  }

  #claim(exchange: Exchange, nowMs: number): void {
    const { claims, reader } = this.#parts
    const licenseId = new Uint8Array(16)
    const found = reader.licenseId(this.#verdict.license, this.#verdict.licenseGeneration, licenseId)
    if (!found) setNotFound(this.#verdict) // deleted a moment ago
    const { hostname } = this.#check
    const check = { ...this.#check, machineId: this.#check.machineId.slice(0, this.#check.machineIdLength) }
    const verdict = { ...this.#verdict }
    const { code, used, max } = verdict
    if (!found) return this.#answer(exchange, check, verdict, code, used, max, nowMs)
    exchange.wait()
    if (code === CODE.TOO_MANY_MACHINES) exchange.fallback = rejectionAnswer(exchange.shape, code, used, max)
    claims.claim(licenseId, check.machineId, hostname, code === CODE.TOO_MANY_MACHINES, (outcome) => {
      if (exchange.isDone) return
      if (outcome.answered) this.#answer(exchange, check, verdict, outcome.code, outcome.used, outcome.max, nowMs)
      else if (code === CODE.TOO_MANY_MACHINES) this.#answer(exchange, check, verdict, code, used, max, nowMs)
      else exchange.fail('UNAVAILABLE')
    })
  }

  #answer(
    exchange: Exchange,
    check: Check & Fields,
    verdict: Verdict,
    code: number,
    used: number,
    max: number,
    nowMs: number,
  ): void {
    const { shape, timed } = exchange
    if (timed !== null) this.#parts.counters.observe((performance.now() - timed.fromMs) / 1_000)
    exchange.send(verdictAnswer(shape, code, verdict.expiresAtMs, used, max))
    this.#parts.counters.countCheck(shape === 'v1' ? 0 : 1, code)
    this.#parts.recorder.checked(check, verdict, code, nowMs, verdict.slot === RECORD_MACHINE ? check.hostname : null)
  }
}

function verdictAnswer(shape: Shape, code: number, expiresAtMs: number, used: number, max: number): Answer {
  return code === CODE.VALID ? validAnswer(shape, expiresAtMs) : rejectionAnswer(shape, code, used, max)
}

function setNotFound(verdict: Verdict): void {
  verdict.busy = false
  verdict.code = CODE.NOT_FOUND
  verdict.slot = 0
  verdict.excluded = false
  verdict.license = verdict.product = verdict.decidedBy = -1
  verdict.matchedCount = 0
}

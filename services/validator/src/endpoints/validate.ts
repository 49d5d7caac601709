/**
 * Validates licenses. All endpoints apply the same rules and differ only in their shape (docs/api.md#h1). Most checks are decided from memory.
 * A check waits for Postgres, through the main thread, if its machine may need a slot of a limited license, or if the check starts a term
 * (docs/api.md#l1).
 */

import { type OriginResolver } from '@keyward/address'
import { byteLength, MAX_LICENSE_KEY_BYTES, MAX_MACHINE_ID_BYTES } from '@keyward/contract/text'
import { createVerdict, type CredentialView, type IndexReader, type Verdict } from '@keyward/engine'

import type { AnswerSigner } from '../answers/signer.ts'
import type { Authenticator } from '../http/authenticator.ts'
import type { Exchange } from '../http/exchange.ts'
import { ExchangeSource } from '../http/origin-source.ts'
import { rejectionResponse } from '../http/responses.ts'
import type { Counters } from '../shared/counters.ts'
import { type CheckRequest, type Checks, createCheckRequest, setNotFound } from './checks.ts'
import { describeBody } from './request-body-errors.ts'
import { PlainBodyParser } from './request-body-fast-path.ts'
import { type BodyKind, fillBody, parseBody } from './request-body.ts'

interface ValidationParts {
  reader: IndexReader
  authenticator: Authenticator
  resolver: OriginResolver
  counters: Counters
  checks: Checks
  signer: AnswerSigner
}

export class Validation {
  readonly #parts: ValidationParts
  readonly #source: ExchangeSource
  /** The check of the current request. The next request overwrites it. */
  readonly #check = createCheckRequest()
  readonly #parser = new PlainBodyParser(this.#check)
  /** The verdict of the current request. The next request overwrites it. */
  readonly #verdict = createVerdict()

  constructor(parts: ValidationParts) {
    this.#parts = parts
    this.#source = new ExchangeSource(parts.resolver)
  }

  run(exchange: Exchange, body: Uint8Array, kind: BodyKind): void {
    const { authenticator, counters, signer } = this.#parts
    const nowMs = Date.now()
    const credential = authenticator.authenticate(exchange, nowMs)
    if (credential === null) return
    const check = this.#check
    if (!this.#parser.parse(kind, body)) {
      counters.count('slowBody')
      if (!parseBody(kind, body, check)) return exchange.fail('INVALID_REQUEST', describeBody(kind, body))
    }
    if (check.kid !== null) signer.begin(exchange, body, credential.organization, check.kid, nowMs)
    this.#validate(exchange, credential, nowMs)
  }

  /** Validates the license key and the machine id that a gateway has received in headers (docs/api.md#h14). */
  authorize(exchange: Exchange, licenseKey: string, machineId: string): void {
    const nowMs = Date.now()
    const credential = this.#parts.authenticator.authenticate(exchange, nowMs)
    if (credential === null) return
    if (byteLength(machineId) > MAX_MACHINE_ID_BYTES)
      return exchange.fail('INVALID_REQUEST', `x-keyward-machine must have at most ${MAX_MACHINE_ID_BYTES} bytes.`)
    fillBody({ licenseKey, machineId: machineId || null }, this.#check)
    this.#validate(exchange, credential, nowMs)
  }

  #validate(exchange: Exchange, credential: CredentialView, nowMs: number): void {
    const { checks, counters, reader } = this.#parts
    const check = this.#check
    const verdict = this.#verdict
    check.organization = credential.organization
    check.product = credential.product
    this.#setOrigin(exchange, credential.addressRules)
    if (check.licenseKeyLength > MAX_LICENSE_KEY_BYTES) setNotFound(verdict)
    else reader.decide(check, nowMs, verdict)
    if (verdict.needsOrigin) {
      // The organization's first rule for an address or a country was added after the credential was read.
      this.#setOrigin(exchange, true)
      reader.decide(check, nowMs, verdict)
    }
    if (verdict.busy) {
      counters.count('indexBusy')
      return exchange.fail('UNAVAILABLE')
    }
    if (checks.mustClaim(check, verdict, nowMs)) this.#claim(exchange, nowMs)
    else this.#respond(exchange, check, verdict, verdict.code, verdict.used, verdict.max, nowMs)
  }

  /** Determines the address and the country of the check only if rules depend on them, because this takes time. */
  #setOrigin(exchange: Exchange, isNeeded: boolean): void {
    const check = this.#check
    check.hasOrigin = isNeeded
    if (isNeeded) this.#parts.resolver.resolve(this.#source.of(exchange), check)
    else check.addressFamily = check.country = 0
  }

  #claim(exchange: Exchange, nowMs: number): void {
    const { checks } = this.#parts
    const waiting = checks.prepareClaim(this.#check, this.#verdict)
    if (waiting === null) {
      const { code, used, max } = this.#verdict
      return this.#respond(exchange, this.#check, this.#verdict, code, used, max, nowMs)
    }
    const { check, verdict } = waiting
    exchange.wait()
    if (waiting.isRecheck)
      exchange.fallback = () => rejectionResponse(exchange.shape, verdict.code, verdict.used, verdict.max)
    checks.claim(waiting, (outcome) => {
      if (exchange.isDone) return
      if (outcome === null) return exchange.fail('UNAVAILABLE')
      this.#respond(exchange, check, verdict, outcome.code, outcome.used, outcome.max, nowMs)
    })
  }

  #respond(
    exchange: Exchange,
    check: CheckRequest,
    verdict: Verdict,
    code: number,
    used: number,
    max: number,
    nowMs: number,
  ): void {
    const { checks, counters } = this.#parts
    const { shape, timed } = exchange
    if (timed !== null) counters.observe((performance.now() - timed.fromMs) / 1_000)
    const response = checks.responseOf(shape, check, verdict, code, used, max)
    if (response === null) return exchange.fail('UNAVAILABLE')
    exchange.send(response)
    checks.record(shape, check, verdict, code, nowMs)
    checks.publish()
  }
}

/**
 * Validates up to 100 checks of one request (docs/api.md#h13). Each check has the verdict and the effects that it would have as a single
 * request. First all checks are read and hashed, then their rows are prefetched, then the checks are decided. The memory accesses of
 * different checks therefore overlap. The claims of a batch are sent together, and the response is sent when the last claim is decided. One
 * turn of the event loop runs a bounded number of checks of batches, so that many batches do not delay the checks of other requests.
 */

import type { OriginResolver } from '@keyward/address'
import { MAX_LICENSE_KEY_BYTES } from '@keyward/contract/text'
import { MAX_BATCH_CHECKS } from '@keyward/contract/validation'
import { createVerdict, type CredentialView, HASH_WORDS, type IndexReader } from '@keyward/engine'

import type { AnswerSigner } from '../answers/signer.ts'
import type { Authenticator } from '../http/authenticator.ts'
import type { Exchange } from '../http/exchange.ts'
import { ExchangeSource } from '../http/origin-source.ts'
import {
  ERROR_RESPONSES,
  errorResponse,
  okResponse,
  type PreparedResponse,
  rejectionResponse,
} from '../http/responses.ts'
import type { Counters } from '../shared/counters.ts'
import { BatchBody, describeBatch } from './batch-body.ts'
import { BatchResponse } from './batch-response.ts'
import { type Checks, type CheckOutcome, createCheckRequest, setNotFound, type WaitingCheck } from './checks.ts'
import { Turns } from './turns.ts'

const UNAVAILABLE = ERROR_RESPONSES.v2.UNAVAILABLE.body

interface BatchValidationParts {
  reader: IndexReader
  authenticator: Authenticator
  resolver: OriginResolver
  counters: Counters
  checks: Checks
  signer: AnswerSigner
}

/** A check of a batch that waits for Postgres, with its index in the batch. */
interface WaitingEntry extends WaitingCheck {
  n: number
}

export class BatchValidation {
  readonly #parts: BatchValidationParts
  readonly #source: ExchangeSource
  // These members contain the current request. The next request overwrites them.
  readonly #requests = Array.from({ length: MAX_BATCH_CHECKS }, createCheckRequest)
  readonly #body = new BatchBody(this.#requests)
  readonly #hashes = new Int32Array(MAX_BATCH_CHECKS * HASH_WORDS)
  readonly #verdict = createVerdict()
  readonly #response = new BatchResponse()
  /** The batches that wait for a turn. A connection has at most one, because it is paused meanwhile. */
  readonly #turns = new Turns<{ exchange: Exchange; bytes: Uint8Array }>({
    most: MAX_BATCH_CHECKS,
    isDead: ({ exchange }) => exchange.isDone,
    run: ({ exchange, bytes }) => exchange.resume(() => this.#run(exchange, bytes)),
  })

  constructor(parts: BatchValidationParts) {
    this.#parts = parts
    this.#source = new ExchangeSource(parts.resolver)
  }

  run(exchange: Exchange, bytes: Uint8Array): void {
    if (this.#turns.isFree) return this.#run(exchange, bytes)
    const credential = this.#parts.authenticator.authenticate(exchange, Date.now())
    if (credential === null) return
    exchange.wait()
    this.#turns.add(credential.organization, { exchange, bytes: bytes.slice() })
  }

  #run(exchange: Exchange, bytes: Uint8Array): void {
    const { authenticator, checks, counters, signer } = this.#parts
    const nowMs = Date.now()
    const credential = authenticator.authenticate(exchange, nowMs)
    if (credential === null) return
    const isRead = this.#body.read(bytes)
    const { count, kid } = this.#body
    this.#turns.spend(isRead ? count : MAX_BATCH_CHECKS)
    if (!isRead) return exchange.fail('INVALID_REQUEST', describeBatch(bytes))
    if (kid !== null) signer.begin(exchange, bytes, credential.organization, kid, nowMs)
    for (let i = 0; i < this.#body.slowCount; i++) counters.count('slowBody')
    this.#prepare(exchange, credential)
    this.#response.begin()
    let waiting: WaitingEntry[] | null = null
    for (let n = 0; n < count; n++) {
      const entry = this.#decide(exchange, n, nowMs)
      if (entry !== null) (waiting ??= []).push(entry)
    }
    checks.publish()
    if (waiting === null) exchange.send(okResponse(this.#response.end()))
    else this.#claim(exchange, waiting, nowMs)
  }

  /** Adds the organization, product, address and country to the checks, hashes the checks and prefetches their rows. */
  #prepare(exchange: Exchange, { organization, product, addressRules }: CredentialView): void {
    const { reader } = this.#parts
    const { count, errors } = this.#body
    this.#setOrigin(exchange, addressRules)
    for (let n = 0; n < count; n++) {
      if (errors[n] !== null) continue
      const check = this.#requests[n]!
      check.organization = organization
      check.product = product
      if (check.licenseKeyLength <= MAX_LICENSE_KEY_BYTES) reader.hashCheck(check, this.#hashes, n)
    }
    reader.prefetchChecks(this.#hashes, count)
  }

  /** Sets the address and the country of all checks. They are determined only if rules depend on them, because this takes time. */
  #setOrigin(exchange: Exchange, isNeeded: boolean): void {
    const first = this.#requests[0]!
    if (isNeeded) this.#parts.resolver.resolve(this.#source.of(exchange), first)
    else first.addressFamily = first.country = 0
    const { addressFamily, a0, a1, a2, a3, country } = first
    for (let n = 0; n < this.#body.count; n++) {
      const check = this.#requests[n]!
      check.hasOrigin = isNeeded
      check.addressFamily = addressFamily
      check.a0 = a0
      check.a1 = a1
      check.a2 = a2
      check.a3 = a3
      check.country = country
    }
  }

  /** Decides a check and appends its result. If the check must wait for Postgres, appends a gap and returns the check. */
  #decide(exchange: Exchange, n: number, nowMs: number): WaitingEntry | null {
    const { checks, counters, reader } = this.#parts
    const error = this.#body.errors[n]!
    if (error !== null) {
      counters.count('INVALID_REQUEST')
      this.#response.add(errorResponse('v2', 'INVALID_REQUEST', error).body)
      return null
    }
    const check = this.#requests[n]!
    const verdict = this.#verdict
    if (check.licenseKeyLength > MAX_LICENSE_KEY_BYTES) setNotFound(verdict)
    else reader.decideHashed(check, this.#hashes, n, nowMs, verdict)
    if (verdict.needsOrigin) {
      // The organization's first rule for an address or a country was added after the credential was read.
      this.#setOrigin(exchange, true)
      reader.decideHashed(check, this.#hashes, n, nowMs, verdict)
    }
    if (verdict.busy) {
      counters.count('indexBusy')
      counters.count('UNAVAILABLE')
      this.#response.add(UNAVAILABLE)
      return null
    }
    if (checks.mustClaim(check, verdict, nowMs)) {
      const waiting = checks.prepareClaim(check, verdict)
      if (waiting !== null) {
        this.#response.addGap()
        return { ...waiting, n }
      }
    }
    const response = checks.responseOf('v2', check, verdict, verdict.code, verdict.used, verdict.max)
    if (response === null) {
      counters.count('UNAVAILABLE')
      this.#response.add(UNAVAILABLE)
      return null
    }
    this.#response.add(response.body)
    checks.record('v2', check, verdict, verdict.code, nowMs)
    return null
  }

  /** Claims the slots of the waiting checks. Sends the response when every claim is decided, or at the deadline of the request. */
  #claim(exchange: Exchange, waiting: readonly WaitingEntry[], nowMs: number): void {
    const { checks, counters } = this.#parts
    const results = this.#response.results()
    exchange.wait()
    exchange.fallback = () => {
      // At the deadline, a check without a decision gets the result of a failed claim.
      for (const { n, isRecheck, verdict } of waiting) {
        if (results[n] !== null) continue
        if (!isRecheck) counters.count('UNAVAILABLE')
        results[n] = isRecheck ? rejectionResponse('v2', verdict.code, verdict.used, verdict.max).body : UNAVAILABLE
      }
      return responseOf(results)
    }
    let left = waiting.length
    for (const entry of waiting) {
      checks.claim(entry, (outcome) => {
        if (exchange.isDone) return
        results[entry.n] = this.#resultOf(entry, outcome, nowMs)
        if (--left === 0) exchange.send(responseOf(results))
      })
    }
  }

  #resultOf({ check, verdict }: WaitingCheck, outcome: CheckOutcome | null, nowMs: number): Uint8Array {
    const { checks, counters } = this.#parts
    const response =
      outcome === null ? null : checks.responseOf('v2', check, verdict, outcome.code, outcome.used, outcome.max)
    if (outcome === null || response === null) {
      counters.count('UNAVAILABLE')
      return UNAVAILABLE
    }
    checks.record('v2', check, verdict, outcome.code, nowMs)
    checks.publish()
    return response.body.slice() // the next response overwrites the bytes
  }
}

function responseOf(results: readonly (Uint8Array | null)[]): PreparedResponse {
  return okResponse(BatchResponse.of(results.map((result) => result ?? UNAVAILABLE)))
}

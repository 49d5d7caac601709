/** Decides the checks of a program that embeds the validator. */

import { packCountry, parseAddress } from '@keyward/address'
import { CODE_MESSAGES } from '@keyward/contract/codes'
import { MAX_LICENSE_KEY_BYTES } from '@keyward/contract/text'
import {
  type EmbeddedCheck,
  embeddedCheck,
  type RejectionCode,
  type ValidationErrorCode,
  type VerdictV1,
  verdictV1,
} from '@keyward/contract/validation'
import { CODE, CODES, createVerdict, type IndexReader, NOT_STARTED, openIndex, type Verdict } from '@keyward/engine'

import {
  type CheckOutcome,
  type CheckRequest,
  Checks,
  createCheckRequest,
  setNotFound,
  type WaitingCheck,
} from '../endpoints/checks.ts'
import { EntitlementsSource } from '../endpoints/entitlements.ts'
import { fillBody } from '../endpoints/request-body.ts'
import { Authenticator, type Caller } from '../http/authenticator.ts'
import { errorText } from '../http/responses.ts'
import { TIMESTAMP_BYTES, writeTimestamp } from '../http/timestamp.ts'
import { Control } from '../shared/control.ts'
import { Counters } from '../shared/counters.ts'
import { Leases } from '../shared/leases.ts'
import { Throttle } from '../shared/throttle.ts'
import { RingWriter } from '../usage/ring.ts'
import type { MainThreadClient } from '../workers/main-thread-client.ts'
import type { EmbeddedSetup } from './messages.ts'

type Rejection = Extract<VerdictV1, { valid: false }>

const rejectionOf = (code: RejectionCode): Rejection => ({ valid: false, code, detail: CODE_MESSAGES[code] })
/** The verdicts of rejected checks by the engine's number of the code. `VALID` has none. */
const REJECTIONS = CODES.map((code) => (code === 'VALID' ? null : Object.freeze(rejectionOf(code))))

const decoder = new TextDecoder()
const timestampBytes = Buffer.alloc(TIMESTAMP_BYTES)
/** The members of checks that are read without the schema. */
const COMMON: ReadonlySet<string> = new Set<keyof EmbeddedCheck>(['licenseKey', 'machineId', 'ip', 'country'])

/** A check without a verdict. It is never a rejection, so the program decides whether the customer may continue. */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError'
  readonly code: ValidationErrorCode

  constructor(code: ValidationErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/** Decides the checks of the embedding program. */
export class Checker implements Caller {
  readonly authorization: string
  readonly #reader: IndexReader
  readonly #control: Control
  readonly #authenticator: Authenticator
  readonly #checks: Checks
  readonly #entitlements: EntitlementsSource
  /** The check in progress. The next one overwrites it. */
  readonly #check = createCheckRequest()
  readonly #verdict = createVerdict()
  /** The checks that wait for Postgres, and the functions that reject them. */
  readonly #waiting = new Map<Promise<unknown>, (error: Error) => void>()
  #isEnded = false

  constructor(apiKey: string, setup: EmbeddedSetup, claims: MainThreadClient) {
    const counters = new Counters(setup.counters)
    const reader = openIndex(setup.index)
    this.authorization = `Bearer ${apiKey}`
    this.#reader = reader
    this.#control = new Control(setup.control)
    this.#authenticator = new Authenticator(reader, this.#control, counters, (row, generation, atMs) =>
      claims.send({ type: 'keyUsed', row, generation, atMs }),
    )
    this.#entitlements = new EntitlementsSource(reader)
    this.#checks = new Checks({
      reader,
      control: this.#control,
      counters,
      recheckThrottle: new Throttle(setup.recheckThrottle),
      renewalThrottle: new Throttle(setup.renewalThrottle),
      leases: new Leases(setup.leases),
      usage: new RingWriter(setup.ring, () => counters.count('recordDropped')),
      claims,
    })
  }

  /** Ends all checks. Resolves when no claim waits any more. */
  async end(): Promise<void> {
    this.#isEnded = true
    await Promise.allSettled(this.#waiting.keys())
  }

  /** Rejects the checks that wait, because the thread has ended. */
  abandon(): void {
    for (const reject of this.#waiting.values()) reject(new EmbeddedError('UNAVAILABLE', errorText('UNAVAILABLE')))
  }

  check(given: EmbeddedCheck): VerdictV1 | Promise<VerdictV1> {
    if (this.#isEnded) return this.fail('UNAVAILABLE')
    const nowMs = Date.now()
    const check = this.#check
    const verdict = this.#verdict
    const credential = this.#authenticator.authenticate(this, nowMs)
    if (credential === null) return this.fail('UNAVAILABLE')
    this.#fill(given)
    check.organization = credential.organization
    check.product = credential.product
    if (check.licenseKeyLength > MAX_LICENSE_KEY_BYTES) setNotFound(verdict)
    else this.#reader.decide(check, nowMs, verdict)
    if (verdict.busy) return this.fail('UNAVAILABLE')
    if (!this.#checks.mustClaim(check, verdict, nowMs)) return this.#end(check, verdict, verdict, nowMs)
    const waiting = this.#checks.prepareClaim(check, verdict)
    return waiting === null ? this.#end(check, verdict, verdict, nowMs) : this.#claim(waiting, nowMs)
  }

  fail(code: ValidationErrorCode, text = errorText(code)): never {
    throw new EmbeddedError(code, text)
  }

  #fill(given: EmbeddedCheck): void {
    const check = this.#check
    if (this.#fillPlain(given)) return
    const { success, data, error } = embeddedCheck.safeParse(given)
    if (!success) {
      const issue = error.issues[0]
      throw new EmbeddedError('INVALID_REQUEST', `${issue?.path.join('.') || 'The check'}: ${issue?.message}`)
    }
    fillBody(data, check)
    const { ip = null, country = null } = data
    check.country = country === null ? 0 : packCountry(country)
    if (ip === null) check.addressFamily = 0
    else if (!parseAddress(ip, check)) throw new EmbeddedError('INVALID_REQUEST', 'ip: must be an IPv4 or IPv6 address')
  }

  /** Fills the check as the schema does, but without allocations. Returns false if the check has other members or is invalid. */
  #fillPlain(given: EmbeddedCheck): boolean {
    if (typeof given !== 'object' || given === null) return false
    for (const name in given) if (!COMMON.has(name)) return false
    const { licenseKey, machineId = null, ip = null, country = null } = given
    const check = this.#check
    if (licenseKey === '') return false
    check.licenseKeyLength = writeAscii(licenseKey, check.licenseKey)
    check.machineIdLength = machineId === null ? 0 : writeAscii(machineId, check.machineId)
    if (check.licenseKeyLength < 0 || check.machineIdLength < 0) return false
    if (country === null) check.country = 0
    else if (typeof country === 'string' && /^[A-Z]{2}$/.test(country)) check.country = packCountry(country)
    else return false
    if (ip === null) check.addressFamily = 0
    else if (typeof ip !== 'string' || !parseAddress(ip, check)) return false
    check.hostname = null
    check.wantsEntitlements = false
    return true
  }

  #claim(waiting: WaitingCheck, nowMs: number): Promise<VerdictV1> {
    const { promise, resolve, reject } = Promise.withResolvers<VerdictV1>()
    this.#waiting.set(promise, reject)
    this.#checks.claim(waiting, (outcome) => {
      this.#waiting.delete(promise)
      if (outcome === null) return reject(new EmbeddedError('UNAVAILABLE', errorText('UNAVAILABLE')))
      try {
        resolve(this.#end(waiting.check, waiting.verdict, outcome, nowMs))
      } catch (error) {
        reject(error)
      }
    })
    return promise
  }

  /** Records a decided check, and returns its verdict. */
  #end(check: CheckRequest, verdict: Verdict, outcome: CheckOutcome, nowMs: number): VerdictV1 {
    const result = this.#verdictOf(check, verdict, outcome)
    this.#checks.record('v1', check, verdict, outcome.code, nowMs)
    this.#checks.publish()
    return result
  }

  #verdictOf(
    { wantsEntitlements }: CheckRequest,
    { license, licenseGeneration, expiresAtMs, graceEndsAtMs }: Verdict,
    { code, used, max }: CheckOutcome,
  ): VerdictV1 {
    if (code === CODE.NOT_FOUND && this.#control.isUnconfirmed) return this.fail('UNAVAILABLE')
    const rejection = REJECTIONS[code] ?? null
    if (rejection?.code === 'TOO_MANY_MACHINES') return { ...rejection, machines: { used, max } }
    if (rejection !== null) return rejection
    const valid: VerdictV1 = { valid: true, code: 'VALID', expiresAt: timestamp(expiresAtMs) }
    if (graceEndsAtMs > 0) valid.graceEndsAt = new Date(graceEndsAtMs).toISOString()
    if (!wantsEntitlements) return valid
    const entitlements = this.#entitlements.read(license, licenseGeneration)
    if (entitlements === null) return this.fail('UNAVAILABLE')
    const value: unknown = JSON.parse(decoder.decode(entitlements))
    return verdictV1.parse({ ...valid, entitlements: value })
  }
}

/** Writes a text of ASCII characters. Returns its length, or -1 for another value and a text that does not fit. */
function writeAscii(value: unknown, out: Uint8Array): number {
  if (typeof value !== 'string' || value.length > out.length) return -1
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i)
    if (code > 127) return -1
    out[i] = code
  }
  return value.length
}

/** Returns null for a license that never expires and for a term that has not started. */
function timestamp(expiresAtMs: number): string | null {
  if (expiresAtMs === Infinity || expiresAtMs === NOT_STARTED) return null
  if (writeTimestamp(expiresAtMs, timestampBytes, 0)) return timestampBytes.toString('latin1')
  return new Date(expiresAtMs).toISOString()
}

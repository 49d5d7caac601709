/**
 * Deactivation (API document, "Deactivation" and states rule 3): gives a machine's slot back, whatever the license's status.
 * Access rules do not apply. Only Postgres knows for certain whether a slot was held, so it is always asked.
 */

import { maxLicenseKeyBytes } from '@keyward/contract/text'
import { createCheck, createVerdict, type IndexReader } from '@keyward/engine'

import type { Authorizer } from '../http/authenticator.ts'
import type { Exchange } from '../http/exchange.ts'
import { DEACTIVATED } from '../http/responses.ts'
import type { Counters } from '../shared/counters.ts'
import type { ReleaseOutcome } from '../shared/messages.ts'
import { scanFields } from './request-body-fast-path.ts'
import { createFields, readFields } from './request-body.ts'

/** The arrays must not be written again. */
export interface SlotReleases {
  release(licenseId: Uint8Array, machineId: Uint8Array, done: (outcome: ReleaseOutcome) => void): void
}

export interface DeactivationParts {
  reader: IndexReader
  authorizer: Authorizer
  counters: Counters
  releases: SlotReleases
}

export class Deactivation {
  readonly #parts: DeactivationParts
  readonly #check = { ...createCheck(), ...createFields() }
  readonly #verdict = createVerdict()

  constructor(parts: DeactivationParts) {
    this.#parts = parts
  }

  run(exchange: Exchange, body: Uint8Array): void {
    const { authorizer, counters, reader, releases } = this.#parts
    const nowMs = Date.now()
    const credential = authorizer.admit(exchange, nowMs)
    if (credential === null) return
    const check = this.#check
    const verdict = this.#verdict
    if (!scanFields('deactivate', body, check) && !readFields('deactivate', body, check))
      return exchange.fail('INVALID_REQUEST')
    if (check.licenseKeyLength > maxLicenseKeyBytes) return exchange.send(DEACTIVATED.false)
    check.organization = credential.organization
    reader.decide(check, nowMs, verdict)
    if (verdict.busy) return exchange.fail('UNAVAILABLE')
    const licenseId = new Uint8Array(16)
    if (verdict.license < 0 || !reader.licenseId(verdict.license, verdict.licenseSerial, licenseId))
      return exchange.send(DEACTIVATED.false)
    exchange.wait()
    releases.release(licenseId, check.machineId.slice(0, check.machineIdLength), ({ released }) => {
      if (released === null) return exchange.fail('UNAVAILABLE')
      if (released) counters.count('released')
      exchange.send(released ? DEACTIVATED.true : DEACTIVATED.false)
    })
  }
}

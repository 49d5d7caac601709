/**
 * Deactivation (API document, "Deactivation" and states rule 3): gives a machine's slot back, whatever the license's status.
 * Access rules do not apply. Only Postgres knows for certain whether a slot was held, so it is always asked.
 */

import { maxLicenseKeyBytes } from '@keyward/contract/text'
import { BUSY, createCheck, type IndexReader, UNKNOWN } from '@keyward/engine'

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

  constructor(parts: DeactivationParts) {
    this.#parts = parts
  }

  run(exchange: Exchange, body: Uint8Array): void {
    const { authorizer, counters, reader, releases } = this.#parts
    const nowMs = Date.now()
    const credential = authorizer.admit(exchange, nowMs)
    if (credential === null) return
    const check = this.#check
    if (!scanFields('deactivate', body, check) && !readFields('deactivate', body, check))
      return exchange.fail('INVALID_REQUEST')
    if (check.licenseKeyLength > maxLicenseKeyBytes) return exchange.send(DEACTIVATED.false)
    const licenseId = new Uint8Array(16)
    const row = reader.findLicense(credential.organization, check.licenseKey, check.licenseKeyLength, licenseId)
    if (row === BUSY) return exchange.fail('UNAVAILABLE')
    if (row === UNKNOWN) return exchange.send(DEACTIVATED.false)
    exchange.wait()
    releases.release(licenseId, check.machineId.slice(0, check.machineIdLength), ({ released }) => {
      if (released === null) return exchange.fail('UNAVAILABLE')
      if (released) counters.count('released')
      exchange.send(released ? DEACTIVATED.true : DEACTIVATED.false)
    })
  }
}

/**
 * Deactivates machines: releases the slot of a machine, whatever the status of the license (docs/api.md#h10). Access rules do
 * not apply. Only Postgres determines whether a slot was held, so a request for an existing license waits for Postgres. Callers
 * can invent machine ids and refs (docs/api.md#u2), so the main thread limits the number of requests for machines that the index
 * does not contain. The index contains no refs.
 */

import { MAX_LICENSE_KEY_BYTES } from '@keyward/contract/text'
import { BUSY, type IndexReader, UNKNOWN } from '@keyward/engine'

import type { AnswerSigner } from '../answers/signer.ts'
import type { Authenticator } from '../http/authenticator.ts'
import type { Exchange } from '../http/exchange.ts'
import { DEACTIVATED } from '../http/responses.ts'
import type { Control } from '../shared/control.ts'
import type { Counters } from '../shared/counters.ts'
import type { ReleaseResult } from '../shared/messages.ts'
import { describeBody } from './request-body-errors.ts'
import { PlainBodyParser } from './request-body-fast-path.ts'
import { createRequestBody, parseBody } from './request-body.ts'

/** Releases slots in Postgres through the main thread. The caller must not write to the arrays after the call. */
interface SlotReleases {
  release(
    organization: number,
    licenseId: Uint8Array,
    machineId: Uint8Array,
    ref: string | null,
    isKnown: boolean,
    done: (result: ReleaseResult) => void,
  ): void
}

interface DeactivationParts {
  reader: IndexReader
  authenticator: Authenticator
  control: Control
  counters: Counters
  releases: SlotReleases
  signer: AnswerSigner
}

export class Deactivation {
  readonly #parts: DeactivationParts
  /** The body of the current request. The next request overwrites it. */
  readonly #body = createRequestBody()
  readonly #parser = new PlainBodyParser(this.#body)

  constructor(parts: DeactivationParts) {
    this.#parts = parts
  }

  run(exchange: Exchange, bytes: Uint8Array): void {
    const { authenticator, control, counters, reader, releases, signer } = this.#parts
    const nowMs = Date.now()
    const credential = authenticator.authenticate(exchange, nowMs)
    if (credential === null) return
    const body = this.#body
    if (!this.#parser.parse('deactivate', bytes) && !parseBody('deactivate', bytes, body))
      return exchange.fail('INVALID_REQUEST', describeBody('deactivate', bytes))
    if (body.kid !== null) signer.begin(exchange, bytes, credential.organization, body.kid, nowMs)
    if (body.licenseKeyLength > MAX_LICENSE_KEY_BYTES) return exchange.send(DEACTIVATED.false)
    const licenseId = new Uint8Array(16)
    const row = reader.findLicense(
      credential.organization,
      credential.product,
      body.licenseKey,
      body.licenseKeyLength,
      licenseId,
    )
    if (row === BUSY || (row === UNKNOWN && control.isUnconfirmed)) return exchange.fail('UNAVAILABLE')
    if (row === UNKNOWN) return exchange.send(DEACTIVATED.false)
    const machineId = body.machineId.slice(0, body.machineIdLength)
    const { ref } = body
    const isKnown = ref === null && reader.hasMachine(row, machineId, machineId.length)
    exchange.wait()
    releases.release(credential.organization, licenseId, machineId, ref, isKnown, ({ outcome }) => {
      if (outcome === null) return exchange.fail('UNAVAILABLE')
      if (outcome === 'not_enabled') return exchange.fail('NOT_ENABLED')
      const isReleased = outcome === 'released'
      if (isReleased) counters.count('released')
      exchange.send(isReleased ? DEACTIVATED.true : DEACTIVATED.false)
    })
  }
}

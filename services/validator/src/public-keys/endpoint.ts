/** Serves the public keys of the caller's organization (docs/api.md#h11) from the worker's replica. */

import { toHex } from '@keyward/database/ids'
import type { IndexReader } from '@keyward/engine'

import type { Authenticator } from '../http/authenticator.ts'
import type { Exchange } from '../http/exchange.ts'
import { okResponse } from '../http/responses.ts'
import type { Counters } from '../shared/counters.ts'
import type { PublicKeyBodies, PublicKeyReplica } from './replica.ts'

interface PublicKeysParts {
  reader: IndexReader
  authenticator: Authenticator
  counters: Counters
  replica: PublicKeyReplica
}

export class PublicKeysEndpoint {
  readonly #parts: PublicKeysParts
  /** The id of the current request's organization. */
  readonly #id = new Uint8Array(16)

  constructor(parts: PublicKeysParts) {
    this.#parts = parts
  }

  current(exchange: Exchange): void {
    const bodies = this.#find(exchange)
    if (bodies === null) return
    if (bodies.current === null) exchange.fail('NOT_FOUND')
    else exchange.send(okResponse(bodies.current))
  }

  all(exchange: Exchange): void {
    const bodies = this.#find(exchange)
    if (bodies !== null) exchange.send(okResponse(bodies.all))
  }

  /** Returns the response bodies of the caller's organization, or null after an error was sent. */
  #find(exchange: Exchange): PublicKeyBodies | null {
    const { authenticator, counters, reader, replica } = this.#parts
    const nowMs = Date.now()
    const credential = authenticator.authenticate(exchange, nowMs)
    if (credential === null) return null
    if (!reader.organizationId(credential.organization, this.#id)) {
      exchange.fail('UNAUTHORIZED')
      return null
    }
    counters.count('publicKeys')
    return replica.bodies(toHex(this.#id), nowMs)
  }
}

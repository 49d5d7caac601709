/**
 * The organization's keys that sign offline license files (API document, "Public key"), answered from the worker's own copy.
 */

import { toHex } from '@keyward/database/ids'
import type { IndexReader } from '@keyward/engine'

import type { Authorizer } from '../http/authenticator.ts'
import type { Exchange } from '../http/exchange.ts'
import { okAnswer } from '../http/responses.ts'
import type { Counters } from '../shared/counters.ts'
import type { KeyBodies } from './replica.ts'

export interface PublicKeysParts {
  reader: IndexReader
  authorizer: Authorizer
  counters: Counters
  /** `organization`: its id in hex. */
  keys: { bodies(organization: string, nowMs: number): KeyBodies }
}

export class PublicKeys {
  readonly #parts: PublicKeysParts
  readonly #id = new Uint8Array(16)

  constructor(parts: PublicKeysParts) {
    this.#parts = parts
  }

  current(exchange: Exchange): void {
    const bodies = this.#find(exchange)
    if (bodies === null) return
    if (bodies.current === null) exchange.fail('NOT_FOUND')
    else exchange.send(okAnswer(bodies.current))
  }

  all(exchange: Exchange): void {
    const bodies = this.#find(exchange)
    if (bodies !== null) exchange.send(okAnswer(bodies.all))
  }

  /** Null when the exchange has been answered. */
  #find(exchange: Exchange): KeyBodies | null {
    const { authorizer, counters, keys, reader } = this.#parts
    const nowMs = Date.now()
    const credential = authorizer.admit(exchange, nowMs)
    if (credential === null) return null
    if (!reader.organizationId(credential.organization, this.#id)) {
      exchange.fail('UNAUTHORIZED')
      return null
    }
    counters.count('publicKeys')
    return keys.bodies(toHex(this.#id), nowMs)
  }
}

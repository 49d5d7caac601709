/**
 * The organization's keys that sign offline license files (API document, "Public key"). The main thread keeps them in its
 * memory as ready bodies; no worker holds a copy, since they are asked for rarely.
 */

import type { IndexReader } from '@keyward/engine'

import type { KeysOutcome } from '../link/messages.ts'
import type { Counters } from '../shared/counters.ts'
import { okAnswer } from './answers.ts'
import type { Authorizer } from './authorizer.ts'
import type { Exchange } from './exchange.ts'

/** The array must not be written again. */
export interface KeyRing {
  keys(organizationId: Uint8Array, done: (outcome: KeysOutcome) => void): void
}

export interface PublicKeysParts {
  reader: IndexReader
  authorizer: Authorizer
  counters: Counters
  keyRing: KeyRing
}

export class PublicKeys {
  readonly #parts: PublicKeysParts

  constructor(parts: PublicKeysParts) {
    this.#parts = parts
  }

  current(exchange: Exchange): void {
    this.#ask(exchange, ({ current }) => {
      if (current === null) exchange.fail('NOT_FOUND')
      else exchange.send(okAnswer(current))
    })
  }

  all(exchange: Exchange): void {
    this.#ask(exchange, ({ all }) => exchange.send(okAnswer(all)))
  }

  #ask(exchange: Exchange, done: (outcome: KeysOutcome) => void): void {
    const { authorizer, counters, keyRing, reader } = this.#parts
    const credential = authorizer.admit(exchange, Date.now())
    if (credential === null) return
    const id = new Uint8Array(16)
    if (!reader.organizationId(credential.organization, id)) return exchange.fail('UNAUTHORIZED')
    counters.count('publicKeys')
    exchange.wait()
    keyRing.keys(id, done)
  }
}

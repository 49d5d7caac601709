/**
 * Which organization calls (API document, "Authentication"). The text of a header that was once good is remembered with the
 * row and generation of its API key; revocation and expiry are read from the shared row at every check, so nothing remembered
 * can be out of date. Only good ones are remembered: strangers cannot fill the memory.
 */

import { hashSecret, parseSecret } from '@keyward/database/secrets'
import { createCredentialView, type CredentialView, type IndexReader } from '@keyward/engine'

import type { Control } from '../shared/control.ts'
import type { Counters } from '../shared/counters.ts'
import type { Exchange } from './exchange.ts'

const MAX_REMEMBERED = 10_000

export class Authorizer {
  readonly #reader: IndexReader
  readonly #control: Control
  readonly #counters: Counters
  readonly #rows = new Map<string, { row: number; generation: number }>()
  readonly #view = createCredentialView()

  constructor(reader: IndexReader, control: Control, counters: Counters) {
    this.#reader = reader
    this.#control = control
    this.#counters = counters
  }

  /**
   * The API key that a request comes with; null when there is none, or no index to look it up in, and the exchange has been
   * answered so. The view is used again by the next call.
   */
  admit(exchange: Exchange, nowMs: number): CredentialView | null {
    if (!this.#control.isServing) {
      exchange.fail('UNAVAILABLE')
      return null
    }
    const { authorization } = exchange
    const known = this.#rows.get(authorization)
    const view = this.#view
    if (known === undefined || !this.#reader.credential(known.row, view) || view.generation !== known.generation) {
      this.#rows.delete(authorization)
      if (!this.#lookUp(exchange)) return null
    }
    if (!view.revoked && view.expiresAtMs > nowMs) return view
    exchange.fail('UNAUTHORIZED')
    return null
  }

  /** Fills the view and remembers the header; false when the exchange has been answered. */
  #lookUp(exchange: Exchange): boolean {
    const { authorization } = exchange
    const secret = authorization.slice(7).trim()
    const isApiKey = authorization.slice(0, 7).toLowerCase() === 'bearer ' && parseSecret(secret)?.kind === 'API_KEY'
    const hash = isApiKey ? hashSecret(secret) : null
    const row = hash === null ? NONE : this.#reader.findCredential(hash)
    if (hash === null || row === NONE) {
      exchange.fail('UNAUTHORIZED')
      return false
    }
    // Found again after its row was read, it is the row's own: so the row was not given to another key in between.
    if (row < NONE || !this.#reader.credential(row, this.#view) || this.#reader.findCredential(hash) !== row) {
      this.#counters.count('indexBusy')
      exchange.fail('UNAVAILABLE')
      return false
    }
    if (this.#rows.size >= MAX_REMEMBERED) this.#rows.clear()
    this.#rows.set(authorization, { row, generation: this.#view.generation })
    return true
  }
}

/** The engine's answer for an unknown credential; a lower one says that the index could not be read. */
const NONE = -1

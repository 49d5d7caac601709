/**
 * Authenticates callers by their API key (docs/api.md#a1). It caches the row and generation of the credential for each valid
 * `authorization` header, as text. Revocation and expiry are read from the shared row at every request, so the cache is
 * never outdated. Invalid headers are not cached, so strangers cannot fill it.
 */

import { hashSecret, parseSecret } from '@keyward/database/secrets'
import { createCredentialView, type CredentialView, type IndexReader, UNKNOWN } from '@keyward/engine'

import type { Control } from '../shared/control.ts'
import type { Counters } from '../shared/counters.ts'
import type { Exchange } from './exchange.ts'

const MAX_CACHED = 10_000

export class Authenticator {
  readonly #reader: IndexReader
  readonly #control: Control
  readonly #counters: Counters
  /** By the text of the header, at most MAX_CACHED. */
  readonly #rows = new Map<string, { row: number; generation: number }>()
  readonly #view = createCredentialView()

  constructor(reader: IndexReader, control: Control, counters: Counters) {
    this.#reader = reader
    this.#control = control
    this.#counters = counters
  }

  /**
   * Returns the API key of a request. Returns null when there is none, or no index to find it in; the exchange has then
   * sent the error. The view is valid until the next call.
   */
  authenticate(exchange: Exchange, nowMs: number): CredentialView | null {
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

  /** Fills the view and caches the header. Returns false when the exchange has sent an error. */
  #lookUp(exchange: Exchange): boolean {
    const { authorization } = exchange
    const secret = authorization.slice(7).trim()
    const isApiKey = authorization.slice(0, 7).toLowerCase() === 'bearer ' && parseSecret(secret)?.kind === 'API_KEY'
    const hash = isApiKey ? hashSecret(secret) : null
    const row = hash === null ? UNKNOWN : this.#reader.findCredential(hash)
    if (hash === null || row === UNKNOWN) {
      exchange.fail('UNAUTHORIZED')
      return false
    }
    // A negative row means that the index is busy. The second lookup proves that the row was not reused in between.
    if (row < 0 || !this.#reader.credential(row, this.#view) || this.#reader.findCredential(hash) !== row) {
      this.#counters.count('indexBusy')
      exchange.fail('UNAVAILABLE')
      return false
    }
    if (this.#rows.size >= MAX_CACHED) this.#rows.clear()
    this.#rows.set(authorization, { row, generation: this.#view.generation })
    return true
  }
}

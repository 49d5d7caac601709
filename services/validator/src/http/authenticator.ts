/**
 * Authenticates callers by their API key (docs/api.md#a1). A cache stores the row and generation of the credential for each
 * valid key. Revocation and expiry are read from the shared row at every request, so the cache is never outdated. Invalid
 * headers are not cached, so callers without a key cannot fill the cache.
 */

import { hashSecret, parseSecret } from '@keyward/database/secrets'
import { createCredentialView, type CredentialView, type IndexReader, UNKNOWN } from '@keyward/engine'

import type { Control } from '../shared/control.ts'
import type { Counters } from '../shared/counters.ts'
import { describeCredential } from './credential-errors.ts'
import type { Exchange } from './exchange.ts'

const MAX_CACHED = 10_000
/** The interval at which the use of a key is reported. */
const USE_MS = 60_000

interface Cached {
  row: number
  generation: number
  /** The time at which the use of the key was last reported. */
  usedAtMs: number
}

/** Called when the credential in a row is used, about once a minute for each credential. */
type OnUse = (row: number, generation: number, atMs: number) => void

export class Authenticator {
  readonly #reader: IndexReader
  readonly #control: Control
  readonly #counters: Counters
  readonly #onUse: OnUse
  /** The cached credentials, at most MAX_CACHED. The key is the normalized header, so other spellings of the header take no memory. */
  readonly #rows = new Map<string, Cached>()
  readonly #view = createCredentialView()

  constructor(reader: IndexReader, control: Control, counters: Counters, onUse: OnUse) {
    this.#reader = reader
    this.#control = control
    this.#counters = counters
    this.#onUse = onUse
  }

  /**
   * Returns the credential of a request. When the credential is invalid or the index is not available, sends the error and
   * returns null. The view is valid until the next call.
   */
  authenticate(exchange: Exchange, nowMs: number): CredentialView | null {
    if (!this.#control.isServing) {
      exchange.fail('UNAVAILABLE')
      return null
    }
    const { authorization } = exchange
    let known = this.#rows.get(authorization)
    const view = this.#view
    if (known === undefined || !this.#reader.credential(known.row, view) || view.generation !== known.generation) {
      this.#rows.delete(authorization)
      known = this.#lookUp(exchange)
      if (known === undefined) return null
    }
    if (view.expiresAtMs > nowMs) {
      const sinceMs = nowMs - known.usedAtMs
      if (sinceMs >= USE_MS || sinceMs < 0) {
        known.usedAtMs = nowMs
        this.#onUse(known.row, known.generation, nowMs)
      }
      return view
    }
    exchange.fail('UNAUTHORIZED')
    return null
  }

  /** Fills the view and caches the credential. Returns undefined when the exchange has sent an error. */
  #lookUp(exchange: Exchange): Cached | undefined {
    const { authorization } = exchange
    const secret = authorization.slice(7).trim()
    const isApiKey = authorization.slice(0, 7).toLowerCase() === 'bearer ' && parseSecret(secret)?.kind === 'API_KEY'
    const hash = isApiKey ? hashSecret(secret) : null
    const row = hash === null ? UNKNOWN : this.#reader.findCredential(hash)
    if (hash !== null && row === UNKNOWN && this.#control.isUnconfirmed) {
      exchange.fail('UNAVAILABLE')
      return undefined
    }
    if (hash === null || row === UNKNOWN) {
      exchange.fail('UNAUTHORIZED', describeCredential(authorization))
      return undefined
    }
    // A negative row means that the index is busy. The second lookup proves that the row was not reused in between.
    if (row < 0 || !this.#reader.credential(row, this.#view) || this.#reader.findCredential(hash) !== row) {
      this.#counters.count('indexBusy')
      exchange.fail('UNAVAILABLE')
      return undefined
    }
    const usual = `Bearer ${secret}`
    const { generation } = this.#view
    let cached = this.#rows.get(usual)
    if (cached === undefined || cached.row !== row || cached.generation !== generation) {
      if (this.#rows.size >= MAX_CACHED) this.#rows.clear()
      cached = { row, generation, usedAtMs: -Infinity }
      this.#rows.set(usual, cached)
    }
    return cached
  }
}

/**
 * Authenticates callers by their API key (docs/api.md#a1). A cache contains the row and generation of the credential for each
 * valid key. Revocation and expiry are read from the shared row at every request, so the cache is never outdated. Invalid
 * headers are not cached, so callers without a key cannot fill the cache.
 */

import { hashSecret, parseSecret } from '@keyward/database/secrets'
import { createCredentialView, type CredentialView, type IndexReader, UNKNOWN } from '@keyward/engine'

import type { Control } from '../shared/control.ts'
import type { Counters } from '../shared/counters.ts'
import { CredentialCache } from './credential-cache.ts'
import { describeCredential } from './credential-errors.ts'
import type { ErrorCode } from './responses.ts'

/** The interval at which the use of a key is reported. */
const USE_MS = 60_000

/** Called when the credential in a row is used, about once a minute for each credential. */
type OnUse = (row: number, generation: number, atMs: number) => void

/** A request, or another caller that has a credential. */
export interface Caller {
  /** The value of the header `authorization`. */
  readonly authorization: string
  fail(code: ErrorCode, text?: string): void
}

export class Authenticator {
  readonly #reader: IndexReader
  readonly #control: Control
  readonly #counters: Counters
  readonly #onUse: OnUse
  /** The key is the normalized header, so other spellings of the header take no memory. */
  readonly #cache = new CredentialCache()
  readonly #view = createCredentialView()

  constructor(reader: IndexReader, control: Control, counters: Counters, onUse: OnUse) {
    this.#reader = reader
    this.#control = control
    this.#counters = counters
    this.#onUse = onUse
  }

  /**
   * Returns the credential of a request. When the credential is invalid or the index is not available, passes the error
   * to the caller and returns null. The view is valid until the next call.
   */
  authenticate(caller: Caller, nowMs: number): CredentialView | null {
    if (!this.#control.isServing) {
      caller.fail('UNAVAILABLE')
      return null
    }
    const cache = this.#cache
    const view = this.#view
    let entry = cache.find(caller.authorization)
    const isKnown = entry >= 0 && this.#reader.credential(cache.rowOf(entry), view)
    if (!isKnown || view.generation !== cache.generationOf(entry)) {
      entry = this.#lookUp(caller)
      if (entry < 0) return null
    }
    if (view.expiresAtMs > nowMs) {
      const sinceMs = nowMs - cache.usedAtMsOf(entry)
      if (sinceMs >= USE_MS || sinceMs < 0) {
        cache.setUsedAtMs(entry, nowMs)
        this.#onUse(cache.rowOf(entry), view.generation, nowMs)
      }
      return view
    }
    caller.fail('UNAUTHORIZED')
    return null
  }

  /** Fills the view and caches the credential. Returns the entry, or -1 when the caller has received an error. */
  #lookUp(caller: Caller): number {
    const { authorization } = caller
    const secret = authorization.slice(7).trim()
    const isApiKey = authorization.slice(0, 7).toLowerCase() === 'bearer ' && parseSecret(secret)?.kind === 'API_KEY'
    const hash = isApiKey ? hashSecret(secret) : null
    const row = hash === null ? UNKNOWN : this.#reader.findCredential(hash)
    if (hash !== null && row === UNKNOWN && this.#control.isUnconfirmed) {
      caller.fail('UNAVAILABLE')
      return -1
    }
    if (hash === null || row === UNKNOWN) {
      caller.fail('UNAUTHORIZED', describeCredential(authorization))
      return -1
    }
    // A negative row means that the index is busy. The second lookup proves that the row was not reused in between.
    if (row < 0 || !this.#reader.credential(row, this.#view) || this.#reader.findCredential(hash) !== row) {
      this.#counters.count('indexBusy')
      caller.fail('UNAVAILABLE')
      return -1
    }
    const usual = `Bearer ${secret}`
    const { generation } = this.#view
    const cached = this.#cache.find(usual)
    const isCached = cached >= 0 && this.#cache.rowOf(cached) === row && this.#cache.generationOf(cached) === generation
    return isCached ? cached : this.#cache.set(usual, row, generation, -Infinity)
  }
}

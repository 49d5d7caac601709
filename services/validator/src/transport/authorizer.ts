/**
 * Which organization calls (API document, "Authentication"). The text of a header that was once good is remembered with the
 * row and serial of its API key; revocation and expiry are read from the shared row at every check, so nothing remembered
 * can be out of date. Only good ones are remembered: strangers cannot fill the memory.
 */

import { hashSecret, parseSecret } from '@keyward/database/secrets'
import { createCredentialView, type CredentialView, type IndexReader } from '@keyward/engine'

const MAX_REMEMBERED = 10_000

export class Authorizer {
  readonly #reader: IndexReader
  readonly #rows = new Map<string, { row: number; serial: number }>()
  readonly #view = createCredentialView()

  constructor(reader: IndexReader) {
    this.#reader = reader
  }

  /** The API key of an `Authorization` header, or null. The view is used again by the next call. */
  authorize(header: string, nowMs: number): CredentialView | null {
    const known = this.#rows.get(header)
    const view = this.#view
    if (known !== undefined && this.#reader.credential(known.row, view) && view.serial === known.serial) {
      return isGood(view, nowMs) ? view : null
    }
    return this.#lookUp(header, nowMs)
  }

  #lookUp(header: string, nowMs: number): CredentialView | null {
    this.#rows.delete(header)
    if (header.slice(0, 7).toLowerCase() !== 'bearer ') return null
    const secret = header.slice(7).trim()
    if (parseSecret(secret)?.kind !== 'API_KEY') return null
    const hash = hashSecret(secret)
    const row = this.#reader.findCredential(hash)
    const view = this.#view
    if (row < 0 || !this.#reader.credential(row, view) || !isGood(view, nowMs)) return null
    // Still the same after its row was read: so the row was not given to another one in between.
    if (this.#reader.findCredential(hash) !== row) return null
    if (this.#rows.size >= MAX_REMEMBERED) this.#rows.clear()
    this.#rows.set(header, { row, serial: view.serial })
    return view
  }
}

function isGood(view: CredentialView, nowMs: number): boolean {
  return !view.revoked && view.expiresAtMs > nowMs
}

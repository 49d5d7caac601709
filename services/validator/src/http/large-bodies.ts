/**
 * Limits the memory for incomplete bodies over 16 KiB. Only callers with a valid API key may send such a body in several pieces. A worker
 * stores a limited number of these bodies, divided fairly between organizations. A body that is not admitted is read and discarded, so
 * that the client receives the response.
 */

import { hashSecret, parseSecret } from '@keyward/database/secrets'
import { createCredentialView, type IndexReader } from '@keyward/engine'

import { FairShare } from '../shared/fair-share.ts'

/**
 * The maximum number of large bodies that a worker stores. They take at most 32 MiB. One organization alone may use half of this number.
 */
const MAX_LARGE_BODIES = 256

export class LargeBodies {
  readonly #reader: IndexReader
  readonly #share: FairShare
  readonly #view = createCredentialView()

  constructor(reader: IndexReader, capacity = MAX_LARGE_BODIES) {
    this.#reader = reader
    this.#share = new FairShare(capacity)
  }

  /**
   * Admits the body of a request with this `authorization`. Returns the row of the organization for `release`, or the error that
   * the request receives.
   */
  admit(authorization: string): number | 'UNAUTHORIZED' | 'UNAVAILABLE' {
    const secret = authorization.slice(7).trim()
    if (parseSecret(secret)?.kind !== 'API_KEY') return 'UNAUTHORIZED'
    const row = this.#reader.findCredential(hashSecret(secret))
    if (row < 0 || !this.#reader.credential(row, this.#view) || this.#view.expiresAtMs <= Date.now())
      return 'UNAUTHORIZED'
    const { organization } = this.#view
    return this.#share.take(organization) ? organization : 'UNAVAILABLE'
  }

  release(organization: number): void {
    this.#share.release(organization)
  }
}

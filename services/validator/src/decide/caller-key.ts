/**
 * Authenticates management at the admin port with a key that Postgres stores. The key is read again when a caller sends a different one, so
 * a new key works within a second. It is also read again after a minute, so a replaced key works for at most one more minute.
 */

import { createHash, timingSafeEqual } from 'node:crypto'

import { createPool, readDecideSecret } from '@keyward/database'

const TRUSTED_MS = 60_000
/** The minimum time between two reads. It limits the reads that callers with unknown keys can cause. */
const MIN_INTERVAL_MS = 1_000
const TIMEOUT_MS = 1_500

export class CallerKey {
  readonly #pool: ReturnType<typeof createPool>
  /** The SHA-256 of the key, or null before the first read and when Postgres stores no key. */
  #hash: Buffer | null = null
  #readAtMs = -Infinity
  /** The read in progress, or null. */
  #reading: Promise<void> | null = null

  constructor(databaseUrl: string, onError: (error: unknown) => void) {
    const name = 'keyward validator key'
    this.#pool = createPool(databaseUrl, { name, max: 1, statementTimeoutMs: TIMEOUT_MS, onError })
  }

  /** Returns whether the `Authorization` header contains the key. Rejects when a necessary read from Postgres fails. */
  async accepts(authorization: string | undefined): Promise<boolean> {
    const secret = /^Bearer ([\x21-\x7e]{32,512})$/.exec(authorization ?? '')?.[1]
    if (secret === undefined) return false
    const given = createHash('sha256').update(secret).digest()
    const ageMs = performance.now() - this.#readAtMs
    if (ageMs < TRUSTED_MS && this.#isKey(given)) return true
    if (ageMs >= MIN_INTERVAL_MS || this.#reading) await (this.#reading ??= this.#read())
    return this.#isKey(given)
  }

  close(): Promise<void> {
    return this.#pool.end()
  }

  #isKey(given: Buffer): boolean {
    return this.#hash !== null && timingSafeEqual(this.#hash, given)
  }

  async #read(): Promise<void> {
    try {
      const secret = await readDecideSecret(this.#pool)
      this.#hash = secret === null ? null : createHash('sha256').update(secret).digest()
      this.#readAtMs = performance.now()
    } finally {
      this.#reading = null
    }
  }
}

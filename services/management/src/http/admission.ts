/**
 * Admits requests (docs/api.md#m4): authenticates the caller, counts the request, and shares the connections to Postgres fairly. A request
 * beyond a limit costs no statement as long as its credential is known.
 */

import { type Caller, findCaller, readCredential } from './authentication.ts'
import type { Db } from './context.ts'
import { type Gates, shareOf } from './gates.ts'
import { createKnownCredentials, type KnownCredentials } from './known-credentials.ts'
import { ApiError } from './problem.ts'
import type { LimitedCaller, RateLimiter } from './rate-limit.ts'

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'UNAUTHENTICATED'
}

export interface AdmissionOptions {
  /** Credentials are read here. */
  db: Db
  operatorTokens: readonly string[]
  rateLimiter: RateLimiter
  gates: Gates
}

export interface Admitted {
  caller: Caller
  /** The rate limit headers. */
  headers: Record<string, string>
}

export class Admission {
  readonly #options: AdmissionOptions
  readonly #known: KnownCredentials = createKnownCredentials()

  constructor(options: AdmissionOptions) {
    this.#options = options
  }

  /** Returns the caller of an `Authorization` header. Throws UNAUTHENTICATED, RATE_LIMITED, UNAVAILABLE. `ip` is the caller's address. */
  async admit(authorization: string | undefined, ip: string | null): Promise<Admitted> {
    const { operatorTokens, rateLimiter } = this.#options
    try {
      const credential = readCredential(operatorTokens, authorization)
      if (credential.kind === 'operator') return { caller: credential, headers: rateLimiter.count(credential, ip) }
      return await this.#admitHash(credential.secretHash, ip)
    } catch (error) {
      if (authorization !== undefined && isUnauthenticated(error)) rateLimiter.countFailure(ip)
      throw error
    }
  }

  async #admitHash(secretHash: Uint8Array, ip: string | null): Promise<Admitted> {
    const { rateLimiter } = this.#options
    const known = this.#known.get(secretHash)
    if (!known) rateLimiter.requireFewFailures(ip)
    const counted = known && rateLimiter.count(known, ip)
    const caller = await this.#find(secretHash, known).catch((error: unknown) => {
      if (isUnauthenticated(error)) this.#known.delete(secretHash)
      throw error
    })
    this.#known.add(secretHash, caller)
    return { caller, headers: counted ?? rateLimiter.count(caller, ip) }
  }

  async #find(secretHash: Uint8Array, known: LimitedCaller | undefined): Promise<Caller> {
    const { reads, strangers } = this.#options.gates
    const leave = await (known ? reads.enter(shareOf(known)) : strangers.enter(''))
    try {
      return await findCaller(this.#options.db, secretHash)
    } finally {
      leave()
    }
  }
}

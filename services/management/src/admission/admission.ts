/**
 * Admits requests (docs/api.md#m4): authenticates the caller, counts the request, and shares the connections to Postgres fairly. A request
 * beyond a limit is rejected without a query to Postgres if its credential was valid at its last use.
 */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

import type { Needs } from '@keyward/contract/operations'
import { parseSecret, hashSecret } from '@keyward/database'

import type { Db } from '../context.ts'
import { ApiError } from '../http/problem.ts'
import { portalSecret, requireOrigin, sessionSecret, siteOf } from '../http/site.ts'
import { type Caller, findCaller, readCredential, strangerCaller, unauthenticated } from './authentication.ts'
import { Batches } from './batches.ts'
import { type Gates, shareOf } from './gates.ts'
import { createKnownCredentials, keyOf, type KnownCredentials } from './known-credentials.ts'
import type { LimitedCaller, RateLimiter } from './rate-limit.ts'
import { findCustomerCaller, findSessionCaller } from './sessions.ts'
import type { SignInLimiter } from './sign-in-limits.ts'

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'UNAUTHENTICATED'
}

interface AdmissionOptions {
  /** The pool through which credentials are read. */
  db: Db
  operatorTokens: readonly string[]
  rateLimiter: RateLimiter
  signInLimiter: SignInLimiter
  gates: Gates
  /** Called for each request that is rejected because too many requests wait for the lookup of the same credential. */
  onReject: () => void
}

interface Lookup {
  /** The owner of a credential that was valid at its last use, or null. */
  known: LimitedCaller | null
  find: () => Promise<Caller>
}

interface Admitted {
  caller: Caller
  /** The rate limit headers. */
  headers: Record<string, string>
}

export class Admission {
  readonly #options: AdmissionOptions
  readonly #operatorHashes: readonly Uint8Array[]
  readonly #known: KnownCredentials = createKnownCredentials()
  /** The lookups of each credential. Requests that arrive while their credential is being read share the next read. */
  readonly #lookups: Batches<Lookup, Caller>

  constructor(options: AdmissionOptions) {
    this.#options = options
    this.#operatorHashes = options.operatorTokens.map(hashSecret)
    this.#lookups = new Batches({
      maxBatch: Infinity,
      onReject: options.onReject,
      run: async (_, lookups) => {
        const value = await this.#find(lookups[0]!)
        return lookups.map(() => ({ status: 'fulfilled', value }))
      },
    })
  }

  /**
   * Returns the caller of a request. `ip` is the caller's address. A page of another origin can make a browser sign in. If the page belongs
   * to the same domain, it can also make the browser send a session cookie. A request that signs in, or changes data with a session, must
   * therefore come from a page of this site. Throws UNAUTHENTICATED, FORBIDDEN, RATE_LIMITED and UNAVAILABLE.
   */
  async admit(needs: Needs, { headers, method }: IncomingMessage, ip: string | null): Promise<Admitted> {
    const { origin, host } = headers
    // A shop sends the events of all vendors from few addresses. Only failures count, and an organization has its share of the connections.
    if (needs === 'signature') {
      this.#options.rateLimiter.requireFewFailures(ip)
      return { caller: strangerCaller(), headers: {} }
    }
    if (needs === 'nothing') {
      if (origin !== undefined) requireOrigin(siteOf(host), origin)
      return this.#admitStranger(ip)
    }
    const isPortal = needs === 'portal'
    const admitted = isPortal ? await this.#admitCustomer(headers, ip) : await this.#authenticate(headers, ip)
    const hasCookie = isPortal || admitted.caller.session !== null
    if (hasCookie && method !== 'GET' && method !== 'HEAD') requireOrigin(siteOf(host), origin)
    return admitted
  }

  /** Returns the customer that the cookie of the portal identifies. */
  async #admitCustomer({ cookie, host }: IncomingHttpHeaders, ip: string | null): Promise<Admitted> {
    const secret = portalSecret(siteOf(host), cookie)
    try {
      if (secret === undefined || parseSecret(secret)?.kind !== 'PORTAL_SESSION')
        throw unauthenticated('The request has no session of the portal. Open a new link.')
      const hash = hashSecret(secret)
      return await this.#admitHash(hash, ip, () => findCustomerCaller(this.#options.db, hash))
    } catch (error) {
      if (secret !== undefined) this.noteFailure(error, ip)
      throw error
    }
  }

  /** Returns the caller that the `Authorization` header identifies or, without this header, the session. */
  async #authenticate({ authorization, cookie, host }: IncomingHttpHeaders, ip: string | null): Promise<Admitted> {
    const { db, operatorTokens, rateLimiter } = this.#options
    const session = sessionSecret(siteOf(host), cookie)
    try {
      if (authorization === undefined && session !== undefined && parseSecret(session)?.kind === 'SESSION') {
        const hash = hashSecret(session)
        return await this.#admitHash(hash, ip, () => findSessionCaller(db, session, hash, operatorTokens))
      }
      const credential = readCredential(this.#operatorHashes, authorization)
      if (credential.kind === 'operator') return { caller: credential, headers: rateLimiter.count(credential, ip) }
      return await this.#admitHash(credential.secretHash, ip, () => findCaller(db, credential.secretHash))
    } catch (error) {
      if (authorization !== undefined || session !== undefined) this.noteFailure(error, ip)
      throw error
    }
  }

  #admitStranger(ip: string | null): Admitted {
    const { rateLimiter, signInLimiter } = this.#options
    rateLimiter.requireFewFailures(ip)
    return { caller: strangerCaller(), headers: signInLimiter.countRequest(ip) }
  }

  /** Counts the body of a response toward the limits of the caller. */
  countResponse(caller: Caller, body: string): void {
    this.#options.rateLimiter.countResponse(caller, body.length)
  }

  /** Counts a failed authentication if the error is UNAUTHENTICATED. */
  noteFailure(error: unknown, ip: string | null): void {
    if (isUnauthenticated(error)) this.#options.rateLimiter.countFailure(ip)
  }

  async #admitHash(secretHash: Uint8Array, ip: string | null, find: () => Promise<Caller>): Promise<Admitted> {
    const { rateLimiter } = this.#options
    const known = this.#known.get(secretHash)
    if (!known) rateLimiter.requireFewFailures(ip)
    const counted = known && rateLimiter.count(known, ip)
    const lookup = { find, known: known ?? null }
    const caller = await this.#lookups.add(keyOf(secretHash), lookup).catch((error: unknown) => {
      if (isUnauthenticated(error)) this.#known.delete(secretHash)
      throw error
    })
    this.#known.add(secretHash, caller)
    return { caller, headers: counted ?? rateLimiter.count(caller, ip) }
  }

  async #find({ find, known }: Lookup): Promise<Caller> {
    const { reads, strangers } = this.#options.gates
    const leave = await (known ? reads.enter(shareOf(known)) : strangers.enter(''))
    try {
      return await find()
    } finally {
      leave()
    }
  }
}

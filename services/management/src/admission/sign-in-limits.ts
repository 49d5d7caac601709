/**
 * Limits sign-ins (docs/api.md#a5) by address, by account and in total. Only a verified sign-in counts toward the limit of its account, so
 * a stranger cannot lock a member out. Requests are counted by address in memory only, and no address is stored.
 */

import { createHash, createHmac, randomBytes } from 'node:crypto'

import { ApiError } from '../http/problem.ts'
import { headersOf, networkOf, rateLimited } from './rate-limit.ts'
import { type SharedCounts, WINDOW_MS } from './shared-counts.ts'
import { createWindowCounts } from './window-counts.ts'

/** The limits of requests in total and per address. The limit per address is lower, so that one address cannot exhaust the total. */
const REQUESTS = 1_000
const REQUESTS_OF_ADDRESS = 200
/** The limit of sessions that one account opens with one method. */
const SESSIONS_OF_ACCOUNT = 30
/** The limit of failed sign-ins from one address that name the same account. */
const FAILURES_OF_ACCOUNT = 10
/** The limits of requests for links of the portal in an hour: from one address, and for one e-mail address of an organization. */
const LINKS_FROM_ADDRESS = 20
const LINKS_OF_EMAIL = 3
const HOUR_SECONDS = 3_600
/** The maximum number of addresses that are exempt from the total. */
const MAX_KNOWN = 10_000

export interface SignInLimiter {
  /**
   * Counts one request to sign in and returns the rate limit headers. Throws RATE_LIMITED. A request does not count toward the total if it
   * exceeds the limit of its address, or if somebody has signed in from its address through this process.
   */
  countRequest(ip: string | null): Record<string, string>
  /** Throws RATE_LIMITED when too many sign-ins from the address have named the account and failed. */
  requireFewFailures(account: string, ip: string | null): void
  countFailure(account: string, ip: string | null): void
  /** Counts a request for a link of the portal. Returns whether its e-mail address may get another one. Throws RATE_LIMITED. */
  mayRequestLink(organizationId: string, email: string, ip: string | null): boolean
  /** Counts a verified sign-in of the account. Throws RATE_LIMITED. */
  countVerified(account: string, ip: string | null): void
}

export function createSignInLimiter(counts: SharedCounts): SignInLimiter {
  const requests = createWindowCounts()
  const failures = createWindowCounts()
  const links = createWindowCounts(Date.now, HOUR_SECONDS)
  // No memory contains an e-mail address that somebody has typed.
  const emailKey = randomBytes(32)
  const known = new Set<string>()

  // The account is hashed, because the caller chooses its length.
  const failureKey = (account: string, ip: string | null) =>
    `${networkOf(ip)} ${createHash('sha256').update(account).digest('base64')}`

  const remember = (ip: string | null) => {
    if (ip === null) return
    const network = networkOf(ip)
    const [oldest] = known
    known.delete(network)
    if (known.size >= MAX_KNOWN && oldest !== undefined) known.delete(oldest)
    known.add(network)
  }

  return {
    countRequest(ip) {
      const network = networkOf(ip)
      const used = requests.add(network)
      if (used > REQUESTS_OF_ADDRESS)
        throw rateLimited('requests to sign in for each address', REQUESTS_OF_ADDRESS, WINDOW_MS)
      if (known.has(network)) return headersOf('sign-in', REQUESTS_OF_ADDRESS, { used, remainingMs: WINDOW_MS })
      const count = counts.count('sign-in', REQUESTS)
      const headers = headersOf('sign-in', REQUESTS, count)
      if (count.used > REQUESTS) throw rateLimited('requests to sign in', REQUESTS, count.remainingMs, headers)
      return headers
    },
    requireFewFailures(account, ip) {
      if (failures.get(failureKey(account, ip)) >= FAILURES_OF_ACCOUNT)
        throw rateLimited('failed sign-ins for each account and address', FAILURES_OF_ACCOUNT, WINDOW_MS)
    },
    countFailure(account, ip) {
      failures.add(failureKey(account, ip))
    },
    mayRequestLink(organizationId, email, ip) {
      if (links.add(`from ${networkOf(ip)}`) > LINKS_FROM_ADDRESS)
        throw new ApiError(
          'RATE_LIMITED',
          `The limit is ${LINKS_FROM_ADDRESS} requests for links in an hour for each address. Try again later.`,
          { headers: { 'retry-after': String(HOUR_SECONDS) } },
        )
      const hash = createHmac('sha256', emailKey).update(`${organizationId} ${email.toLowerCase()}`).digest('base64')
      return links.add(hash) <= LINKS_OF_EMAIL
    },
    countVerified(account, ip) {
      const count = counts.count(`sign-in ${account}`, SESSIONS_OF_ACCOUNT)
      if (count.used > SESSIONS_OF_ACCOUNT)
        throw rateLimited('sign-ins for each account', SESSIONS_OF_ACCOUNT, count.remainingMs)
      remember(ip)
    },
  }
}

/**
 * Limits requests (docs/api.md#m4) by credential, by organization, and by API key and address. It also limits failed authentications by
 * address. All limits apply to windows of ten seconds. Validation has no limit. Sign-ins have other limits (sign-in-limits.ts).
 */

import { type Network, parseNetwork } from '@keyward/address'

import { ApiError } from '../http/problem.ts'
import { type Count, type SharedCounts, WINDOW_MS } from './shared-counts.ts'
import { createWindowCounts, WINDOW_SECONDS } from './window-counts.ts'

/** The limit of requests from one address with one API key. It is enough, because each installation requests one license file a day. */
const APP_REQUESTS = 100
/** The limit of requests of one session of the portal. */
const CUSTOMER_REQUESTS = 100
/** The limit of unknown credentials from one address. */
const FAILED_AUTHENTICATIONS = 1_000
/** Each full part of a response of this size, in UTF-16 units, counts as a further request, because it costs as much CPU time. */
const RESPONSE_PART = 32 * 1024

export interface RateLimits {
  /** The limit of each management token, access token and session, and of the operator token. */
  credential: number
  /** The limit of all tokens and sessions of an organization together. */
  organization: number
  /** The limit of one API key, from all addresses together. */
  apiKey: number
}

/** The fields of a caller by which its requests are counted. */
export interface LimitedCaller {
  kind: 'operator' | 'vendor' | 'apiKey' | 'customer' | 'stranger'
  owner: string
  organizationId: string
}

export interface RateLimiter {
  /** Counts one request and returns the rate limit headers. Throws RATE_LIMITED. */
  count(caller: LimitedCaller, ip: string | null): Record<string, string>
  /** Counts the body of a response with this number of UTF-16 units. Apps receive only short responses, which are not counted. */
  countResponse(caller: LimitedCaller, length: number): void
  /** Throws RATE_LIMITED when the address has sent too many unknown credentials. */
  requireFewFailures(ip: string | null): void
  countFailure(ip: string | null): void
}

/** Returns the network by which an address is counted: an IPv4 address itself, or the /64 of an IPv6 address. */
export function networkOf(ip: string | null): string {
  const network: Network | null = ip === null ? null : parseNetwork(ip)
  if (network === null) return 'unknown'
  return network.words.slice(0, network.family === 4 ? 1 : 2).join('.')
}

/** Returns the error of a request beyond a limit. `what` completes the words "The limit is 100 …". */
export function rateLimited(
  what: string,
  limit: number,
  remainingMs: number,
  headers: Record<string, string> = {},
): ApiError {
  const retryAfter = String(Math.ceil(remainingMs / 1_000))
  const detail = `The limit is ${limit} ${what} in ${WINDOW_SECONDS} seconds. Retry in ${retryAfter} s.`
  return new ApiError('RATE_LIMITED', detail, { headers: { ...headers, 'retry-after': retryAfter } })
}

/** Returns the rate limit headers of a counted request. */
export function headersOf(name: string, limit: number, { used, remainingMs }: Count): Record<string, string> {
  const seconds = String(Math.ceil(remainingMs / 1_000))
  const remaining = String(Math.max(0, limit - used))
  return {
    'ratelimit-policy': `"${name}";q=${limit};w=${WINDOW_SECONDS}`,
    ratelimit: `"${name}";r=${remaining};t=${seconds}`,
    'ratelimit-limit': String(limit),
    'ratelimit-remaining': remaining,
    'ratelimit-reset': seconds,
  }
}

const credentialKey = (owner: string) => `credential ${owner}`
/** The customers of an organization have a limit of their own, so that they cannot use up that of the vendor. */
const organizationKey = ({ kind, organizationId }: LimitedCaller) =>
  `${kind === 'customer' ? 'customers of' : 'organization'} ${organizationId}`

export function createRateLimiter(counts: SharedCounts, limits: RateLimits): RateLimiter {
  const apps = createWindowCounts()
  const keys = createWindowCounts()
  const failures = createWindowCounts()

  const countVendor = (caller: LimitedCaller) => {
    const { kind, owner } = caller
    const limit = kind === 'customer' ? Math.min(CUSTOMER_REQUESTS, limits.credential) : limits.credential
    const count = counts.count(credentialKey(owner), limit)
    const headers = headersOf('credential', limit, count)
    if (count.used > limit) throw rateLimited('requests for each credential', limit, count.remainingMs, headers)
    if (kind === 'operator') return headers
    const all = counts.count(organizationKey(caller), limits.organization)
    if (all.used > limits.organization)
      throw rateLimited('requests for each organization', limits.organization, all.remainingMs, headers)
    return headers
  }

  /**
   * Counts a request by API key and address, then by API key. The key is public, so one address must not exhaust the limit of the key.
   * Requests beyond the first limit therefore do not count toward the second.
   */
  const countApp = (owner: string, ip: string | null) => {
    const limit = Math.min(APP_REQUESTS, limits.apiKey)
    const used = apps.add(`${owner} ${networkOf(ip)}`)
    const headers = headersOf('address', limit, { used, remainingMs: WINDOW_MS })
    if (used > limit) throw rateLimited('requests for each API key and address', limit, WINDOW_MS, headers)
    if (keys.add(owner) > limits.apiKey)
      throw rateLimited('requests for each API key', limits.apiKey, WINDOW_MS, headers)
    return headers
  }

  return {
    count: (caller, ip) => (caller.kind === 'apiKey' ? countApp(caller.owner, ip) : countVendor(caller)),
    countResponse(caller, length) {
      const { kind, owner } = caller
      const points = Math.floor(length / RESPONSE_PART)
      if (points === 0 || kind === 'apiKey' || kind === 'stranger') return
      counts.add(credentialKey(owner), points)
      if (kind !== 'operator') counts.add(organizationKey(caller), points)
    },
    requireFewFailures(ip) {
      if (failures.get(networkOf(ip)) >= FAILED_AUTHENTICATIONS)
        throw rateLimited('unknown credentials for each address', FAILED_AUTHENTICATIONS, WINDOW_MS)
    },
    countFailure(ip) {
      failures.add(networkOf(ip))
    },
  }
}

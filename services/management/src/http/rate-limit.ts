/**
 * The rate limit of each credential (docs/api.md#m4), counted in Postgres so that all management processes share it. While Postgres
 * is unreachable, each process counts in its own memory. Validation has no rate limit.
 */

import type { Pool } from 'pg'
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'

import { ApiError } from './problem.ts'

const WINDOW_SECONDS = 10

export interface RateLimiter {
  /** Counts one request and returns the rate limit headers. Throws RATE_LIMITED. */
  count(owner: string): Promise<Record<string, string>>
}

export function createRateLimiter(pool: Pool, points: number): RateLimiter {
  const limit = { points, duration: WINDOW_SECONDS, keyPrefix: 'management' }
  const limiter = new RateLimiterPostgres({
    ...limit,
    storeClient: pool,
    storeType: 'pool',
    tableName: 'rate_limits',
    tableCreated: true,
    clearExpiredByTimeout: true,
    insuranceLimiter: new RateLimiterMemory(limit),
  })
  const headersOf = (state: RateLimiterRes): Record<string, string> => {
    const seconds = String(Math.ceil(state.msBeforeNext / 1_000))
    const remaining = String(Math.max(0, state.remainingPoints))
    return {
      'ratelimit-policy': `"credential";q=${points};w=${WINDOW_SECONDS}`,
      ratelimit: `"credential";r=${remaining};t=${seconds}`,
      'ratelimit-limit': String(points),
      'ratelimit-remaining': remaining,
      'ratelimit-reset': seconds,
    }
  }
  return {
    async count(owner) {
      try {
        return headersOf(await limiter.consume(owner))
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error
        const headers = headersOf(error)
        const retryAfter = headers['ratelimit-reset'] ?? '1'
        throw new ApiError(
          'RATE_LIMITED',
          `The limit is ${points} requests in ${WINDOW_SECONDS} seconds for each credential. Retry in ${retryAfter} s.`,
          { headers: { ...headers, 'retry-after': retryAfter } },
        )
      }
    },
  }
}

/**
 * The rate limit per credential, counted in Postgres so that all management processes share it. While Postgres cannot answer,
 * each process counts in its own memory. Checks by apps never come here: validation has no rate limit.
 */
import type { Pool } from 'pg'
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'

import { Refusal } from './problem.ts'

const windowSeconds = 10

export interface RateLimiter {
  /** Counts one request; the headers tell where the caller stands. Refuses with 429. */
  count(owner: string): Promise<Record<string, string>>
}

export function createRateLimiter(pool: Pool, points: number): RateLimiter {
  const limit = { points, duration: windowSeconds, keyPrefix: 'management' }
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
      'ratelimit-policy': `"credential";q=${points};w=${windowSeconds}`,
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
        throw new Refusal('RATE_LIMITED', `At most ${points} requests in ${windowSeconds} seconds are taken.`, {
          headers: { ...headers, 'retry-after': headers['ratelimit-reset'] ?? '1' },
        })
      }
    },
  }
}

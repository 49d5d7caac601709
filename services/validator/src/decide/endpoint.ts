/**
 * Serves `POST /decide` and `POST /decide-batch` on the admin port, which return the verdicts that checks would get. The index first
 * catches up with the caller's snapshot, so a verdict reflects everything that the caller had written at that snapshot
 * (docs/decisions/0016-validators-decide.md).
 */

import {
  DECIDE_BATCH_PATH,
  DECIDE_PATH,
  type DecideBatchResponse,
  decideBatchRequest,
  decideRequest,
} from '@keyward/contract/dry-run'
import type { PostHandler } from '@keyward/runtime'
import type { z } from 'zod'

import type { CallerKey } from './caller-key.ts'
import type { Decider } from './decider.ts'

interface DecideParts {
  decider: Decider
  key: Pick<CallerKey, 'accepts'>
  /** Waits until the index contains the caller's snapshot, as `CatchUp.until` does. */
  catchUp: (snapshot: string, organizationId: string, limitMs: number) => Promise<boolean>
  /** Returns whether the validator may decide checks with its index. */
  isServing: () => boolean
  /** Receives errors from Postgres. */
  onError: (error: unknown) => void
}

const CATCH_UP_LIMIT_MS = 2_000

/** Returns the handlers of the admin port by path. */
export function decideEndpoint({
  decider,
  key,
  catchUp,
  isServing,
  onError,
}: DecideParts): Record<string, PostHandler> {
  /** Returns the handler of requests with this schema. `run` returns null for an invalid check. */
  function handler<Request extends { snapshot: string; organizationId: string }>(
    schema: z.ZodType<Request>,
    run: (request: Request, nowMs: number) => object | null,
  ): PostHandler {
    return async ({ authorization, body }) => {
      const isAccepted = await key.accepts(authorization).catch(onError)
      if (isAccepted === undefined) return unavailable('The key could not be read from Postgres.')
      if (!isAccepted) return { status: 401, body: { error: 'Send the key of the installation as a bearer token.' } }
      const { data: request } = schema.safeParse(body)
      if (request === undefined) return INVALID
      if (!isServing()) return unavailable('The index is still being loaded, or it is out of date.')
      const isCovered = await catchUp(request.snapshot, request.organizationId, CATCH_UP_LIMIT_MS)
      if (!isCovered) return unavailable('The index is behind the snapshot.')
      const decided = run(request, Date.now())
      return decided === null ? INVALID : { status: 200, body: decided }
    }
  }
  return {
    [DECIDE_PATH]: handler(decideRequest, (check, nowMs) => decider.decide(check.organizationId, check, nowMs)),
    [DECIDE_BATCH_PATH]: handler(decideBatchRequest, ({ organizationId, checks }, nowMs): DecideBatchResponse => ({
      verdicts: checks.map((check) => decider.decide(organizationId, check, nowMs)),
    })),
  }
}

/** The error is constant, because the fields of the request may contain an address. */
const INVALID = {
  status: 422,
  body: { error: 'The body is invalid, or management and this validator have different versions.' },
}

const unavailable = (error: string) => ({ status: 503, body: { error } })

/**
 * Serves `POST /decide` on the admin port, which returns the verdict that a check would get. The index first catches up with
 * the caller's snapshot, so the verdict reflects everything that the caller had written at that snapshot
 * (docs/decisions/0016-validators-decide.md).
 */

import { DECIDE_PATH, decideRequest } from '@keyward/contract/dry-run'
import type { PostHandler } from '@keyward/process'

import type { CallerKey } from './caller-key.ts'
import type { Decider } from './decider.ts'

export interface DecideParts {
  decider: Decider
  key: Pick<CallerKey, 'accepts'>
  /** Waits until the index contains the caller's snapshot, as `CatchUp.until` does. */
  catchUp: (snapshot: string, organizationId: string, limitMs: number) => Promise<boolean>
  /** Returns whether the index may decide checks. */
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
  const decide: PostHandler = async ({ authorization, body }) => {
    const isAccepted = await key.accepts(authorization).catch(onError)
    if (isAccepted === undefined) return unavailable('The key could not be read from Postgres.')
    if (!isAccepted) return { status: 401, body: { error: 'Send the key of the installation as a bearer token.' } }
    const { data: request } = decideRequest.safeParse(body)
    if (request === undefined) return INVALID
    if (!isServing()) return unavailable('The index is still being loaded, or it is out of date.')
    const { snapshot, organizationId } = request
    const isCovered = await catchUp(snapshot, organizationId, CATCH_UP_LIMIT_MS)
    if (!isCovered) return unavailable('The index is behind the snapshot.')
    const decided = decider.decide(request, Date.now())
    return decided === null ? INVALID : { status: 200, body: decided }
  }
  return { [DECIDE_PATH]: decide }
}

/** The error is constant, because the fields of the request may contain an address. */
const INVALID = {
  status: 422,
  body: { error: 'The body is invalid, or management and this validator have different versions.' },
}

const unavailable = (error: string) => ({ status: 503, body: { error } })

/**
 * Requests the verdict of a check from a validator (docs/decisions/0016-validators-decide.md). Only the body of this request contains the
 * address and the country of the check. No statement and no log entry contains them (docs/api.md#d1).
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { byteLength, MAX_LICENSE_KEY_BYTES } from '@keyward/contract'
import {
  DECIDE_PATH,
  DECIDED_NOT_FOUND,
  decideResponse,
  type DecideResponse,
  type SentDecideRequest,
} from '@keyward/contract/dry-run'
import { type Logger, parseHttpOrigin, traceHeaders } from '@keyward/process'
import { sql } from 'kysely'

import type { ReadContext } from '../http/context.ts'
import type { DecidingValidators } from '../http/dependencies.ts'
import { ApiError } from '../http/problem.ts'
import { LIVE_WITHIN } from '../http/propagation.ts'
import { withLeases } from './leases.ts'

const MAX_VALIDATORS = 3
/** After this time without a response, the request is also sent to the next validator. */
const NEXT_AFTER_MS = 500
/** The timeout of one request. It is longer than a validator takes to catch up with the change log. */
const TIMEOUT_MS = 3_000

/** The reason with which requests to other validators are aborted. Without a reason, each `abort` would create an exception. */
const DECIDED = 'another validator has decided'

/** Requests the verdict from one validator. Rejects unless the response is a verdict. The error contains no part of the response's body. */
async function decideAt(adminUrl: string, secret: string, body: string, signal: AbortSignal): Promise<DecideResponse> {
  const response = await fetch(adminUrl + DECIDE_PATH, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...traceHeaders() },
    body,
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  })
  const received: unknown = await response.json().catch(() => null)
  const { data } = decideResponse.safeParse(received)
  if (response.status !== 200 || data === undefined)
    throw new Error(`the response is not a verdict; its status is ${response.status}`)
  return data
}

/**
 * Calls `ask` for the first address, and for the next one after a failure or NEXT_AFTER_MS. Returns the first result. Rejects when all
 * fail.
 */
async function firstOf<T>(
  adminUrls: readonly string[],
  ask: (adminUrl: string) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const [first, ...others] = adminUrls
  if (first === undefined) throw new Error('no validator has published an address')
  const asked = ask(first)
  if (others.length === 0) return asked
  const succeeded = asked.then(
    () => true,
    () => false,
  )
  const state = await Promise.race([succeeded, sleep(NEXT_AFTER_MS, null, { signal })])
  if (state === true) return asked
  const next = firstOf(others, ask, signal)
  return state === false ? next : Promise.any([asked, next])
}

/** Returns the current snapshot, the key that authenticates the request, and the addresses of live validators, ready ones first. */
async function prepare({ db }: ReadContext) {
  const { rows } = await sql<{ snapshot: string; secret: string | null; adminUrls: string[] }>`
    select pg_current_snapshot()::text as snapshot,
      (select secret from internal_keys where purpose = 'decide') as secret,
      array(select details ->> 'adminUrl' from validators
        where details ? 'adminUrl' and seen_at > now() - ${LIVE_WITHIN} order by ready desc, random()) as admin_urls
    `.execute(db)
  return rows[0]
}

/** Creates the client of the validators. `fixedUrls` replaces the addresses that validators publish, unless it is empty. */
export function createDecidingValidators(fixedUrls: readonly string[], log: Logger): DecidingValidators {
  return {
    async decide(context, check) {
      // No license has a key of more than MAX_LICENSE_KEY_BYTES.
      if (byteLength(check.licenseKey) > MAX_LICENSE_KEY_BYTES) return DECIDED_NOT_FOUND
      const prepared = await prepare(context)
      if (!prepared || prepared.secret === null) throw new Error('the key for validators is missing')
      const { secret, snapshot } = prepared
      const request: SentDecideRequest = { ...check, organizationId: context.organizationId, snapshot }
      const body = JSON.stringify(request)
      const published = prepared.adminUrls.flatMap((url) => parseHttpOrigin(url) ?? [])
      const adminUrls = (fixedUrls.length > 0 ? fixedUrls : published).slice(0, MAX_VALIDATORS)
      const decided = new AbortController()
      const { signal } = decided
      const ask = (adminUrl: string) =>
        decideAt(adminUrl, secret, body, signal).catch((error: unknown) => {
          if (!signal.aborted) log.warn({ err: error, adminUrl }, 'validator did not decide')
          throw error
        })
      try {
        return await withLeases(context, check, await firstOf(adminUrls, ask, signal).catch(unavailable))
      } finally {
        decided.abort(DECIDED)
      }
    },
  }
}

function unavailable(): never {
  const detail = 'No validator that can decide this check is reachable. Retry in 1 s.'
  throw new ApiError('UNAVAILABLE', detail, { headers: { 'retry-after': '1' } })
}

/**
 * Asks a validator for the verdict of a check (docs/decisions/0016-validators-decide.md). The address and the country of the check
 * travel only in the body of this request; no statement and no log entry contains them (docs/api.md#d1).
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { byteLength, MAX_LICENSE_KEY_BYTES } from '@keyward/contract'
import { DECIDE_PATH, type DecideRequest, decideResponse, type DecideResponse } from '@keyward/contract/internal'
import { type Logger, parseHttpOrigin } from '@keyward/process'
import { sql } from 'kysely'

import type { ReadContext } from '../http/context.ts'
import type { DecidingValidators } from '../http/dependencies.ts'
import { ApiError } from '../http/problem.ts'
import { LIVE_WITHIN } from '../http/propagation.ts'
import { withLeases } from './leases.ts'

const MAX_VALIDATORS = 3
/** A validator that does not respond for this long is not waited for alone: the next one is asked as well. */
const NEXT_AFTER_MS = 500
/** Longer than a validator takes to catch up with the change log. */
const TIMEOUT_MS = 3_000

/** Asks one validator. Rejects unless it returns a verdict. The error contains nothing that the validator sent. */
async function decideAt(adminUrl: string, secret: string, body: string, signal: AbortSignal): Promise<DecideResponse> {
  const response = await fetch(adminUrl + DECIDE_PATH, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body,
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  })
  const received: unknown = await response.json().catch(() => null)
  const { data } = decideResponse.safeParse(received)
  if (response.status !== 200 || data === undefined) throw new Error(`no verdict, but status ${response.status}`)
  return data
}

/** Asks the first address, and the others too when it fails or takes long. Rejects when all fail. */
async function firstOf<T>(
  adminUrls: readonly string[],
  ask: (adminUrl: string) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const [first, ...others] = adminUrls
  if (first === undefined) throw new Error('no address of a validator is known')
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

/** Where to ask, ready validators first, the key to send, and everything committed so far. */
async function prepare({ db }: ReadContext) {
  const { rows } = await sql<{ snapshot: string; secret: string | null; adminUrls: string[] }>`
    select pg_current_snapshot()::text as snapshot,
      (select secret from internal_keys where purpose = 'decide') as secret,
      array(select details ->> 'adminUrl' from validators
        where details ? 'adminUrl' and seen_at > now() - ${LIVE_WITHIN} order by ready desc, random()) as admin_urls
    `.execute(db)
  return rows[0]
}

/** `fixedUrls`: where to ask, instead of the addresses that the validators publish. */
export function createDecidingValidators(fixedUrls: readonly string[], log: Logger): DecidingValidators {
  return {
    async decide(context, check) {
      // No license key is longer.
      if (byteLength(check.licenseKey) > MAX_LICENSE_KEY_BYTES) return NOT_FOUND
      const prepared = await prepare(context)
      if (!prepared || prepared.secret === null) throw new Error('the key for validators is missing')
      const { secret, snapshot } = prepared
      const request: DecideRequest = { ...check, organizationId: context.organizationId, snapshot }
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
        decided.abort()
      }
    },
  }
}

const NOT_FOUND: DecideResponse = {
  code: 'NOT_FOUND',
  needsSlot: false,
  holdsLease: false,
  decidedBy: null,
  matched: [],
  monitored: [],
  restricted: null,
}

function unavailable(): never {
  const detail = 'No validator that can decide this check is reachable. Try again in a moment.'
  throw new ApiError('UNAVAILABLE', detail, { headers: { 'retry-after': '1' } })
}

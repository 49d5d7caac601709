/**
 * Requests the verdict of a check from a validator (docs/decisions/0016-validators-decide.md). Only the body of this request contains the
 * address and the country of the check. No statement and no log entry contains them (docs/api.md#d1).
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { byteLength, MAX_LICENSE_KEY_BYTES } from '@keyward/contract'
import {
  DECIDE_BATCH_PATH,
  DECIDE_PATH,
  DECIDED_NOT_FOUND,
  decideBatchResponse,
  decideResponse,
  type DecideResponse,
  type SentDecideBatchRequest,
  type SentDecideRequest,
} from '@keyward/contract/dry-run'
import { type Logger, parseHttpOrigin, traceHeaders } from '@keyward/runtime'
import { sql } from 'kysely'
import { Agent, type Dispatcher, interceptors, request } from 'undici'
import type { z } from 'zod'

import type { ReadContext } from '../context.ts'
import { ApiError } from '../http/problem.ts'
import { LIVE_WITHIN } from '../http/propagation.ts'
import { isLoopback } from '../http/site.ts'
import type { CheckToDecide, DecidingValidators } from '../operations/dependencies.ts'
import { withLeases } from './leases.ts'

const MAX_VALIDATORS = 3
/** After this time without a response, the request is also sent to the next validator. */
const NEXT_AFTER_MS = 500
/** The timeout of one request. It is longer than a validator takes to catch up with the change log. */
const TIMEOUT_MS = 3_000

/** The time for which the addresses of a name are used. */
const NAME_TTL_MS = 5_000

/** The reason with which requests to other validators are aborted. Without a reason, each `abort` would create an exception. */
const DECIDED = 'another validator has decided'

type Verdicts = readonly (DecideResponse | null)[]

interface Prepared {
  /** The text of `pg_current_snapshot()`. */
  snapshot: string
  /** The key that authenticates the request. */
  secret: string
  adminUrls: readonly string[]
  /** Sends each request to the next address of a name: the name of a service in Kubernetes resolves to all its pods. */
  dispatcher: Dispatcher
}

/** Posts the body to an address of a validator's admin port. `fetch` would take a multiple of the processor time. */
function post(
  url: string,
  { secret, dispatcher }: Prepared,
  body: SentDecideRequest | SentDecideBatchRequest,
  signal: AbortSignal,
) {
  return request(url, {
    dispatcher,
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...traceHeaders() },
    body: JSON.stringify(body),
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  })
}

/**
 * Returns the parsed body. Throws unless the response is a success whose body matches the schema. The error contains no part of the body.
 */
async function parse<Body>({ statusCode, body }: Dispatcher.ResponseData, schema: z.ZodType<Body>): Promise<Body> {
  const received: unknown = await body.json().catch(() => null)
  const { data } = schema.safeParse(received)
  if (statusCode !== 200 || data === undefined)
    throw new Error(`the response is not a verdict; its status is ${statusCode}`)
  return data
}

/** Requests the verdicts from one validator. Rejects unless the validator decides all checks. */
async function decideAt(
  adminUrl: string,
  prepared: Prepared,
  organizationId: string,
  checks: readonly CheckToDecide[],
  signal: AbortSignal,
): Promise<Verdicts> {
  const { snapshot } = prepared
  const one = async (check: CheckToDecide) =>
    parse(await post(adminUrl + DECIDE_PATH, prepared, { ...check, organizationId, snapshot }, signal), decideResponse)
  const [first] = checks
  if (first !== undefined && checks.length === 1) return [await one(first)]
  const batch = { organizationId, snapshot, checks: [...checks] }
  const response = await post(adminUrl + DECIDE_BATCH_PATH, prepared, batch, signal)
  // A validator of an earlier version has no endpoint for batches.
  if (response.statusCode === 404) {
    await response.body.dump()
    return Promise.all(checks.map(one))
  }
  const { verdicts } = await parse(response, decideBatchResponse)
  if (verdicts.length !== checks.length) throw new Error('the response has another number of verdicts')
  return verdicts
}

/**
 * Calls `ask` with the first address, and with the next one after a failure or after NEXT_AFTER_MS. Returns the first result. Rejects when
 * every call fails.
 */
async function firstOf<T>(
  adminUrls: readonly string[],
  ask: (adminUrl: string) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const [first, ...others] = adminUrls
  if (first === undefined) throw new Error('no validator has an address')
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

/**
 * Returns the current snapshot, the key that authenticates the request, and the addresses to try: `fixedUrls`, or those that live validators
 * publish, ready ones first. Ignores published addresses of other hosts, because a stolen login of a validator can publish any address.
 */
async function prepare({ db }: ReadContext, fixedUrls: readonly string[]): Promise<Omit<Prepared, 'dispatcher'>> {
  const { rows } = await sql<{ snapshot: string; secret: string | null; adminUrls: string[] }>`
    select pg_current_snapshot()::text as snapshot,
      (select secret from internal_keys where purpose = 'decide') as secret,
      array(select details ->> 'adminUrl' from validators
        where details ? 'adminUrl' and seen_at > now() - ${LIVE_WITHIN} order by ready desc, random()) as admin_urls
    `.execute(db)
  const [found] = rows
  if (!found || found.secret === null) throw new Error('the key for validators is missing')
  const published = found.adminUrls.flatMap((url) => parseHttpOrigin(url) ?? [])
  const local = published.filter((url) => isLoopback(new URL(url).hostname))
  // A name is tried again, at its next address.
  const adminUrls = fixedUrls.length > 0 ? Array.from({ length: MAX_VALIDATORS }, () => fixedUrls).flat() : local
  return { secret: found.secret, snapshot: found.snapshot, adminUrls: adminUrls.slice(0, MAX_VALIDATORS) }
}

/**
 * Creates the client of the validators. `fixedUrls` replaces the addresses that validators publish, unless it is empty. `lookup` replaces
 * the lookup of names.
 */
export function createDecidingValidators(
  fixedUrls: readonly string[],
  log: Logger,
  lookup?: interceptors.DNSInterceptorOpts['lookup'],
): DecidingValidators {
  const dispatcher = new Agent().compose(interceptors.dns({ maxTTL: NAME_TTL_MS, ...(lookup && { lookup }) }))

  /** Returns the verdicts of checks whose keys have at most MAX_LICENSE_KEY_BYTES. */
  async function requestAll(context: ReadContext, checks: readonly CheckToDecide[]): Promise<Verdicts> {
    const prepared = { ...(await prepare(context, fixedUrls)), dispatcher }
    if (prepared.adminUrls.length === 0)
      log.warn('no validator runs on this host; list the admin ports of validators in KEYWARD_VALIDATOR_ADMIN_URLS')
    const decided = new AbortController()
    const { signal } = decided
    const ask = (adminUrl: string) =>
      decideAt(adminUrl, prepared, context.organizationId, checks, signal).catch((error: unknown) => {
        if (!signal.aborted) log.warn({ err: error, adminUrl }, 'validator did not decide')
        throw error
      })
    try {
      return await firstOf(prepared.adminUrls, ask, signal).catch(unavailable)
    } finally {
      decided.abort(DECIDED)
    }
  }

  async function decideAll(context: ReadContext, checks: readonly CheckToDecide[]): Promise<Verdicts> {
    // No license has a key of more than MAX_LICENSE_KEY_BYTES.
    const possible = checks.filter(({ licenseKey }) => byteLength(licenseKey) <= MAX_LICENSE_KEY_BYTES)
    const verdicts = possible.length === 0 ? [] : await requestAll(context, possible)
    const byCheck = new Map(possible.map((check, i) => [check, verdicts[i] ?? null]))
    const completed: (DecideResponse | null)[] = []
    // The leases are read one after the other, so that a batch uses one connection.
    for (const check of checks) {
      const verdict = byCheck.has(check) ? (byCheck.get(check) ?? null) : DECIDED_NOT_FOUND
      completed.push(verdict && (await withLeases(context, check, verdict)))
    }
    return completed
  }

  return {
    decideAll,
    async decide(context, check) {
      const [verdict] = await decideAll(context, [check])
      return verdict ?? unavailable()
    },
  }
}

function unavailable(): never {
  const detail = 'No validator that can decide this check is reachable. Retry in 1 s.'
  throw new ApiError('UNAVAILABLE', detail, { headers: { 'retry-after': '1' } })
}

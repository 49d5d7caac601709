/**
 * Prepares a measurement: takes the slots of the known machines and sends one check of every other kind. A run with a wrong API key, for
 * example, fails here.
 */

import { z } from 'zod'

import { checkBody, checkHeaders, checkPath, withNewMachine, type ApiVersion, type Check } from './checks.ts'
import type { CheckKind } from './mix.ts'

const EXPECTED: Record<CheckKind, readonly string[]> = {
  known: ['VALID'],
  new: ['VALID', 'TOO_MANY_MACHINES'],
  blacklisted: ['BLACKLISTED'],
  excluded: ['VALID'],
  unknown: ['NOT_FOUND'],
}

/** The name of the gateway of `npm start` in the header `via` of its responses. */
const DEVELOPMENT_GATEWAY = 'keyward-development-gateway'
const GATEWAY_NOTE =
  'the target is the development gateway of "npm start", which decides far fewer checks a second than the validator behind it; ' +
  'set --url to the validator or to your own balancer'

/** The maximum number of known machines that take their slots. Further known machines are assumed to hold slots already. */
const ACTIVATED_AT_MOST = 1000

/**
 * Sends checks of every kind and compares their codes with those expected for the kind. Returns a sentence per unexpected
 * code, and one if the target is the development gateway. Throws if the validator cannot be reached or rejects the API key.
 */
export async function preflight(url: URL, checks: readonly Check[], version: ApiVersion): Promise<string[]> {
  const surprises = new Map<string, string>()
  for (const check of firstOfEach(checks)) {
    const { status, code, isSigned, via } = await send(url, check, version)
    if (status === 401)
      throw new Error(`the validator rejects the API key ${check.apiKey.slice(0, 8)}... (401 ${code})`)
    if (status >= 500 || status === 404) throw new Error(`${url.origin} returned ${status} ${code}`)
    if (check.kid !== undefined && !isSigned) surprises.set('unsigned', 'a response has no signature')
    if (via?.includes(DEVELOPMENT_GATEWAY) === true) surprises.set('gateway', GATEWAY_NOTE)
    if (EXPECTED[check.kind].includes(code)) continue
    const wanted = EXPECTED[check.kind].join(' or ')
    surprises.set(`${check.kind} ${code}`, `a check of kind "${check.kind}" got ${code}, not ${wanted}`)
  }
  return [...surprises.values()]
}

function firstOfEach(checks: readonly Check[]): Check[] {
  const chosen = new Map<string, Check>()
  for (const check of checks) {
    const name = check.kind === 'known' ? `${check.licenseKey}\n${check.machineId}` : check.kind
    if (chosen.size < ACTIVATED_AT_MOST || check.kind !== 'known') if (!chosen.has(name)) chosen.set(name, check)
  }
  return [...chosen.values()]
}

const responseBody = z.object({ code: z.string() })

async function send(
  url: URL,
  check: Check,
  version: ApiVersion,
): Promise<{ status: number; code: string; isSigned: boolean; via: string | null }> {
  let response: Response
  try {
    response = await fetch(new URL(checkPath(version), url), {
      method: 'POST',
      headers: checkHeaders(check),
      body: check.kind === 'new' ? withNewMachine(checkBody(check, version)) : checkBody(check, version),
      signal: AbortSignal.timeout(10_000),
    })
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)
    throw new Error(`${url.origin} cannot be reached: ${cause}`, { cause: error })
  }
  const body = responseBody.safeParse(await response.json().catch(() => null))
  const isSigned = response.headers.has('keyward-signature')
  const code = body.success ? body.data.code : '(no code)'
  return { status: response.status, code, isSigned, via: response.headers.get('via') }
}

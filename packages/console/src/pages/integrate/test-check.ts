/** Sends a check from the browser, with the request that an app would send. */

import { type Code, CODES } from '@keyward/contract'
import { z } from 'zod'

/** Only verdicts have `valid` (docs/api.md#h2). An error has a `code` too, such as NOT_FOUND for an unknown path. */
const verdict = z.object({ valid: z.boolean(), code: z.enum(CODES) })

export interface Outcome {
  code: Code
  /** The body of the response, indented, or null for a dry run. */
  body: string | null
  /** Whether the code comes from the validation API and not from a dry run. */
  isReal: boolean
}

/** Returns null without a verdict: the API returns an error, or does not respond at the address of the console. */
export async function checkLikeApp(apiKey: string, licenseKey: string, machineId: string): Promise<Outcome | null> {
  const response = await fetch('/api/v2/license/validate', {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ license: licenseKey, fingerprint: machineId }),
    credentials: 'omit',
  }).catch(() => null)
  const received: unknown = await response?.json().catch(() => null)
  const parsed = verdict.safeParse(received)
  if (!parsed.success) return null
  return { code: parsed.data.code, body: JSON.stringify(received, null, 2), isReal: true }
}

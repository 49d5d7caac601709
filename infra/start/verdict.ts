/** Determines the current verdict of the demo license, so that the message of `npm start` states the right verdict. */

import { z } from 'zod'

import type { DemoFile } from './state.ts'

/** The machine id in the printed commands. */
export const MACHINE_ID = 'my-machine'

export interface Verdict {
  code: string
  /** The id of the blacklist rule that rejects the machine; null if no rule rejects it. */
  blacklistId: string | null
}

const evaluationSchema = z.object({
  code: z.string(),
  decidedBy: z.object({ id: z.string(), kind: z.string() }).nullable(),
})

/** Evaluates a check of the demo machine as a dry run, which takes no slot and is not counted. Throws if management returns an error. */
export async function verdictOf(demo: DemoFile): Promise<Verdict> {
  const response = await fetch(`${demo.managementUrl}/api/v1/access-rules/evaluate`, {
    method: 'POST',
    headers: { authorization: `Bearer ${demo.managementToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ licenseId: demo.licenseId, machineId: MACHINE_ID }),
  })
  if (!response.ok) throw new Error(`Cannot evaluate the demo license: ${await response.text()}`)
  const { code, decidedBy } = evaluationSchema.parse(await response.json())
  return { code, blacklistId: decidedBy?.kind === 'BLACKLIST' ? decidedBy.id : null }
}

/** Returns whether the installation of `demo.json` responds and therefore still runs. */
export async function isRunning(demo: DemoFile): Promise<boolean> {
  try {
    const response = await fetch(`${demo.baseUrl}/api/v1/organization`, {
      headers: { authorization: `Bearer ${demo.managementToken}` },
      signal: AbortSignal.timeout(2_000),
    })
    return response.ok && z.object({ id: z.string() }).parse(await response.json()).id === demo.organizationId
  } catch {
    return false
  }
}

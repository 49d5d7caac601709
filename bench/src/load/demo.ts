/** Uses the demo organization of `npm start` as the default target of `npm run bench`. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { z } from 'zod'

import type { BenchOptions } from './bench-arguments.ts'
import type { Target } from './checks.ts'

const demoFile = z.object({
  validatorUrl: z.url(),
  managementUrl: z.url(),
  apiKey: z.string(),
  managementToken: z.string(),
  licenseKey: z.string(),
})

const BLACKLISTED_MACHINE = 'bench-blacklisted'
const EXCLUDED_MACHINE = 'bench-excluded'

/**
 * Returns the demo's validator and license. If the mix needs them, adds a blacklist and an exclusion that expire an hour
 * after the run. Throws if no demo is running.
 */
export async function useDemo(options: BenchOptions): Promise<{
  url: URL
  targets: Target[]
  blacklistedMachines: string[]
  excludedMachines: string[]
}> {
  const demo = readDemo()
  const expiresAt = new Date(Date.now() + options.durationMs + 3_600_000).toISOString()
  const addRule = async (kind: string, value: string): Promise<void> => {
    const response = await fetch(new URL('/api/v1/access-rules', demo.managementUrl), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${demo.managementToken}`,
        'content-type': 'application/json',
        prefer: 'wait=5',
      },
      body: JSON.stringify({ kind, type: 'HWID', value, scope: 'ORGANIZATION', note: 'npm run bench', expiresAt }),
    })
    // 409: an earlier run has added the rule.
    if (!response.ok && response.status !== 409) throw new Error(`the demo rejected a rule: ${await response.text()}`)
  }
  if (options.mix.has('blacklisted')) await addRule('BLACKLIST', BLACKLISTED_MACHINE)
  if (options.mix.has('excluded')) await addRule('EXCLUSION', EXCLUDED_MACHINE)
  return {
    url: new URL(demo.validatorUrl),
    targets: [{ apiKey: demo.apiKey, licenseKey: demo.licenseKey, machineIds: options.machines }],
    blacklistedMachines: [BLACKLISTED_MACHINE],
    excludedMachines: [EXCLUDED_MACHINE],
  }
}

function readDemo(): z.infer<typeof demoFile> {
  const path = join(import.meta.dirname, '../../../.keyward/demo.json')
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    throw new Error('no demo is running: run "npm start" in another terminal, or set --url to a validator')
  }
  return demoFile.parse(JSON.parse(text))
}

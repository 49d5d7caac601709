/** Formats the text that `npm start` prints when it is ready: the address, and commands to try. */

import type { DemoFile } from './state.ts'
import { MACHINE_ID, type Verdict } from './verdict.ts'

/** Returns the headline of a start that was ready after `tookMs`. */
export function startedAt(demo: DemoFile, tookMs: number): string {
  return `Keyward is ready at ${demo.baseUrl} (${(tookMs / 1_000).toFixed(1)} s)`
}

/** Returns the headline if an earlier start in this folder still runs. */
export function alreadyRunsAt(demo: DemoFile): string {
  return `Keyward already runs in this folder, at ${demo.baseUrl}`
}

/** Returns the whole message. `signIn` is the URL that signs the demo member in once. `verdict` is the current verdict for the demo machine. */
export function readyMessage(headline: string, demo: DemoFile, signIn: string, verdict: Verdict): string {
  return `
${headline}

Open the console. This link signs you in once:

  ${signIn}

${stepsOf(demo, verdict)}
API reference: ${demo.baseUrl}/docs
Keys, ids and addresses: .keyward/demo.json
`
}

function stepsOf(demo: DemoFile, { code, blacklistId }: Verdict): string {
  const check = `Check the demo license. The verdict is ${code}:

  ${curl(demo, '/api/v2/license/validate', demo.apiKey, { license: demo.licenseKey, fingerprint: MACHINE_ID })}
`
  const rule = { kind: 'BLACKLIST', type: 'HWID', value: MACHINE_ID, scope: 'ORGANIZATION' }
  if (code === 'VALID')
    return `${check}
Blacklist that machine, then check again. The verdict is BLACKLISTED:

  ${curl(demo, '/api/v1/access-rules', demo.managementToken, rule)}

Delete the rule, with the id from the response:

  ${curlDelete(demo, 'ID')}
`
  if (blacklistId === null) return check
  return `${check}
That machine is on the blacklist. Delete the rule, then check again:

  ${curlDelete(demo, blacklistId)}
`
}

/** Returns a command for any POSIX shell. Keys and ids are letters, digits and dashes, so the JSON has no single quote. */
function curl(demo: DemoFile, path: string, token: string, body: object): string {
  const headers = `-H 'authorization: Bearer ${token}' -H 'content-type: application/json'`
  return `curl ${demo.baseUrl}${path} ${headers} -d '${JSON.stringify(body)}'`
}

function curlDelete(demo: DemoFile, ruleId: string): string {
  const header = `-H 'authorization: Bearer ${demo.managementToken}'`
  return `curl -X DELETE ${demo.baseUrl}/api/v1/access-rules/${ruleId} ${header}`
}

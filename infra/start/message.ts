/** Formats the text that `npm start` prints when it is ready: the address, and commands to try. */

import type { DemoFile } from './state.ts'

const MACHINE_ID = 'my-machine'

/**
 * Returns the text. `signIn` is the address that signs the demo member in once. `tookMs` is the time since the start of
 * the process.
 */
export function readyMessage(demo: DemoFile, signIn: string, tookMs: number): string {
  const check = curl(demo, '/api/v2/license/validate', demo.apiKey, {
    license: demo.licenseKey,
    fingerprint: MACHINE_ID,
  })
  const rule = { kind: 'BLACKLIST', type: 'HWID', value: MACHINE_ID, scope: 'ORGANIZATION' }
  return `
Keyward is ready at ${demo.baseUrl} (${(tookMs / 1_000).toFixed(1)} s)

Open the console. This link signs you in once:

  ${signIn}

Check the demo license. The verdict is VALID:

  ${check}

Blacklist that machine, then check again. The verdict is BLACKLISTED:

  ${curl(demo, '/api/v1/access-rules', demo.managementToken, rule)}

API reference: ${demo.baseUrl}/docs
Keys, ids and addresses: .keyward/demo.json
Stop with Ctrl-C.
`
}

/** Returns a command for any POSIX shell. Keys and ids are letters, digits and dashes, so the JSON has no single quote. */
function curl(demo: DemoFile, path: string, token: string, body: object): string {
  const headers = `-H 'authorization: Bearer ${token}' -H 'content-type: application/json'`
  return `curl ${demo.baseUrl}${path} ${headers} -d '${JSON.stringify(body)}'`
}

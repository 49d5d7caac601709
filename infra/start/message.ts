/** The one message of a start: where Keyward is, and lines to paste that show what it does. */
import type { DemoFile } from './state.ts'

const MACHINE_ID = 'my-machine'

export function readyMessage(demo: DemoFile, tookMs: number): string {
  const check = curl(demo, '/api/v2/license/validate', demo.apiKey, {
    license: demo.licenseKey,
    fingerprint: MACHINE_ID,
  })
  const rule = { kind: 'BLACKLIST', type: 'HWID', value: MACHINE_ID, scope: 'ORGANIZATION' }
  return `
Keyward is ready at ${demo.baseUrl} (${(tookMs / 1_000).toFixed(1)} s)

Check the demo license; the answer is VALID:

  ${check}

Put that machine on the blacklist and check again; the answer is BLACKLISTED:

  ${curl(demo, '/api/v1/access-rules', demo.managementToken, rule)}

The API to read and try: ${demo.baseUrl}/docs
Keys, ids and addresses: .keyward/demo.json
Stop with Ctrl-C.
`
}

/** A line for any POSIX shell. The JSON holds no single quote: keys and ids are letters, digits and dashes. */
function curl(demo: DemoFile, path: string, token: string, body: object): string {
  const headers = `-H 'authorization: Bearer ${token}' -H 'content-type: application/json'`
  return `curl ${demo.baseUrl}${path} ${headers} -d '${JSON.stringify(body)}'`
}

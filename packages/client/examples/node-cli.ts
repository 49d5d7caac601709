/** A command line app that checks its license at every start: exit code 0 when it may run, 1 when not. */

import { hostname } from 'node:os'

import { createLicenseClient } from '@keyward/client'
import { fileStorage, machineId } from '@keyward/client/node'

// A real app has the first four values built in.
const { LICENSE_URL = '', LICENSE_API_KEY = '', LICENSE_KEY_ID = '', LICENSE_PUBLIC_KEY = '' } = process.env
const { LICENSE_KEY = '', LICENSE_STORE = 'license.json' } = process.env

const client = createLicenseClient({
  baseUrl: LICENSE_URL,
  apiKey: LICENSE_API_KEY,
  publicKeys: [{ keyId: LICENSE_KEY_ID, publicKey: LICENSE_PUBLIC_KEY }],
  licenseKey: LICENSE_KEY,
  machineId: await machineId('acme-cli'),
  hostname: hostname(),
  storage: fileStorage(LICENSE_STORE),
})

const result = await client.activate()

if (result.valid) {
  console.log(`Licensed (${result.source}), ${result.expiresAt === null ? 'for good' : `until ${result.expiresAt}`}.`)
} else if (result.code === 'OFFLINE_REFUSED') {
  console.error(`The license server cannot be reached, and there is no license to go on with: ${result.reason}.`)
} else if (result.code === 'CONFIGURATION') {
  console.error(`This app is set up wrongly: ${result.reason}. ${result.message}`)
} else {
  console.error(`${result.message} (${result.code})`)
}

// Waits for the license file, which is fetched in the background; a short program would end before it is stored.
await client.settled()
process.exitCode = result.valid ? 0 : 1

/** A command line app that checks its license at every start. It exits with 0 for a valid license and with 1 otherwise. */

import { hostname } from 'node:os'

import { createLicenseClient } from '@keyward/client'
import { fileStorage, machineId } from '@keyward/client/node'

// A real app contains the first four values as constants.
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
  console.log(
    `Licensed (${result.source}), ${result.expiresAt === null ? 'without expiry' : `until ${result.expiresAt}`}.`,
  )
} else if (result.code === 'CONFIGURATION') {
  console.error(`The license settings of this app are wrong: ${result.reason}. ${result.message}`)
} else {
  console.error(`${result.message} (${result.code})`)
}

// Waits for the background fetch of the license file.
await client.settled()
process.exitCode = result.valid ? 0 : 1

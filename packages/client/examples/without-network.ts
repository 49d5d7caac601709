/**
 * A command line app for a machine that never has a network. Without a license file, the app shows its request code, as text and as a QR code.
 * `node without-network.ts FILE` imports the file that the vendor has issued for this code. Requires the package `uqr`.
 */

import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'

import { createLicenseClient } from '@keyward/client'
import { fileStorage, machineKey } from '@keyward/client/node'
import { renderUnicodeCompact } from 'uqr'

// A real app contains the first four values as constants.
const { LICENSE_URL = '', LICENSE_API_KEY = '', LICENSE_KEY_ID = '', LICENSE_PUBLIC_KEY = '' } = process.env
const { LICENSE_KEY = '', LICENSE_FOLDER = '.' } = process.env

const { machineId } = await machineKey(join(LICENSE_FOLDER, 'machine.key'))
const client = createLicenseClient({
  baseUrl: LICENSE_URL,
  apiKey: LICENSE_API_KEY,
  publicKeys: [{ keyId: LICENSE_KEY_ID, publicKey: LICENSE_PUBLIC_KEY }],
  licenseKey: LICENSE_KEY,
  machineId,
  hostname: hostname(),
  storage: fileStorage(join(LICENSE_FOLDER, 'license.json')),
})

const [file] = process.argv.slice(2)
if (file !== undefined) {
  const imported = await client.importFile(await readFile(file, 'utf8'))
  console.log(imported.imported ? 'Imported the license file.' : `Cannot use this license file: ${imported.reason}.`)
}

const result = await client.validate()
if (result.valid) {
  console.log(`Licensed (${result.source}).`)
} else {
  const code = (await client.requestCode()) ?? ''
  // Readers expect dark modules on a light ground, on every terminal.
  const picture = renderUnicodeCompact(code, { border: 4 }).replaceAll(/^.*$/gm, '\u001B[97;40m$&\u001B[0m')
  console.log(`No license file. Send this code to the vendor:\n${code}\n${picture}`)
}
process.exitCode = result.valid ? 0 : 1

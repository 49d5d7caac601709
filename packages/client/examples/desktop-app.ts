/**
 * Checks the license of a desktop app, for example in the main process of Electron. The license file is in the data folder of the app.
 * In Electron:
 *
 * const licensing = await startLicensing(vendor, licenseKey, app.getPath('userData'), (allowed, why) =>
 * window.webContents.send('license', allowed, why))
 * powerMonitor.on('resume', () => licensing.check())
 *
 * `stop` is asynchronous. examples/electron/main.mjs shows how an app waits for a promise before it quits.
 */

import { hostname } from 'node:os'
import { join } from 'node:path'

import { createLicenseClient, type PublicKey, type ValidationResult } from '@keyward/client'
import { fileStorage, machineId } from '@keyward/client/node'

const SIX_HOURS_MS = 6 * 60 * 60 * 1000

/** The constants that the app is built with. */
export interface Vendor {
  baseUrl: string
  apiKey: string
  publicKeys: readonly PublicKey[]
}

/** Checks the license at the start and every six hours. Passes each result with its reason to `onChange`. */
export async function startLicensing(
  vendor: Vendor,
  licenseKey: string,
  userData: string,
  onChange: (allowed: boolean, why: string) => void,
): Promise<{ check(): Promise<void>; stop(): Promise<void> }> {
  const client = createLicenseClient({
    ...vendor,
    licenseKey,
    machineId: await machineId('acme-desktop'),
    hostname: hostname(),
    storage: fileStorage(join(userData, 'license.json')),
  })
  const check = async (): Promise<void> => {
    const result = await client.validate()
    onChange(result.valid, explain(result))
  }
  await check()
  const timer = setInterval(() => void check(), SIX_HOURS_MS)
  return {
    check,
    async stop() {
      clearInterval(timer)
      await client.settled()
    },
  }
}

function explain(result: ValidationResult): string {
  if (!result.valid) return result.message
  return result.source === 'online' ? result.code : `Offline, good until ${result.refreshAfter}`
}

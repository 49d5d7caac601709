/**
 * The main process of an Electron app that requires a license. The main process checks the license, because users can more easily change
 * the scripts of a window. The window sends the license key and receives every result.
 */

import { readFile, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'

import { createLicenseClient } from '@keyward/client'
import { fileStorage, machineId } from '@keyward/client/node'
import { app, BrowserWindow, ipcMain, powerMonitor } from 'electron'

import { vendor } from './vendor.mjs'

const SIX_HOURS_MS = 6 * 60 * 60 * 1000
const inUserData = (name) => join(app.getPath('userData'), name)

let window
let client

/** Creates the client for a license key, checks the license and returns the result. */
async function start(licenseKey) {
  client = createLicenseClient({
    ...vendor,
    licenseKey,
    machineId: await machineId('acme-studio'),
    hostname: hostname(),
    storage: fileStorage(inUserData('license.json')),
  })
  return show(await client.activate())
}

function show(result) {
  // A check may end after the window has been closed.
  if (!window.isDestroyed()) window.webContents.send('license', result)
  return result
}

const check = async () => client && show(await client.validate())

ipcMain.handle('enter-license-key', async (_event, licenseKey) => {
  const result = await start(licenseKey)
  if (result.valid) await writeFile(inUserData('license-key.txt'), licenseKey)
  return result
})

async function open() {
  window = new BrowserWindow({ webPreferences: { preload: join(import.meta.dirname, 'preload.js') } })
  await window.loadFile('index.html')
  const stored = await readFile(inUserData('license-key.txt'), 'utf8').catch(() => '')
  if (stored !== '') await start(stored)
  setInterval(check, SIX_HOURS_MS)
  powerMonitor.on('resume', check)
}

// Electron is ready only after this module has been evaluated, so the module must not await `whenReady`.
void app.whenReady().then(open)

let isSettled = false

/** Quits the app when no license file is being fetched. */
async function quitWhenSettled() {
  await client?.settled()
  isSettled = true
  app.quit()
}

// Electron does not wait for the promise of a listener, so the first attempt to quit is prevented.
app.on('before-quit', (event) => {
  if (isSettled) return
  event.preventDefault()
  void quitWhenSettled()
})

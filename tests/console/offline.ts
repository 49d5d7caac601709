import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

import type { Stage } from './stage.ts'

const APP = fileURLToPath(new URL('../../packages/client/contract-suite/sdk.ts', import.meta.url))
const WITHOUT_NETWORK = ['--map-root-user', '--net']
const signingKeys = z.object({ data: z.array(z.object({ keyId: z.string(), publicKey: z.string() })) })

/** Runs the client with these commands, in a process without a network where Linux allows it. Returns the replies. */
function runApp(commands: readonly object[]): unknown[] {
  const canIsolate = spawnSync('unshare', [...WITHOUT_NETWORK, 'true']).status === 0
  const input = commands.map((command) => `${JSON.stringify(command)}\n`).join('')
  const run = [...(canIsolate ? ['unshare', ...WITHOUT_NETWORK] : []), process.execPath, APP]
  const { stdout } = spawnSync('env', run, { input, encoding: 'utf8' })
  return stdout
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
}

export function offlineTests(open: () => Stage): void {
  test('turns the request code of a machine without a network into a file that only this machine can use', async () => {
    const stage = open()
    const { page } = stage
    const licenseKey = 'AIRG-2222-2222-2222'
    const id = await stage.addLicense(licenseKey)
    const folder = mkdtempSync(join(tmpdir(), 'keyward-offline-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const app = {
      command: 'open',
      baseUrl: 'http://127.0.0.1:9',
      apiKey: 'kwk_test',
      publicKeys: (await stage.read('/signing-keys', signingKeys)).data,
      licenseKey,
      machineId: 'plant 3',
      hostname: 'workshop',
      storage: join(folder, 'license.json'),
      timeoutMs: 1000,
      clockAheadMs: 0,
    }
    const validate = { command: 'validate' }
    const [, before, requested] = runApp([app, validate, { command: 'requestCode' }])
    expect(before).toMatchObject({ source: 'offline', reason: 'NO_FILE' })
    const { code } = z.object({ code: z.string() }).parse(requested)
    await stage.open(`/licenses/${id}`)
    await stage.act('File for a machine')
    // Mail programs wrap long lines.
    await stage.field(/^Request code/).fill(`${code.slice(0, 60)}\n ${code.slice(60)}`)
    await stage.button('Issue the file').click()
    const [download] = await Promise.all([page.waitForEvent('download'), stage.button('Download the file').click()])
    const importFile = { command: 'importFile', file: readFileSync(await download.path(), 'utf8') }
    const other = { ...app, machineId: 'plant 4' }
    expect(runApp([app, importFile, validate, other, importFile, validate])).toMatchObject([
      {},
      { imported: true },
      { source: 'offline', valid: true },
      {},
      { imported: false, reason: 'WRONG_MACHINE' },
      { source: 'offline', valid: false, reason: 'WRONG_MACHINE' },
    ])
    expect(await stage.check(licenseKey, 'plant 4')).toBe('TOO_MANY_MACHINES')
    await stage.open(`/licenses/${id}`)
    await page.getByText('workshop').first().waitFor()
  })
}

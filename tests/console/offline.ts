import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

import { violationsOf } from './accessibility.ts'
import { readPrintedQrCode, readQrCode } from './qr-codes.ts'
import type { Stage } from './stage.ts'

const APP = fileURLToPath(new URL('../../packages/client/examples/without-network.ts', import.meta.url))
const WITHOUT_NETWORK = ['--map-root-user', '--net']
const signingKeys = z.object({ data: z.array(z.object({ keyId: z.string(), publicKey: z.string() })) })

/** Runs the app with the data of a machine in `folder`, and without a network where Linux allows it. Returns the output. */
function runApp(env: Record<string, string>, folder: string, ...args: string[]): string {
  const canIsolate = spawnSync('unshare', [...WITHOUT_NETWORK, 'true']).status === 0
  const run = [...(canIsolate ? ['unshare', ...WITHOUT_NETWORK] : []), process.execPath, APP, ...args]
  const options = { env: { ...process.env, ...env, LICENSE_FOLDER: folder }, encoding: 'utf8' } as const
  const { stdout, stderr } = spawnSync('env', run, options)
  return stdout + stderr
}

export function offlineTests(open: () => Stage): void {
  test('turns the request code of a machine without a network into a file that only this machine can use', async () => {
    const stage = open()
    const { page } = stage
    const licenseKey = 'AIRG-2222-2222-2222'
    const id = await stage.addLicense(licenseKey)
    const folder = mkdtempSync(join(tmpdir(), 'keyward-offline-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const [machine, other] = [join(folder, 'plant 3'), join(folder, 'plant 4')]
    const { keyId, publicKey } = (await stage.read('/signing-keys', signingKeys)).data[0]!
    const env = {
      LICENSE_URL: 'http://127.0.0.1:9',
      LICENSE_API_KEY: 'kwk_test',
      LICENSE_KEY_ID: keyId,
      LICENSE_PUBLIC_KEY: publicKey,
      LICENSE_KEY: licenseKey,
    }
    const shown = runApp(env, machine)
    const code = readPrintedQrCode(shown)
    expect(shown).toContain(`No license file. Send this code to the vendor:\n${code}\n`)
    await stage.open(`/licenses/${id}`)
    await stage.act('File for a machine')
    // Mail programs wrap long lines.
    await stage.field(/^Request code/).fill(`${code.slice(0, 60)}\n ${code.slice(60)}`)
    await stage.button('Issue the file').click()
    const picture = page.getByRole('img', { name: 'The file as a QR code' })
    await picture.waitFor()
    expect(await violationsOf(page)).toEqual([])
    const file = await readQrCode(picture)
    const [download] = await Promise.all([page.waitForEvent('download'), stage.button('Download the file').click()])
    expect(file).toBe(readFileSync(await download.path(), 'utf8'))
    const path = join(folder, 'machine.lic')
    await writeFile(path, file)
    expect(runApp(env, machine, path)).toBe('Imported the license file.\nLicensed (offline).\n')
    expect(runApp(env, machine)).toBe('Licensed (offline).\n')
    expect(runApp(env, other, path)).toContain('Cannot use this license file: WRONG_MACHINE.\nNo license file.')
    expect(await stage.check(licenseKey, 'plant 4')).toBe('TOO_MANY_MACHINES')
    await stage.open(`/licenses/${id}`)
    await page.getByText(hostname()).first().waitFor()
  })
}

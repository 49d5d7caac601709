/** Tests the client in a browser: the example pages online and offline, the vectors, and the size of the bundle. */

import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

import vectors from '@keyward/license-file/vectors/license-files.json' with { type: 'json' }
import { hasBrowser, launchBrowser, WITHOUT_BROWSER } from '@keyward/testkit/browser'
import type { Browser } from 'playwright-core'
import { rolldown } from 'rolldown'
import { afterAll, describe, expect, test } from 'vitest'

import { type Gateway, startGateway } from '../contract-suite/service/gateway.ts'
import { type Service, startService } from '../contract-suite/service/service.ts'
import { MESSAGE_AFTER_REJECTION } from '../src/messages.ts'

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

test('bundles to less than 22 kB gzipped without other imports', async () => {
  const { code, imports } = await bundle('../src/index.ts')
  expect(gzipSync(code).length).toBeLessThan(22_000)
  expect(imports).toEqual([])
})

describe.skipIf(!hasBrowser)(`in a browser (${WITHOUT_BROWSER})`, () => {
  let browser: Browser | undefined
  const open: { service: Service; gateway: Gateway }[] = []
  afterAll(async () => {
    await browser?.close()
    await Promise.all(open.flatMap(({ service, gateway }) => [gateway.stop(), service.close()]))
  })

  async function newPage() {
    browser ??= await launchBrowser()
    return browser.newPage()
  }

  async function startSite(
    script: (service: Service) => Promise<string>,
    folder = 'browser',
  ): Promise<{ service: Service; gateway: Gateway }> {
    const service = await startService()
    const gateway = await startGateway(() => service.url)
    const html = await readFile(path(`../examples/${folder}/index.html`), 'utf8')
    gateway.pages.set('/', { type: 'text/html', body: html })
    gateway.pages.set('/app.js', { type: 'text/javascript', body: await script(service) })
    open.push({ service, gateway })
    return { service, gateway }
  }

  test('shows the example page as licensed until the service rejects the license', async () => {
    const { service, gateway } = await startSite(exampleFor)
    const page = await newPage()
    const license = async () => {
      await page.goto(gateway.url)
      await page.waitForSelector('body[data-settled]')
      return page.textContent('#license')
    }
    expect(await license()).toBe('valid (online)')
    gateway.fault = { kind: 'drop' }
    expect(await license()).toBe('valid (offline)')
    gateway.fault = { kind: 'cut' }
    expect(await license()).toBe('valid (offline)')
    gateway.fault = { kind: 'none' }
    service.license.rejectedAs = 'REVOKED'
    expect(await license()).toBe('The check was rejected.')
    gateway.fault = { kind: 'drop' }
    expect(await license()).toBe(MESSAGE_AFTER_REJECTION)
    await page.close()
  })

  test('shows the content of the React example until the service rejects the license', async () => {
    const { service, gateway } = await startSite((own) => exampleFor(own, '../examples/react/main.js'), 'react')
    const page = await newPage()
    const shown = async (text: string) => {
      await page.goto(gateway.url)
      await page.getByText(text).waitFor()
    }
    await shown('Acme Studio')
    await expect.poll(() => page.evaluate('localStorage.length')).toBe(2)
    gateway.fault = { kind: 'drop' }
    await shown('Acme Studio')
    gateway.fault = { kind: 'none' }
    service.license.rejectedAs = 'TOO_MANY_MACHINES'
    await shown('The license is in use on other machines.')
    service.license.rejectedAs = null
    await page.getByRole('button', { name: 'Check again' }).click()
    await page.getByText('Acme Studio').waitFor()
    await page.close()
  })

  test('names CORS_ORIGINS as a possible cause when the service does not allow the page', async () => {
    const { service, gateway } = await startSite(async (own) =>
      (await exampleFor(own))
        .replace('location.origin', JSON.stringify(own.url))
        .replace(/(#license[^;]+)\.message\b/, '$1.detail'),
    )
    const page = await newPage()
    await page.goto(gateway.url)
    await page.waitForSelector('body[data-settled]')
    const shown = await page.textContent('#license')
    expect(shown).toContain(`No connection to ${service.url}`)
    expect(shown).toContain(`CORS_ORIGINS may not contain ${gateway.url}`)
    await page.close()
  })

  test('judges all vectors as expected', async () => {
    const { gateway } = await startSite(async () => (await bundle('vectors-in-page.ts')).code)
    const page = await newPage()
    await page.goto(gateway.url)
    await page.waitForSelector('body[data-settled]')
    const outcomes: unknown = JSON.parse((await page.textContent('#license')) ?? '')
    expect(outcomes).toEqual(Object.fromEntries(vectors.cases.map(({ name, expected }) => [name, expected])))
    await page.close()
  })
})

async function exampleFor(service: Service, entry = '../examples/browser/app.js'): Promise<string> {
  const [key = { keyId: '', publicKey: '' }] = service.publicKeys
  const { code } = await bundle(entry)
  return code
    .replace('kwk_YOUR_API_KEY', service.apiKey)
    .replace('YOUR_KEY_ID', key.keyId)
    .replace('YOUR_PUBLIC_KEY', key.publicKey)
    .replace('XXXX-XXXX-XXXX-XXXX', service.licenseKey)
}

async function bundle(entry: string): Promise<{ code: string; imports: string[] }> {
  const define = { 'process.env.NODE_ENV': '"production"' }
  const build = await rolldown({ input: path(entry), platform: 'browser', transform: { define } })
  const { output } = await build.generate({ format: 'es', minify: true })
  await build.close()
  return output[0]
}

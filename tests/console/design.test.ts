/** Shows every shared component of the console in every state, in both themes and on a phone. No state may have an accessibility violation. */

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'

import { buildInto } from '@keyward/console/build'
import { hasBrowser, launchBrowser, WITHOUT_BROWSER } from '@keyward/testkit/browser'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { violationsOf } from './accessibility.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}
const TIMEOUT_MS = 120_000

describe.skipIf(!hasBrowser)(`the components of the console (${WITHOUT_BROWSER})`, { timeout: TIMEOUT_MS }, () => {
  let folder = ''
  let server: Server
  let browser: Browser
  let url = ''
  const complaints: string[] = []

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'keyward-design-'))
    await buildInto(folder, true)
    server = createServer((request, response) => {
      const [, name] = /^\/console\/assets\/([\w.-]+)$/.exec(request.url ?? '') ?? []
      const path = name === undefined ? 'index.html' : join('assets', name)
      readFile(join(folder, path)).then(
        (bytes) => response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'text/html' }).end(bytes),
        () => response.writeHead(404).end(),
      )
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/console/design`
    browser = await launchBrowser()
  }, TIMEOUT_MS)

  afterAll(async () => {
    await browser.close()
    server.close()
    await rm(folder, { recursive: true, force: true })
  })

  async function open(width = 1440): Promise<Page> {
    const context = await browser.newContext({ viewport: { width, height: 900 }, reducedMotion: 'reduce' })
    const page = await context.newPage()
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(url)
    await page.getByRole('heading', { name: 'Components' }).waitFor()
    return page
  }

  test('look different in the two themes, and have no violation in any state', async () => {
    const page = await open()
    expect(await violationsOf(page)).toEqual([])
    const pictures = []
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      pictures.push(await page.screenshot({ fullPage: true }))
    }
    expect(pictures[0]?.equals(pictures[1] ?? Buffer.alloc(0))).toBe(false)
    await page.emulateMedia({ colorScheme: 'light' })
    for (const name of ['Revoke', 'Open a form']) {
      await page.getByRole('button', { name, exact: true }).click()
      await page.getByRole('dialog').waitFor()
      expect(await violationsOf(page)).toEqual([])
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'hidden' })
    }
    await page.getByRole('button', { name: 'Open the panel' }).click()
    await page.getByRole('complementary', { name: 'Check' }).waitFor()
    expect(await violationsOf(page)).toEqual([])
    await page.keyboard.press('Escape')
    expect(await page.locator(':focus').innerText()).toBe('Open the panel')
    await page.getByRole('button', { name: 'Show an undo' }).click()
    await page.getByRole('button', { name: 'Undo', exact: true }).waitFor()
    expect(await violationsOf(page)).toEqual([])
    await page.getByRole('button', { name: 'Show an error' }).click()
    await page.getByRole('button', { name: 'Undo', exact: true }).waitFor({ state: 'hidden' })
    await page.context().close()
  })

  test('fit a phone', async () => {
    const page = await open(360)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('are not part of a build for production', async () => {
    const plain = await mkdtemp(join(tmpdir(), 'keyward-plain-'))
    await buildInto(plain)
    const names = await readdir(join(plain, 'assets'))
    expect(names.filter((name) => name.startsWith('design'))).toEqual([])
    expect((await readdir(join(folder, 'assets'))).some((name) => name.startsWith('design'))).toBe(true)
    await rm(plain, { recursive: true, force: true })
  })
})

/**
 * `npm run screenshots`: takes pictures of the console with the demo data, and writes them to docs/screenshots. With `--all FOLDER`,
 * it takes pictures of every screen in both themes and two widths, and writes them to the folder.
 */

import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { chromium, type Page } from 'playwright-core'
import { z } from 'zod'

import { planDemoData } from '../demo-data/plan.ts'
import type { DemoFile } from '../start/state.ts'
import { startInstallation } from './installation.ts'
import { type Screen, SCREENS, type Shown, type Viewer } from './pages.ts'
import { addWebhooks } from './receiver.ts'

const DOCS = fileURLToPath(new URL('../../docs/screenshots', import.meta.url))
const HEIGHT = 900
const WIDE = { width: 1440, height: HEIGHT }
const PHONE = { width: 390, height: 844 }
const THEMES = ['light', 'dark'] as const
type Theme = (typeof THEMES)[number]
/** The time in which the names of the rows of a list arrive. */
const NAMES_MS = 500
/** The index of a planned license that has no free slot, and whose checks by another machine are rejected. */
const OVERUSED = 11

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { all: { type: 'string' } } })
  const { demo, signIn, stop } = await startInstallation()
  const added = await addWebhooks(demo).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  const executablePath = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium'
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--font-render-hinting=none'] })
  try {
    const options = { viewport: WIDE, locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce' } as const
    const open = async () => (await browser.newContext(options)).newPage()
    const pages = { member: await open(), operator: await open(), visitor: await open() }
    await signInMember(pages.member, signIn)
    await signInOperator(pages.operator, new URL(signIn).origin, demo.operatorToken)
    const camera = new Camera(pages, new URL(signIn).origin, { ...(await findShown(demo)), ...added })
    if (values.all === undefined) await takeDocs(camera)
    else await takeAll(camera, resolve(process.env['INIT_CWD'] ?? '.', values.all))
  } finally {
    await browser.close()
    added.close()
    await stop()
  }
}

async function signInMember(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.getByRole('button', { name: 'Accept the invitation' }).click()
  // The pictures show a set-up organization.
  await page.getByRole('button', { name: 'Hide' }).click()
}

async function signInOperator(page: Page, origin: string, token: string): Promise<void> {
  await page.goto(`${origin}/console`)
  await page.getByRole('button', { name: 'Use a token' }).click()
  await page.getByLabel('Personal access token or operator token').fill(token)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Organizations' }).waitFor()
}

class Camera {
  readonly #pages: Readonly<Record<Viewer, Page>>
  readonly #origin: string
  readonly #shown: Shown

  constructor(pages: Readonly<Record<Viewer, Page>>, origin: string, shown: Shown) {
    this.#pages = pages
    this.#origin = origin
    this.#shown = shown
  }

  async take(screen: Screen, theme: Theme, path: string, size = WIDE): Promise<void> {
    const page = this.#pages[screen.viewer ?? 'member']
    await page.setViewportSize(size)
    await page.emulateMedia({ colorScheme: theme })
    // Without this step, an address that differs only in its fragment would not load the page.
    await page.goto('about:blank')
    await page.goto(`${this.#origin}/console${screen.path(this.#shown)}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    await screen.prepare?.(page, this.#shown)
    await page.waitForLoadState('networkidle')
    // A tab that is not shown may contain a list that never loads.
    await page.locator('.mantine-Loader-root:visible, [aria-busy=true]:visible').first().waitFor({ state: 'detached' })
    // A list requests the names of its rows after its first response.
    await page.waitForTimeout(NAMES_MS)
    await page.screenshot({ path, animations: 'disabled', caret: 'hide' })
    process.stdout.write(`${path}\n`)
  }
}

async function takeDocs(camera: Camera): Promise<void> {
  await mkdir(DOCS, { recursive: true })
  const shown = SCREENS.filter(({ isInDocs }) => isInDocs === true)
  for (const screen of shown) await camera.take(screen, 'light', join(DOCS, `${screen.name}.png`))
  const overview = shown[0]!
  await camera.take(overview, 'dark', join(DOCS, `${overview.name}-dark.png`))
  await camera.take(overview, 'dark', join(DOCS, `${overview.name}-phone.png`), PHONE)
}

async function takeAll(camera: Camera, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const theme of THEMES)
    for (const width of [WIDE.width, PHONE.width])
      for (const screen of SCREENS)
        await camera.take(screen, theme, join(folder, `${screen.name}-${theme}-${width}.png`), {
          width,
          height: HEIGHT,
        })
}

/** Returns the ids of the objects to show. The plan of the demo data contains their keys and machine ids. */
async function findShown({ managementUrl, managementToken }: DemoFile) {
  const { key } = planDemoData(0).licenses[OVERUSED]!
  const response = await fetch(`${managementUrl}/api/v1/licenses?key=${key}`, {
    headers: { authorization: `Bearer ${managementToken}` },
  })
  const list = z.object({
    data: z.array(z.object({ id: z.string(), customerId: z.string(), productId: z.string() })).length(1),
  })
  const { id, customerId, productId } = list.parse(await response.json()).data[0]!
  return { overused: id, rejectedMachine: `MAC-EXTRA-${OVERUSED}`, customer: customerId, product: productId }
}

await main()

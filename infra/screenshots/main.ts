/**
 * `npm run screenshots`: takes the pictures of the console in docs/screenshots from the demo data. With `--all FOLDER`, it takes pictures of
 * every screen in both themes and two widths, and writes them to the folder.
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
import { type Screen, SCREENS, type Shown } from './pages.ts'

const DOCS = fileURLToPath(new URL('../../docs/screenshots', import.meta.url))
const HEIGHT = 900
const WIDE = { width: 1440, height: HEIGHT }
const THEMES = ['light', 'dark'] as const
type Theme = (typeof THEMES)[number]
/** The index of a license in the plan that has no free slot, and whose checks on another machine are rejected. */
const OVERUSED = 11

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { all: { type: 'string' } } })
  const { demo, signIn, stop } = await startInstallation()
  const executablePath = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium'
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--font-render-hinting=none'] })
  try {
    const options = { viewport: WIDE, locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce' } as const
    const page = await (await browser.newContext(options)).newPage()
    await page.goto(signIn)
    await page.getByRole('button', { name: 'Accept the invitation' }).click()
    await page.getByRole('heading', { name: 'Your account' }).waitFor()
    const camera = new Camera(page, new URL(signIn).origin, await findShown(demo))
    if (values.all === undefined) await takeDocs(camera)
    else await takeAll(camera, resolve(process.env['INIT_CWD'] ?? '.', values.all))
  } finally {
    await browser.close()
    await stop()
  }
}

class Camera {
  readonly #page: Page
  readonly #origin: string
  readonly #shown: Shown

  constructor(page: Page, origin: string, shown: Shown) {
    this.#page = page
    this.#origin = origin
    this.#shown = shown
  }

  async take(screen: Screen, theme: Theme, path: string, size = WIDE): Promise<void> {
    const page = this.#page
    await page.setViewportSize(size)
    await page.emulateMedia({ colorScheme: theme })
    await page.goto(`${this.#origin}/console${screen.path(this.#shown)}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    await screen.prepare?.(page, this.#shown)
    await page.waitForLoadState('networkidle')
    await page.locator('.mantine-Loader-root').waitFor({ state: 'detached' })
    await page.screenshot({ path, animations: 'disabled', caret: 'hide' })
    process.stdout.write(`${path}\n`)
  }
}

async function takeDocs(camera: Camera): Promise<void> {
  await mkdir(DOCS, { recursive: true })
  for (const screen of SCREENS.filter(({ isInDocs }) => isInDocs === true))
    await camera.take(screen, 'light', join(DOCS, `${screen.name}.png`))
  await camera.take(SCREENS[0]!, 'dark', join(DOCS, `${SCREENS[0]!.name}-dark.png`))
}

async function takeAll(camera: Camera, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const theme of THEMES)
    for (const width of [WIDE.width, 390])
      for (const screen of SCREENS)
        await camera.take(screen, theme, join(folder, `${screen.name}-${theme}-${width}.png`), {
          width,
          height: HEIGHT,
        })
}

/** Returns the ids of the shown objects. Their keys and machine ids are part of the plan. */
async function findShown({ managementUrl, managementToken }: DemoFile): Promise<Shown> {
  const { key } = planDemoData(0).licenses[OVERUSED]!
  const response = await fetch(`${managementUrl}/api/v1/licenses?key=${key}`, {
    headers: { authorization: `Bearer ${managementToken}` },
  })
  const list = z.object({ data: z.array(z.object({ id: z.string(), customerId: z.string() })).length(1) })
  const { id, customerId } = list.parse(await response.json()).data[0]!
  return { overused: id, rejectedMachine: `MAC-EXTRA-${OVERUSED}`, customer: customerId }
}

await main()

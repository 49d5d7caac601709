/** The browser of the tests. Imported as `@keyward/testkit/browser`, because few tests need it and it loads slowly. */

import { existsSync } from 'node:fs'

import { type Browser, chromium } from 'playwright-core'

/** The headless shell is Chromium without its own windows, and needs half of the time. */
const PATHS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium']
const executablePath = process.env['CHROMIUM_PATH'] ?? PATHS.find((path) => existsSync(path))

export const hasBrowser = executablePath !== undefined && existsSync(executablePath)
/** The reason in the names of tests that are skipped. */
export const WITHOUT_BROWSER = 'skipped without Chromium'

/** Optimized code of pages that are open for seconds costs more than it saves: an accessibility check needs a quarter less CPU time without it. */
const WITHOUT_OPTIMIZATION = '--js-flags=--no-opt --no-maglev'

/** Starts the browser. Its sandbox is disabled, because tests may run as root. It opens only pages of the tests. */
export function launchBrowser(): Promise<Browser> {
  if (executablePath === undefined) throw new Error(`none of ${PATHS.join(', ')} exists`)
  return chromium.launch({ executablePath, args: ['--no-sandbox', WITHOUT_OPTIMIZATION] })
}

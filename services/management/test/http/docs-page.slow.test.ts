/** The documentation page in a browser: it renders, a request sent from it succeeds, and it loads nothing from another host. */

import { existsSync } from 'node:fs'

import { chromium } from 'playwright-core'
import { expect, test } from 'vitest'

import { startHarness } from '../support/harness.ts'
import { createVendor } from '../support/vendor.ts'

const executablePath = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium'

test.skipIf(!existsSync(executablePath))(
  `a call can be made from /docs (skipped without ${executablePath})`,
  { timeout: 60_000 },
  async () => {
    const harness = await startHarness()
    const vendor = await createVendor(harness, 'LITE', 'Acme in the browser')
    // Without a sandbox, because tests may run as root. The browser opens only this page.
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
    try {
      const page = await browser.newPage()
      const asked: string[] = []
      const complaints: string[] = []
      page.on('request', (request) => asked.push(request.url()))
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
      page.on('pageerror', (error) => complaints.push(error.message))
      await page.goto(`${harness.origin}/docs`)
      await page.locator('.authorize').first().click()
      await page.locator('.auth-container input').fill(vendor.managementToken)
      await page.locator('.auth-container button.authorize').click()
      await page.locator('.auth-btn-wrapper button.btn-done').click()
      const operation = page.locator('#operations-Organizations-readOwnOrganization')
      await operation.locator('.opblock-summary-control').click()
      await operation.locator('button.execute').click()
      const response = operation.locator('.live-responses-table tbody .response-col_description')
      await response.getByText('Acme in the browser').first().waitFor()
      expect(await response.first().innerText()).toContain('"limit": 500')
      expect(asked.filter((url) => !url.startsWith(harness.origin) && !url.startsWith('data:'))).toEqual([])
      expect(asked).toContain(`${harness.origin}/api/v1/organization`)
      expect(complaints).toEqual([])
    } finally {
      await browser.close()
      await harness.close()
    }
  },
)

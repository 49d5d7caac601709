/**
 * Tests in a browser that the documentation page renders, that its offered requests succeed, and that it loads nothing from another host.
 */

import { hasBrowser, launchBrowser, WITHOUT_BROWSER } from '@keyward/testkit/browser'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'

import { startHarness } from '../support/harness.ts'
import { createVendor } from '../support/vendor.ts'

/** Opens an operation that is in view, enters the token, and sends the request as it is offered. */
async function sendAsOffered(page: Page, method: string, path: string, token: string) {
  const name = new RegExp(`^Test Request\\s*\\(${method} ${path}\\)$`)
  await page.getByRole('button', { name }).first().click()
  const client = page.getByRole('dialog')
  await client.getByPlaceholder('Token').fill(token)
  const received = page.waitForResponse((response) => response.url().includes('/api/'))
  await client.getByRole('button', { name: /^Send/ }).first().click()
  const response = await received
  await client.getByRole('button', { name: 'Close Client' }).click()
  return { status: response.status(), query: new URL(response.url()).search, body: await response.text() }
}

test.skipIf(!hasBrowser)(
  `the offered requests of /docs succeed in a browser (${WITHOUT_BROWSER})`,
  { timeout: 60_000 },
  async () => {
    const harness = await startHarness()
    const vendor = await createVendor(harness, 'LITE', 'Acme in the browser')
    const browser = await launchBrowser()
    try {
      const page = await browser.newPage()
      const requested: string[] = []
      const complaints: string[] = []
      page.on('request', (request) => requested.push(request.url()))
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
      page.on('pageerror', (error) => complaints.push(error.message))
      await page.goto(`${harness.origin}/docs#tag/products/GET/api/v1/products`)
      const created = await sendAsOffered(page, 'post', '/api/v1/products', vendor.managementToken)
      expect(created.status).toBe(201)
      const list = await sendAsOffered(page, 'get', '/api/v1/products', vendor.managementToken)
      expect([list.status, list.query, list.body]).toEqual([200, '?limit=50', expect.stringContaining('Acme Studio')])
      await page.goto(`${harness.origin}/docs#tag/webhooks/webhook/POST/event`)
      await page.getByText('Receive an event').first().waitFor({ state: 'attached' })
      await page.getByText('license.created').first().waitFor({ state: 'attached' })
      expect(requested.filter((url) => !url.startsWith(harness.origin) && !url.startsWith('data:'))).toEqual([])
      expect(complaints).toEqual([])
    } finally {
      await browser.close()
      await harness.close()
    }
  },
)

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

import { type Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { OPERATOR_TOKEN } from '../faults/support/children.ts'
import { created, type Stage } from './stage.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const violations = z.array(z.object({ id: z.string(), nodes: z.array(z.object({ html: z.string() })) }))
const references = z.object({ customerId: z.string(), productId: z.string() })
const TIMEOUT_MS = 240_000
/**
 * Runs axe on the open dialog, or on the whole screen if no dialog is open. A dialog makes the screen behind it inert. The
 * themes differ only in colors, so rules that do not concern colors run only in light mode. A toast that fades has no colors of its own.
 */
const run = (options: object) => `axe.run({
  include: [document.querySelector('[role=dialog]') ?? document],
  exclude: ['.mantine-Notification-root[style*="opacity: 0"]'],
}, ${JSON.stringify(options)}).then(({ violations }) => violations)`
const THEMES = { light: run({}), dark: run({ runOnly: ['color-contrast', 'link-in-text-block'] }) } as const

/** Returns the violations on the current screen, in both themes. */
export async function violationsOf(page: Page): Promise<string[]> {
  const found: string[] = []
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.evaluate(axe)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const result = violations.parse(await page.evaluate(THEMES[colorScheme]))
    for (const { id, nodes } of result) found.push(`${colorScheme}: ${id} ${nodes[0]?.html.slice(0, 160)}`)
  }
  return found
}

/** Returns the violations on the screens with these paths, in both themes. */
async function violationsOn(page: Page, origin: string, paths: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const path of paths) {
    await page.goto(`${origin}/console${path}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.locator('.mantine-Loader-root, [aria-busy=true]').first().waitFor({ state: 'detached' })
    found.push(...(await violationsOf(page)).map((one) => `${path} ${one}`))
  }
  return found
}

export function accessibilityTests(open: () => Stage): void {
  describe('accessibility in light and dark mode', { timeout: TIMEOUT_MS }, () => {
    let licenseId = ''
    let customerId = ''
    let productId = ''
    let endpointId = ''
    let deliveryId = ''

    beforeAll(async () => {
      const stage = open()
      licenseId = await stage.addLicense('AXE0-0000-0000-0001')
      await stage.check('AXE0-0000-0000-0001', 'm')
      ;({ customerId, productId } = await stage.read(`/licenses/${licenseId}`, references))
      const set = { rules: [{ kind: 'BLACKLIST', type: 'IP', value: '192.0.2.200', scope: 'ORGANIZATION' }] }
      await stage.api('/access-rules/sets/axe', set, z.object({ version: z.string() }), 'PUT')
      const endpoint = { url: 'https://127.0.0.1:1/hook', types: ['*'], description: 'Closed port' }
      endpointId = (await stage.api('/webhook-endpoints', endpoint, created)).id
      deliveryId = (await stage.api(`/webhook-endpoints/${endpointId}/test`, {}, created)).id
    }, TIMEOUT_MS)

    const screens: Record<string, () => string[]> = {
      'licenses, customers and products': () => [
        '',
        '/licenses',
        '/licenses/new',
        '/licenses/import',
        `/licenses/${licenseId}`,
        '/customers',
        `/customers/${customerId}`,
        `/customers/${customerId}/merge`,
        '/products',
        `/products/${productId}`,
      ],
      'access rules and decisions': () => [
        '/rules',
        '/rules/new',
        '/rules/import',
        '/rules/sets',
        '/rules/set?name=axe',
        '/rules/set/replace?name=feed',
        '/why',
        '/alerts',
        '/activity',
        '/audit',
      ],
      'webhooks, people and credentials': () => [
        '/webhooks',
        '/mails',
        '/webhooks/events',
        `/webhooks/${endpointId}`,
        `/webhooks/${endpointId}?delivery=${deliveryId}`,
        '/integrate',
        '/team',
        '/settings',
        '/credentials',
        '/account',
      ],
    }
    for (const [name, paths] of Object.entries(screens))
      test(`has no violation on the screens for ${name}`, async () => {
        const stage = open()
        expect(await violationsOn(stage.page, stage.origin, paths())).toEqual([])
      })

    test('has no violation on the screens of the operator, and on the sign-in screen', async () => {
      const stage = open()
      const context = await stage.browser.newContext()
      const page = await context.newPage()
      expect(await violationsOn(page, stage.origin, [''])).toEqual([])
      await page.getByRole('button', { name: 'Use a token' }).click()
      await page.getByLabel('Personal access token or operator token').fill(OPERATOR_TOKEN)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByRole('heading', { name: 'Organizations' }).waitFor()
      expect(await violationsOn(page, stage.origin, ['/organizations', '/validators'])).toEqual([])
      await context.close()
    })
  })
}

/** Tests the portal in a real browser against the real services, as a customer uses it. */

import { insertMachine } from '@keyward/testkit'
import { hasBrowser, WITHOUT_BROWSER } from '@keyward/testkit/browser'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

import { violationsOf } from './accessibility.ts'
import { created, openStage, type Stage } from './stage.ts'

const link = z.object({ url: z.string() })
const both = ['release', 'files']

describe.skipIf(!hasBrowser)(`the portal (${WITHOUT_BROWSER})`, { timeout: 120_000 }, () => {
  let stage: Stage
  let productId: string

  beforeAll(async () => {
    stage = await openStage()
    productId = (await stage.api('/products', { name: 'Aria Mastering' }, created)).id
  })
  afterAll(() => stage.close())

  const customer = async () => (await stage.api('/customers', { email: 'luca@example.com' }, created)).id
  const license = (customerId: string, policy: object = {}) =>
    stage.api(
      '/licenses',
      { productId, customerId, policy: { type: 'PERPETUAL', maxMachines: 3, maxReleases: 2, ...policy } },
      created,
    )
  const machine = (licenseId: string, hostname: string) =>
    insertMachine(stage.database.pool, { licenseId, machineId: hostname, hostname })
  const urlFor = async (customerId: string, fields: object = {}) =>
    (await stage.api('/portal-sessions', { customerId, actions: both, ...fields }, link)).url.replace(
      /^http:\/\/[^/]+/,
      stage.origin,
    )

  /** Opens the address in a browser without a session. */
  async function visit(url: string, width = 1440): Promise<Page> {
    const context = await stage.browser.newContext({ viewport: { width, height: 900 }, acceptDownloads: true })
    onTestFinished(() => context.close())
    const page = await context.newPage()
    await page.goto(url)
    await page.getByRole('heading', { level: 1 }).waitFor()
    return page
  }
  const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
  const focused = (page: Page) =>
    page.evaluate<string | null>("document.activeElement?.getAttribute('aria-label') ?? null")
  const widthOf = (page: Page) => page.evaluate<number>('document.documentElement.scrollWidth')

  test('frees a slot with the keyboard alone, on a phone too', async () => {
    const owner = await customer()
    const { id } = await license(owner)
    await machine(id, 'old laptop')
    await machine(id, 'studio-25')
    const page = await visit(await urlFor(owner, { returnUrl: 'https://example.com/account' }), 360)
    await heading(page, 'Aria Mastering')
    expect(new URL(page.url()).hash).toBe('')
    expect(await page.title()).toBe('Your licenses, Acme')
    expect(await widthOf(page)).toBeLessThanOrEqual(360)
    await page.getByText('2 of 3 in use').waitFor()
    for (let presses = 0; presses < 20; presses++) {
      if ((await focused(page)) === 'Free the slot of old laptop') break
      await page.keyboard.press('Tab')
    }
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Free this slot?' }).waitFor()
    await page.keyboard.press('Escape')
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(await focused(page)).toBe('Free the slot of old laptop')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    expect(await violationsOf(page)).toEqual([])
    await page.keyboard.press('Enter')
    await page.getByText('The slot of old laptop is free.').waitFor()
    await page.getByText('1 of 3 in use').waitFor()
    await page.getByText('You can free 1 slot now.').waitFor()
    await page.reload()
    await page.getByText('1 of 3 in use').waitFor()
  })

  test('opens a link once, and says what to do with one that was used or has expired', async () => {
    const owner = await customer()
    const url = await urlFor(owner)
    await fetch(url)
    const page = await visit(url)
    await page.getByText('There are no licenses for luca@example.com.').waitFor()
    const second = await visit(url)
    await heading(second, 'This link does not work any more')
    expect(await violationsOf(second)).toEqual([])
    const late = await urlFor(owner)
    await stage.database.pool.query('update portal_sessions set expires_at = now() where opened_at is null')
    await heading(await visit(late), 'This link does not work any more')
    await heading(await visit(`${stage.origin}/portal`), 'Your session has ended')
    await page.getByRole('button', { name: 'Leave' }).click()
    await heading(page, 'Your session has ended')
    await page.reload()
    await heading(page, 'Your session has ended')
  })

  test('opens a link with the prefix "confirm." only after a click', async () => {
    const url = (await urlFor(await customer())).replace('#', '#confirm.')
    const page = await visit(url)
    await page.getByRole('button', { name: 'Open your licenses' }).click()
    await page.getByText('There are no licenses').waitFor()
    expect(new URL(page.url()).hash).toBe('')
  })

  test.each(['light', 'dark'] as const)('requests a link by mail, in %s colors', async (colorScheme) => {
    const url = `${stage.origin}/portal?organization=${productId}`
    for (const width of [360, 1440]) {
      const page = await visit(url, width)
      await page.emulateMedia({ colorScheme })
      await heading(page, 'Your licenses')
      await page.getByLabel('E-mail address').fill('luca@example.com')
      await page.keyboard.press('Enter')
      await page.getByText('If a customer has this address, a mail with a link is on its way.').waitFor()
      expect(await widthOf(page)).toBeLessThanOrEqual(width)
      expect(await violationsOf(page)).toEqual([])
    }
    const used = `${url}#confirm.kwl_0123456789abcdefghijABCDEFGHIJ2Xk9Qa`
    const page = await visit(used)
    await page.getByRole('button', { name: 'Open your licenses' }).click()
    await heading(page, 'This link does not work any more')
    await page.getByRole('button', { name: 'Send a link' }).waitFor()
  })

  test('shows a key on request, and the actions of the link', async () => {
    const owner = await customer()
    const { id } = await license(owner)
    await machine(id, 'laptop')
    const page = await visit(await urlFor(owner, { actions: [] }))
    await page.getByText('To free a slot, write to Acme.').waitFor()
    const key = (await stage.read(`/licenses/${id}`, z.object({ key: z.string() }))).key
    expect(await page.getByText(key).count()).toBe(0)
    await page.getByRole('button', { name: 'Show the key of Aria Mastering' }).click()
    await page.getByText(key).waitFor()
    for (const name of [/^Free/, /^Offline/]) expect(await page.getByRole('button', { name }).count()).toBe(0)
    const preview = await visit(await urlFor(owner, { preview: true }))
    await preview.getByText('This is a preview.').waitFor()
    expect(await preview.getByRole('button', { name: /^Free/ }).isDisabled()).toBe(true)
    expect(await violationsOf(preview)).toEqual([])
  })

  test('keeps the page when the network or the session ends', async () => {
    const owner = await customer()
    const { id } = await license(owner)
    await machine(id, 'laptop')
    const page = await visit(await urlFor(owner))
    const free = async () => {
      await page.getByRole('button', { name: 'Free the slot of laptop' }).click()
      await page.getByRole('button', { name: 'Free the slot', exact: true }).click()
    }
    await page.context().setOffline(true)
    await free()
    await page.getByText('The connection is lost.').waitFor()
    expect(await violationsOf(page)).toEqual([])
    await page.context().setOffline(false)
    await stage.remove(`/customers/${owner}/portal-sessions`)
    await free()
    await heading(page, 'Your session has ended')
  })

  test('opens from the page of a customer, as a link and as a preview', async () => {
    const owner = await customer()
    await stage.open(`/customers/${owner}`)
    await stage.act('Copy portal link')
    const url = await stage
      .dialog()
      .getByText(/\/portal#kwl_/)
      .innerText()
    await (await visit(url)).getByText('There are no licenses').waitFor()
    await stage.button('Done').click()
    const [preview] = await Promise.all([stage.context.waitForEvent('page'), stage.act('View as the customer sees it')])
    await preview.getByText('This is a preview.').waitFor()
    expect(new URL(preview.url()).hash).toBe('')
    await preview.close()
  })

  test('shows 500 licenses in pages, in every color of a vendor', async () => {
    const owner = await customer()
    const licenses = Array.from({ length: 500 }, () => ({
      productId,
      customerId: owner,
      policy: { type: 'TRIAL', durationDays: 14, maxMachines: 1 },
    }))
    await stage.api('/licenses/import', { licenses }, z.looseObject({}))
    for (const accentColor of ['#ffee00', '#000000', '#1d4ed8']) {
      await stage.api('/organization', { accentColor }, z.looseObject({}), 'PATCH')
      const page = await visit(await urlFor(owner, { returnUrl: 'https://example.com/' }))
      await page.getByRole('article').nth(19).waitFor()
      expect(await violationsOf(page)).toEqual([])
      await page.getByRole('button', { name: 'Show more licenses' }).click()
      await page.getByText('40 licenses are shown.').waitFor()
    }
  })
})

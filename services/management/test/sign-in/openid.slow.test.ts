/** Tests the sign-in with OpenID Connect in a real browser, and with a provider that does not respond (docs/api.md#a7). */

import { invitation as invitationSchema } from '@keyward/contract/management/sign-in'
import { hasBrowser, launchBrowser, WITHOUT_BROWSER } from '@keyward/testkit/browser'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { Harness } from '../support/harness.ts'
import type { TestIdentityProvider } from '../support/identity-provider.ts'
import { type OpenidWorld, startOpenidWorld, TestBrowser } from '../support/openid.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let world: OpenidWorld
let provider: TestIdentityProvider
let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  world = await startOpenidWorld()
  ;({ provider, harness, vendor } = world)
})
afterAll(() => world.close())

describe.skipIf(!hasBrowser)(`in a browser (${WITHOUT_BROWSER})`, { timeout: 60_000 }, () => {
  let browser: Browser
  let page: Page
  let origin: string

  beforeAll(async () => {
    // The host name differs from that of the provider, so the redirect comes from another site.
    origin = harness.origin.replace('127.0.0.1', 'localhost')
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())

  async function openPage(path: string): Promise<void> {
    page = await (await browser.newContext()).newPage()
    await page.goto(`${origin}/console${path}`)
  }
  const signIn = () => page.getByRole('button', { name: 'Sign in with Example' }).click()
  const heading = (name: string) => page.getByRole('heading', { name, level: 1 }).waitFor()

  test('the sign-in returns to the screen, and keeps no code in the address or the history', async () => {
    const { email } = await world.addMember()
    const { length } = provider.codes
    await openPage('/team?q=a')
    await signIn()
    await heading('Team')
    expect(new URL(page.url()).search).toBe('?q=a')
    expect(provider.codes).toHaveLength(length + 1)
    const devtools = await page.context().newCDPSession(page)
    const { entries } = await devtools.send('Page.getNavigationHistory')
    const history = entries.map(({ url }) => url).join(' ')
    expect(history).toContain('/console/team')
    expect(history).not.toContain('code=')
    await page.reload()
    await page.getByRole('button', { name: email }).waitFor()
    const cookies = await page.context().cookies(`${origin}/api/v1`)
    const session = cookies.find(({ name }) => name === 'keyward_session')
    expect(session).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    await page.context().close()
  })

  test('the screen offers the organizations of the person', async () => {
    const second = await createVendor(harness, 'STANDARD', '<b>Second</b> vendor')
    const { email } = await world.addMember()
    await world.addMember(second, email)
    await openPage('')
    await signIn()
    await heading('Choose an organization')
    await page.getByRole('button', { name: '<b>Second</b> vendor' }).click()
    await page.getByRole('button', { name: email }).click()
    await page.getByText('<b>Second</b> vendor').waitFor()
    expect(new URL(page.url()).pathname).not.toContain('sign-in')
    await page.context().close()
  })

  test('the screen shows why a person cannot sign in, and offers the other methods', async () => {
    provider.person = { sub: 'nobody', email: 'nobody@example.com', email_verified: true }
    await openPage('')
    await signIn()
    await page.getByText('"nobody@example.com" is not a member of an organization here.').waitFor()
    await page.getByRole('button', { name: 'Use a token' }).click()
    await page.getByLabel('Personal access token').waitFor()
    expect(new URL(page.url()).search).toBe('')
    await page.context().close()
  })

  test('a link with the response of another person signs nobody in', async () => {
    await world.addMember()
    const response = await new TestBrowser(harness).respond()
    await openPage(`/sign-in?${response}`)
    await page.getByText('This browser has not begun to sign in with OpenID Connect').waitFor()
    expect(await page.context().cookies(`${origin}/api/v1`)).toEqual([])
    await page.context().close()
  })
})

test('a provider that does not respond leaves other sign-ins and requests unaffected', async () => {
  const { id } = await world.addMember()
  const browsers = Array.from({ length: 4 }, () => new TestBrowser(harness))
  const responses = await Promise.all(browsers.map((browser) => browser.respond()))
  provider.hangingPath = '/token'
  const received = Promise.all(browsers.map((browser, i) => browser.identify(responses[i]!)))
  for (let i = 0; i < 5; i++) {
    const { secret } = expectBody(await vendor.call('POST', `members/${id}/invitation`), 200, invitationSchema)
    const signedIn = await harness.call('POST', 'sessions', { token: null, body: { invitation: secret } })
    expect(signedIn.status).toBe(201)
    expect((await vendor.call('GET', 'licenses')).status).toBe(200)
  }
  expect(new Set((await received).map(outcome))).toEqual(new Set(['503 UNAVAILABLE']))
})

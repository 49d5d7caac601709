/** Tests tasks of members in a real browser against the real services. No screen may have an accessibility violation. */

import { readFileSync } from 'node:fs'

import { hasBrowser, WITHOUT_BROWSER } from '@keyward/testkit/browser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { accessibilityTests, violationsOf } from './accessibility.ts'
import { auditTests } from './audit.ts'
import { callTests, productSearchTests } from './calls.ts'
import { conflictTests } from './conflicts.ts'
import { jobTests } from './jobs.ts'
import { keyboardTests } from './keyboard.ts'
import { licenseTests } from './licenses.ts'
import { mailTests } from './mails.ts'
import { offlineTests } from './offline.ts'
import { operatorTests } from './operator.ts'
import { overviewTests } from './overview.ts'
import { ruleTests } from './rules.ts'
import { searchTests } from './search.ts'
import { sessionTests } from './sessions.ts'
import { shopTests } from './shops.ts'
import { created, openStage, type Stage } from './stage.ts'
import { templateTests } from './templates.ts'
import { undoTests } from './undo.ts'
import { webhookTests } from './webhooks.ts'

describe.skipIf(!hasBrowser)(`the console (${WITHOUT_BROWSER})`, { timeout: 120_000 }, () => {
  let stage: Stage

  beforeAll(async () => {
    stage = await openStage()
  })

  afterAll(() => stage.close())

  licenseTests(() => stage)
  jobTests(() => stage)
  templateTests(() => stage)
  shopTests(() => stage)
  mailTests(() => stage)
  searchTests(() => stage)
  overviewTests(() => stage)
  offlineTests(() => stage)

  test('shows the reason for a rejection and creates an exclusion for the machine', async () => {
    const id = await stage.addLicense('WHY0-0000-0000-0001')
    expect(await stage.check('WHY0-0000-0000-0001', 'first')).toBe('VALID')
    expect(await stage.check('WHY0-0000-0000-0001', 'second')).toBe('TOO_MANY_MACHINES')
    await stage.open(`/why?license=${id}`)
    await stage.field('Machine id').fill('second')
    await stage.button('Decide').click()
    await stage.page.getByText('Every slot is taken by another machine.').waitFor()
    await stage.page.getByText(/^The key belongs to a license of Product of WHY0.* for ada@example.com\.$/).waitFor()
    const steps = await stage.page
      .getByRole('list', { name: 'The decision step by step' })
      .locator('> li')
      .allInnerTexts()
    expect(steps.map((step) => step.split('\n').at(-1))).toEqual([
      'The key belongs to a license of Product of WHY0-0000-0000-0001 for ada@example.com.',
      'No rule matches.',
      'No rule matches.',
      'No rule matches.',
      'The license is neither suspended nor revoked.',
      'The license never ends.',
      'The only slot is taken by another machine. Release it, or allow more machines.',
    ])
    expect(await violationsOf(stage.page)).toEqual([])
    for (const width of [1440, 390]) {
      await stage.page.setViewportSize({ width, height: 900 })
      for (const step of await stage.page.locator('.step').all()) {
        const [row, icon, title] = await Promise.all(
          [step, step.locator('svg'), step.locator('.step-title')].map((one) => one.boundingBox()),
        )
        if (!row || !icon || !title) throw new Error('A step is not shown.')
        expect(icon.x).toBeGreaterThanOrEqual(row.x)
        expect(icon.x + icon.width).toBeLessThan(title.x)
      }
    }
    await stage.page.setViewportSize({ width: 1440, height: 900 })
    await stage.button('Let through').click()
    await stage.page.getByRole('menuitem', { name: 'For 7 days' }).click()
    await stage.page.getByText(/An exclusion lets it through/).waitFor()
    expect(await stage.check('WHY0-0000-0000-0001', 'second')).toBe('VALID')
  })

  test('decides a check from a country that is chosen by its name, and refuses a range as the address', async () => {
    const id = await stage.addLicense('WHY0-0000-0000-0002')
    const rule = { kind: 'BLACKLIST', type: 'COUNTRY', value: 'CH', scope: 'LICENSE', scopeId: id }
    await stage.api('/access-rules', rule, created)
    await stage.open(`/why?license=${id}`)
    await stage.field('Machine id').fill('laptop')
    const country = stage.page.getByRole('combobox', { name: 'Country' })
    await country.fill('no such country')
    await stage.page.keyboard.press('Enter')
    await country.fill('switz')
    await stage.page.locator('[role=option][data-combobox-selected=true]').waitFor()
    await stage.page.keyboard.press('Enter')
    await stage.page.getByRole('option', { name: 'Switzerland (CH)' }).waitFor({ state: 'hidden' })
    expect(await country.inputValue()).toBe('Switzerland (CH)')
    // Neither press of Enter submits the form.
    expect(await stage.page.getByRole('status', { name: 'Decision' }).count()).toBe(0)
    await stage.button('Decide').click()
    await stage.page.getByRole('heading', { name: 'A blacklist rejects the check.' }).waitFor()
    await stage.field('Address').fill('203.0.113.0/24')
    await stage.button('Decide').click()
    await stage.page.getByText('must be an IPv4 or IPv6 address', { exact: false }).waitFor()
  })

  test('releases a slot', async () => {
    const id = await stage.addLicense('SLOT-0000-0000-0001')
    expect(await stage.check('SLOT-0000-0000-0001', 'old laptop')).toBe('VALID')
    await stage.open(`/licenses/${id}`)
    await stage.button('Free').click()
    await stage.done('Freed the slot.')
    expect(await stage.check('SLOT-0000-0000-0001', 'new laptop')).toBe('VALID')
  })

  test('suspends and reinstates a license and replaces its key', async () => {
    const id = await stage.addLicense('KEY0-0000-0000-0001')
    await stage.open(`/licenses/${id}`)
    await stage.act('Suspend')
    await stage.dialog().getByRole('textbox', { name: 'Reason' }).fill('Chargeback of A-1001')
    await stage.page.keyboard.press('Enter')
    await stage.page.getByText('Suspended', { exact: true }).waitFor()
    const audit = z.object({ data: z.array(z.looseObject({})) })
    const { data: entries } = await stage.read(`/audit-log?resourceId=${id}`, audit)
    expect(JSON.stringify(entries)).toContain('Chargeback of A-1001')
    expect(await stage.check('KEY0-0000-0000-0001', 'm')).toBe('SUSPENDED')
    await stage.button('Undo').click()
    await stage.page.getByText('Active', { exact: true }).waitFor()
    expect(await stage.check('KEY0-0000-0000-0001', 'm')).toBe('VALID')
    await stage.act('Replace the key')
    await stage.dialog().getByText('KEY0-0000-0000-0001').waitFor()
    await stage.dialog().getByRole('button', { name: 'Replace the key' }).click()
    await stage.done('Replaced the license key. Live on 1 of 1 validator.')
    expect(await stage.check('KEY0-0000-0000-0001', 'm')).toBe('NOT_FOUND')
  })

  test('downloads an offline license file', async () => {
    const id = await stage.addLicense('FILE-0000-0000-0001')
    await stage.open(`/licenses/${id}`)
    const [download] = await Promise.all([stage.page.waitForEvent('download'), stage.button('Offline file').click()])
    const payload = readFileSync(await download.path(), 'utf8').split('.')[0] ?? ''
    expect(Buffer.from(payload, 'base64url').toString()).toContain('FILE-0000-0000-0001')
  })

  test('invites a member who can only read', async () => {
    await stage.open('/team')
    await stage.button('Invite a member').first().click()
    await stage.dialog().getByRole('textbox', { name: 'E-mail' }).fill('reader@example.com')
    await stage.dialog().getByRole('button', { name: 'Invite a member' }).click()
    const link = await stage.page.getByText(/\/console\/invitation#kwi_/).textContent()
    const other = await stage.browser.newContext()
    const visitor = await other.newPage()
    await visitor.goto(link ?? '')
    await visitor.getByRole('button', { name: 'Accept the invitation' }).click()
    await visitor.getByRole('link', { name: 'Licenses' }).click()
    await visitor.getByRole('heading', { name: 'Licenses' }).waitFor()
    expect(await visitor.getByRole('link', { name: 'API keys' }).count()).toBe(0)
    await other.close()
  })

  test('shows HTML in the e-mail address of a customer as text', async () => {
    const id = await stage.addLicense('TEXT-0000-0000-0001', '"<img/src=x/onerror=alert(1)>"@example.com')
    await stage.open(`/licenses/${id}`)
    await stage.page.locator('main').getByText('<img/src=x/onerror=alert(1)>').first().waitFor()
    expect(await stage.page.locator('main img').count()).toBe(0)
  })

  test('shows that a restriction decides a check and a monitored rule does not', async () => {
    const id = await stage.addLicense('RULE-0000-0000-0001')
    const scope = { scope: 'LICENSE', scopeId: id }
    const monitored = { kind: 'BLACKLIST', mode: 'MONITOR', type: 'HWID', value: 'watched', ...scope }
    await stage.api('/access-rules', monitored, created)
    await stage.open(`/why?license=${id}`)
    await stage.field('Machine id').fill('watched')
    await stage.button('Decide').click()
    await stage.page.getByText('The check is valid.').waitFor()
    expect(await stage.page.getByText('They decide nothing.').count()).toBe(1)
    await stage.api('/access-rules', { kind: 'RESTRICTION', type: 'HWID', value: 'office', ...scope }, created)
    await stage.button('Decide').click()
    await stage.page.getByText('A restriction allows only other checks.').waitFor()
    await stage.page.getByText('this one matches none (machine)').waitFor()
    await stage.open('/rules?matches=watched')
    await stage.page.getByRole('link', { name: 'RULE-0000-0000-0001' }).waitFor()
    expect(await stage.cell('watched').innerText()).toMatch(/^Would block watched for the license RULE-0000-0000-0001/)
  })

  test('sends a content security policy that forbids frames and foreign scripts', async () => {
    const policy = (await fetch(`${stage.origin}/console`)).headers.get('content-security-policy') ?? ''
    expect(policy).toContain("script-src 'self';")
    expect(policy).toContain("frame-ancestors 'none'")
  })

  test('keeps the filters of a list in the URL after a reload', async () => {
    await stage.open('/licenses?status=expired')
    await stage.page.getByText('No license matches these filters.').waitFor()
    await stage.page.reload()
    await stage.page.getByText('No license matches these filters.').waitFor()
    expect(new URL(stage.page.url()).search).toBe('?status=expired')
  })

  test('ends the session of a copied cookie on sign-out', async () => {
    const cookies = await stage.context.cookies(`${stage.origin}/api/v1`)
    const thief = await stage.browser.newContext()
    await thief.addCookies(cookies)
    const stolen = await thief.newPage()
    await stolen.goto(`${stage.origin}/console`)
    await stolen.getByRole('heading', { name: 'Overview' }).waitFor()
    await stage.open('')
    await stage.button('support@example.com').click()
    await stage.page.getByRole('menuitem', { name: 'Sign out' }).click()
    await stage.page.getByRole('heading', { name: 'Sign in to Keyward' }).waitFor()
    await stolen.reload()
    await stolen.getByRole('heading', { name: 'Sign in to Keyward' }).waitFor()
    expect(await stolen.getByRole('link', { name: 'Licenses' }).count()).toBe(0)
    await thief.close()
    await stage.signIn('again@example.com')
  })

  callTests(() => stage)
  ruleTests(() => stage)
  webhookTests(() => stage)
  undoTests(() => stage)
  conflictTests(() => stage)
  auditTests(() => stage)
  keyboardTests(() => stage)

  operatorTests(() => stage)
  sessionTests(() => stage)
  accessibilityTests(() => stage)
  productSearchTests(() => stage)

  test('loads no resource from another host and causes no script error', () => {
    expect(stage.complaints).toEqual([])
  })
})

/** Tests tasks of members in a real browser against the real services. No screen may have an accessibility violation. */

import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import {
  endChildren,
  OPERATOR_TOKEN,
  type Service,
  startManagement,
  startValidator,
  untilReady,
} from '../faults/support/children.ts'

const executablePath = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium'
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const secrets = z.object({ id: z.string(), managementToken: z.string(), apiKey: z.string() })
const created = z.object({ id: z.string() })
const invited = z.object({ invitation: z.object({ path: z.string() }) })
const violations = z.array(z.object({ id: z.string(), nodes: z.array(z.object({ html: z.string() })) }))

const EVERYTHING = [
  'licenses.read',
  'licenses.write',
  'products.read',
  'products.write',
  'customers.read',
  'customers.write',
  'analytics.read',
  'audit.read',
  'credentials.write',
  'signing-keys.write',
  'webhooks.read',
  'webhooks.write',
]

describe.skipIf(!existsSync(executablePath))(
  `the console (skipped without ${executablePath})`,
  { timeout: 120_000 },
  () => {
    let database: TestDatabase
    let management: Service
    let validator: Service
    let vendor: z.infer<typeof secrets>
    let browser: Browser
    let context: BrowserContext
    let page: Page
    let origin: string
    const complaints: string[] = []

    async function api<Schema extends z.ZodType>(
      path: string,
      body: object,
      schema: Schema,
      token = vendor.managementToken,
    ) {
      const response = await fetch(`http://127.0.0.1:${management.port}/api/v1${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', prefer: 'wait=5' },
        body: JSON.stringify(body),
      })
      return schema.parse(await response.json())
    }

    /** Sends a check like an app. Returns its code. */
    async function check(license: string, fingerprint: string): Promise<string> {
      const response = await fetch(`http://127.0.0.1:${validator.port}/api/v2/license/validate`, {
        method: 'POST',
        headers: { authorization: `Bearer ${vendor.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ license, fingerprint }),
      })
      return z.object({ code: z.string() }).parse(await response.json()).code
    }

    /** Creates a license with one machine slot. */
    async function addLicense(key: string, email = 'ada@example.com'): Promise<string> {
      const product = await api('/products', { name: `Product of ${key}` }, created)
      const customer = await api('/customers', { email }, created)
      const policy = { type: 'PERPETUAL', maxMachines: 1 }
      return (await api('/licenses', { productId: product.id, customerId: customer.id, policy, key }, created)).id
    }

    const button = (name: string | RegExp) => page.getByRole('button', { name, exact: typeof name === 'string' })
    const field = (name: string | RegExp) => page.getByRole('textbox', { name })
    const dialog = () => page.getByRole('dialog')
    const done = (message: string) => page.getByText(message).first().waitFor()

    async function choose(label: string, option: string): Promise<void> {
      await dialog().getByRole('combobox', { name: label }).click()
      await page.getByRole('option', { name: option, exact: true }).click()
    }

    async function open(path: string): Promise<void> {
      await page.goto(`${origin}/console${path}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
    }

    beforeAll(async () => {
      database = await createTestDatabase()
      const [started, checking] = await Promise.all([
        startManagement(database.managementUrl, { LOG_LEVEL: 'error' }),
        startValidator(database.validatorUrl, { LOG_LEVEL: 'error' }),
      ])
      management = started
      validator = checking
      await untilReady(management, validator)
      origin = `http://localhost:${management.port}`
      vendor = await api('/organizations', { name: 'Acme', plan: 'STANDARD' }, secrets, OPERATOR_TOKEN)
      browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
      context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
      page = await context.newPage()
      page.on('pageerror', (error) => complaints.push(error.message))
      page.on('console', (message) => {
        // Excludes the messages of the browser about error responses, such as the 401 of a visitor who is not signed in.
        if (message.type() === 'error' && !message.text().startsWith('Failed to load')) complaints.push(message.text())
      })
      page.on('request', (request) => {
        if (!request.url().startsWith(origin) && !/^(?:data|blob):/.test(request.url())) complaints.push(request.url())
      })
      const member = await api('/members', { email: 'support@example.com', permissions: EVERYTHING }, invited)
      await page.goto(`${origin}${member.invitation.path}`)
      await button('Accept the invitation').click()
      await page.getByRole('heading', { name: 'Your account' }).waitFor()
    })

    afterAll(async () => {
      await browser.close()
      await endChildren()
      await database.drop()
    })

    test('creates a product and a license for a new customer', async () => {
      await open('/products')
      await button('New product').first().click()
      await dialog().getByRole('textbox', { name: 'Name' }).fill('Studio')
      await dialog().getByRole('button', { name: 'New product' }).click()
      await done('Created the product.')
      await open('/licenses')
      await button('New license').first().click()
      await choose('Product', 'Studio')
      await dialog()
        .getByRole('textbox', { name: /Customer/ })
        .fill('grace@example.com')
      await dialog().getByRole('button', { name: 'New license' }).click()
      await done('Created the license.')
      await page.getByText('grace@example.com').waitFor()
      await page.getByText('0 / 1').waitFor()
      expect(await page.getByText('grace@example.com').count()).toBe(1)
    })

    test('shows an error of the API at its field and keeps the form', async () => {
      await open('/licenses')
      await button('New license').first().click()
      await choose('Product', 'Studio')
      await dialog()
        .getByRole('textbox', { name: /Customer/ })
        .fill('nobody')
      await dialog().getByRole('button', { name: 'New license' }).click()
      await dialog().getByText('must be an e-mail address').waitFor()
      expect(
        await dialog()
          .getByRole('textbox', { name: /Customer/ })
          .inputValue(),
      ).toBe('nobody')
    })

    test('finds a license by its pasted key in lower case', async () => {
      const id = await addLicense('FIND-ME00-0000-0001')
      await open('/licenses')
      await page.keyboard.press('Control+k')
      await field(/^Paste/).waitFor()
      await page.keyboard.insertText('find-me00-0000-0001')
      await page
        .getByRole('option', { name: /FIND-ME00/ })
        .first()
        .waitFor()
      await page.keyboard.press('Enter')
      await page.waitForURL(`**/licenses/${id}`)
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('License')
    })

    test('shows the reason of a rejection and creates an exclusion for the machine', async () => {
      const id = await addLicense('WHY0-0000-0000-0001')
      expect(await check('WHY0-0000-0000-0001', 'first')).toBe('VALID')
      expect(await check('WHY0-0000-0000-0001', 'second')).toBe('TOO_MANY_MACHINES')
      await open(`/why?license=${id}`)
      await field('Machine id').fill('second')
      await button('Decide').click()
      await page.getByText('Every slot is taken by another machine.').waitFor()
      await button('Let this machine through').click()
      await dialog().getByRole('button', { name: 'Let this machine through' }).click()
      await page.getByText(/An exclusion lets it through/).waitFor()
      expect(await check('WHY0-0000-0000-0001', 'second')).toBe('VALID')
    })

    test('releases a slot', async () => {
      const id = await addLicense('SLOT-0000-0000-0001')
      expect(await check('SLOT-0000-0000-0001', 'old laptop')).toBe('VALID')
      await open(`/licenses/${id}`)
      await button('Release slot').click()
      await dialog().getByRole('button', { name: 'Release slot' }).click()
      await done('Released the slot.')
      expect(await check('SLOT-0000-0000-0001', 'new laptop')).toBe('VALID')
    })

    test('suspends and reinstates a license and replaces its key', async () => {
      const id = await addLicense('KEY0-0000-0000-0001')
      await open(`/licenses/${id}`)
      await button('Suspend').click()
      await dialog().getByRole('button', { name: 'Suspend' }).click()
      await page.getByText('Suspended', { exact: true }).waitFor()
      expect(await check('KEY0-0000-0000-0001', 'm')).toBe('SUSPENDED')
      await button('Reinstate').click()
      await page.getByText('Active', { exact: true }).waitFor()
      expect(await check('KEY0-0000-0000-0001', 'm')).toBe('VALID')
      await button('Replace the key').click()
      await dialog().getByRole('button', { name: 'Replace the key' }).click()
      await dialog().waitFor({ state: 'hidden' })
      expect(await check('KEY0-0000-0000-0001', 'm')).toBe('NOT_FOUND')
    })

    test('downloads an offline license file', async () => {
      const id = await addLicense('FILE-0000-0000-0001')
      await open(`/licenses/${id}`)
      const [download] = await Promise.all([page.waitForEvent('download'), button('Download the offline file').click()])
      const payload = readFileSync(await download.path(), 'utf8').split('.')[0] ?? ''
      expect(Buffer.from(payload, 'base64url').toString()).toContain('FILE-0000-0000-0001')
    })

    test("warns before a rule that blocks the member's own address", async () => {
      await open('/rules')
      await button('New rule').first().click()
      await dialog().getByRole('textbox', { name: 'Value' }).fill('127.0.0.1/8')
      await dialog()
        .getByText(/contains your own address/)
        .waitFor()
      await dialog().getByText('Is stored as 127.0.0.0/8.').waitFor()
      await dialog().getByRole('textbox', { name: 'Value' }).fill('203.0.113.9/24')
      await dialog()
        .getByText(/contains your own address/)
        .waitFor({ state: 'hidden' })
      await dialog().getByRole('button', { name: 'New rule' }).click()
      await done('The rule is live.')
      await page.getByRole('cell', { name: '203.0.113.0/24' }).waitFor()
      expect(await page.getByRole('cell', { name: '127.0.0.0/8' }).count()).toBe(0)
    })

    test('imports addresses and shows the invalid lines', async () => {
      await open('/rules')
      await button('Import').click()
      const lines = Array.from({ length: 2_500 }, (_, i) => `10.1.${Math.floor(i / 250)}.${i % 250}`)
      lines[3] = '999.1.1.1'
      lines[1_700] = 'nonsense'
      lines[2_400] = '10.0.0.0/77'
      await dialog().getByRole('textbox', { name: 'One value in each line' }).fill(lines.join('\n'))
      await dialog().getByRole('button', { name: 'Import' }).click()
      await dialog().getByText('Created 2497 rules. 0 existed already.').waitFor()
      const listed = await dialog().getByRole('listitem').allInnerTexts()
      expect(listed.map((line) => line.split(':')[0])).toEqual(['Line 4', 'Line 1701', 'Line 2401'])
    })

    test('invites a member who can only read', async () => {
      await open('/team')
      await button('Invite a member').first().click()
      await dialog().getByRole('textbox', { name: 'E-mail' }).fill('reader@example.com')
      await dialog().getByRole('button', { name: 'Invite a member' }).click()
      const link = await page.getByText(/\/console\/invitation#kwi_/).textContent()
      const other = await browser.newContext()
      const visitor = await other.newPage()
      await visitor.goto(link ?? '')
      await visitor.getByRole('button', { name: 'Accept the invitation' }).click()
      await visitor.getByRole('link', { name: 'Licenses' }).click()
      await visitor.getByRole('heading', { name: 'Licenses' }).waitFor()
      expect(await visitor.getByRole('link', { name: 'Credentials' }).count()).toBe(0)
      await other.close()
    })

    test('shows HTML in the e-mail address of a customer as text', async () => {
      const id = await addLicense('TEXT-0000-0000-0001', '"<img/src=x/onerror=alert(1)>"@example.com')
      await open(`/licenses/${id}`)
      await page.getByText('<img/src=x/onerror=alert(1)>').waitFor()
      expect(await page.locator('main img').count()).toBe(0)
    })

    test('shows that a restriction decides a check and a monitored rule does not', async () => {
      const id = await addLicense('RULE-0000-0000-0001')
      const scope = { scope: 'LICENSE', scopeId: id }
      const monitored = { kind: 'BLACKLIST', mode: 'MONITOR', type: 'HWID', value: 'watched', ...scope }
      await api('/access-rules', monitored, created)
      await open(`/why?license=${id}`)
      await field('Machine id').fill('watched')
      await button('Decide').click()
      await page.getByText('The check is valid.').waitFor()
      expect(await page.getByText('They decide nothing.').count()).toBe(1)
      await api('/access-rules', { kind: 'RESTRICTION', type: 'HWID', value: 'office', ...scope }, created)
      await button('Decide').click()
      await page.getByText('The check matches no restriction of these types: Machine.').waitFor()
      await open('/rules?value=watched')
      expect(await page.getByRole('cell', { name: 'Blacklist, monitored' }).textContent()).toBe('Blacklist, monitored')
    })

    test('cannot be framed and runs only its own scripts', async () => {
      const policy = (await fetch(`${origin}/console`)).headers.get('content-security-policy') ?? ''
      expect(policy).toContain("script-src 'self';")
      expect(policy).toContain("frame-ancestors 'none'")
    })

    test('keeps filters in the address through back and reload', async () => {
      await open('/licenses?status=suspended')
      await page.getByText('No license matches these filters.').waitFor()
      await page.reload()
      await page.getByText('No license matches these filters.').waitFor()
      expect(new URL(page.url()).search).toBe('?status=suspended')
    })

    test('ends the session of a copied cookie on sign-out', async () => {
      const cookies = await context.cookies(`${origin}/api/v1`)
      const thief = await browser.newContext()
      await thief.addCookies(cookies)
      const stolen = await thief.newPage()
      await stolen.goto(`${origin}/console`)
      await stolen.getByRole('heading', { name: 'Overview' }).waitFor()
      await open('')
      await button('support@example.com').click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      await page.getByRole('heading', { name: 'Sign in to Keyward' }).waitFor()
      await stolen.reload()
      await stolen.getByRole('heading', { name: 'Sign in to Keyward' }).waitFor()
      expect(await stolen.getByRole('link', { name: 'Licenses' }).count()).toBe(0)
      await thief.close()
      const member = await api('/members', { email: 'again@example.com', permissions: EVERYTHING }, invited)
      await page.goto(`${origin}${member.invitation.path}`)
      await button('Accept the invitation').click()
      await page.getByRole('heading', { name: 'Your account' }).waitFor()
    })

    test('has no accessibility violation on any screen in light and dark mode', async () => {
      const id = await addLicense('AXE0-0000-0000-0001')
      await check('AXE0-0000-0000-0001', 'm')
      const paths = [
        '',
        '/licenses',
        `/licenses/${id}`,
        '/customers',
        '/products',
        '/rules',
        '/why',
        '/alerts',
        '/activity',
      ]
      const found: string[] = []
      await page.emulateMedia({ reducedMotion: 'reduce' })
      for (const path of [...paths, '/audit', '/team', '/credentials', '/account']) {
        await open(path)
        await page.waitForLoadState('networkidle')
        await page.evaluate(axe)
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          const result = violations.parse(await page.evaluate('axe.run().then(({ violations }) => violations)'))
          for (const { id: rule, nodes } of result)
            found.push(`${colorScheme} ${path}: ${rule} ${nodes[0]?.html.slice(0, 160)}`)
        }
      }
      expect(found).toEqual([])
    })

    test('loads no resource of another host and causes no script error', () => {
      expect(complaints).toEqual([])
    })
  },
)

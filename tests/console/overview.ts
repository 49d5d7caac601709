import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { violationsOf } from './accessibility.ts'
import { created, EVERYTHING, invited, type Stage } from './stage.ts'

const DAY_MS = 86_400_000
const READ = ['licenses.read', 'products.read', 'customers.read']

export function overviewTests(open: () => Stage): void {
  describe('overview and integration', () => {
    test('shows the licenses that expire within 30 days in the order of their expiry', async () => {
      const stage = open()
      const { page } = stage
      const product = await stage.api('/products', { name: 'Expiring' }, created)
      const customer = await stage.api('/customers', { email: 'expiring@example.com' }, created)
      for (const days of [20, 3, 90]) {
        const expiresAt = new Date(Date.now() + days * DAY_MS).toISOString()
        const policy = { type: 'SUBSCRIPTION', expiresAt }
        const key = `ENDS-0000-0000-00${days}`
        await stage.api('/licenses', { productId: product.id, customerId: customer.id, policy, key }, created)
      }
      await stage.open('')
      const card = page.getByRole('region', { name: 'Expire within 30 days' })
      await card.getByText('ENDS-0000-0000-003').waitFor()
      const keys = await card.getByRole('link', { name: /^ENDS/ }).allInnerTexts()
      expect(keys).toEqual(['ENDS-0000-0000-003', 'ENDS-0000-0000-0020'])
      await card.getByRole('link', { name: 'Show all' }).click()
      await page.getByRole('heading', { name: 'Licenses' }).waitFor()
      await stage.cell('ENDS-0000-0000-0020').waitFor()
      expect(await page.getByText('ENDS-0000-0000-0090').count()).toBe(0)
    })

    test('shows an alert as a sentence, with the action only for members who may acknowledge it', async () => {
      const stage = open()
      const id = await stage.addLicense('OVER-0000-0000-0001', 'overuse@example.com')
      expect(await stage.check('OVER-0000-0000-0001', 'first')).toBe('VALID')
      for (let machine = 0; machine < 12; machine++) await stage.check('OVER-0000-0000-0001', `extra-${machine}`)
      const alerts = z.object({ data: z.array(z.object({ licenseId: z.string().nullable() })) })
      await expect
        .poll(async () => (await stage.read('/alerts', alerts)).data.map(({ licenseId }) => licenseId), {
          timeout: 20_000,
        })
        .toContain(id)
      await stage.open('/alerts')
      const row = stage.page.getByRole('row').filter({ hasText: 'OVER-0000-0000-0001' })
      await row.getByText(/overuse@example\.com: \d+ checks were refused: the only slot is taken/).waitFor()
      await row.getByRole('button', { name: 'Acknowledge' }).waitFor()
      const member = await stage.api('/members', { email: 'alert-reader@example.com', permissions: READ }, invited)
      const other = await stage.browser.newContext()
      const reader = await other.newPage()
      await reader.goto(`${stage.origin}${member.invitation.path}`)
      await reader.getByRole('button', { name: 'Accept the invitation' }).click()
      await reader.getByRole('heading', { name: 'Your account' }).waitFor()
      await reader.goto(`${stage.origin}/console/alerts`)
      await reader.getByText(/overuse@example\.com: \d+ checks/).waitFor()
      expect(await reader.getByRole('button', { name: 'Acknowledge' }).count()).toBe(0)
      await reader.goto(`${stage.origin}/console/customers`)
      await reader.getByText('overuse@example.com').waitFor()
      expect(await reader.getByRole('button', { name: 'New customer' }).count()).toBe(0)
      await other.close()
    })

    test('decides a test check without recording it, and fills the example code with the public key and a new API key', async () => {
      const stage = open()
      const { page } = stage
      await stage.addLicense('CODE-0000-0000-0001')
      await stage.open('/integrate?language=python')
      const key = page.getByRole('combobox', { name: 'License to check' })
      // The default license would replace a text that is typed before it arrives.
      await expect.poll(() => key.inputValue()).not.toBe('')
      await key.fill('code-0000')
      await page.getByRole('option', { name: 'CODE-0000-0000-0001' }).click()
      await stage.button('Send a test check').click()
      await page.getByText('This is the decision. No check was made.').waitFor()
      await page.getByText('Valid (VALID)').waitFor()
      await stage.button('Create an API key').click()
      const code = page.getByRole('region', { name: 'Python' })
      await code.getByText(/api_key="kwk_\w{20,}"/).waitFor()
      expect(await code.innerText()).toMatch(/public_keys=\{"[0-9a-f]{16}": "MCow/)
      expect(await code.innerText()).toContain(`base_url="${stage.origin}"`)
      // The console and the validation API have different addresses in this test, so the test check fails.
      await stage.button('Send a test check').click()
      await page.getByText(/The validation API did not respond at the address of the console/).waitFor()
      await page.getByRole('heading', { name: 'Waiting for your first check…' }).waitFor()
      expect(await stage.check('CODE-0000-0000-0001', 'my first machine')).toBe('VALID')
      await page.getByRole('heading', { name: 'Your first check has arrived' }).waitFor()
      await page.getByText('my first machine').waitFor()
    })

    test('integrates the product of a license, and its newest license first', async () => {
      const stage = open()
      const { page } = stage
      await stage.addLicense('CODE-0000-0000-0002')
      const key = page.getByRole('combobox', { name: 'License to check' })
      const product = page.getByRole('combobox', { name: 'Product' })
      await stage.open('/integrate')
      await expect.poll(() => key.inputValue()).not.toBe('')
      await key.fill('code-0000-0000-0001')
      await page.getByRole('option', { name: 'CODE-0000-0000-0001' }).click()
      await expect.poll(() => product.inputValue()).toBe('Product of CODE-0000-0000-0001')
      await product.click()
      await page.getByRole('option', { name: 'Product of CODE-0000-0000-0002' }).click()
      await expect.poll(() => key.inputValue()).toBe('CODE-0000-0000-0002')
    })

    test('shows the steps of the set-up until the person hides them', async () => {
      const stage = open()
      const member = await stage.api('/members', { email: 'set-up@example.com', permissions: EVERYTHING }, invited)
      const other = await stage.browser.newContext()
      const page = await other.newPage()
      await page.goto(`${stage.origin}${member.invitation.path}`)
      await page.getByRole('button', { name: 'Accept the invitation' }).click()
      const card = page.getByRole('region', { name: 'Set up' })
      await card.getByRole('link', { name: 'Add a passkey' }).waitFor()
      await card.getByRole('heading', { name: 'Create a product (done)' }).waitFor()
      expect(await violationsOf(page)).toEqual([])
      await card.getByRole('button', { name: 'Hide' }).click()
      await page.reload()
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
      await page.getByRole('region', { name: 'Checks', exact: true }).waitFor()
      expect(await card.count()).toBe(0)
      await other.close()
    })
  })
}

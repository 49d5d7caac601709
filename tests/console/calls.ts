import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { created, type Stage } from './stage.ts'

const list = z.object({ data: z.array(z.object({ id: z.string() })) })

export function callTests(open: () => Stage): void {
  describe('calls', () => {
    /** Confirms a deletion or revocation. Returns whether the request waited for validators. */
    async function confirm(stage: Stage, label: string, method: string): Promise<boolean> {
      const [request] = await Promise.all([
        stage.page.waitForRequest((sent) => sent.method() === method),
        stage.dialog().getByRole('button', { name: label }).click(),
      ])
      return (await request.headerValue('prefer')) !== null
    }

    test('waits until validators reject a revoked API key, and until they have applied a deletion', async () => {
      const stage = open()
      const key = await stage.api('/api-keys', { name: 'to revoke' }, z.object({ secret: z.string() }))
      const license = await stage.addLicense('CALL-0000-0000-0001')
      expect(await stage.check('CALL-0000-0000-0001', 'm', key.secret)).toBe('VALID')
      await stage.open('/credentials')
      const row = stage.page.getByRole('row').filter({ hasText: 'to revoke' })
      await row.getByRole('button', { name: 'Revoke' }).click()
      expect(await confirm(stage, 'Revoke', 'DELETE')).toBe(true)
      await stage.done('Revoked the credential. Live on 1 of 1 validator.')
      expect(await stage.check('CALL-0000-0000-0001', 'm', key.secret)).toBe('UNAUTHORIZED')

      const product = await stage.api('/products', { name: 'To delete' }, created)
      const customer = await stage.api('/customers', { email: 'delete@example.com' }, created)
      for (const path of [`/products/${product.id}`, `/customers/${customer.id}`, `/licenses/${license}`]) {
        await stage.open(path)
        if (path.startsWith('/products/')) await stage.button('Delete').click()
        else await stage.act('Delete')
        if (path.startsWith('/licenses/')) await stage.dialog().getByRole('textbox').fill('0001')
        expect(await confirm(stage, 'Delete', 'DELETE')).toBe(true)
        await stage.page
          .getByText(/^Deleted the \w+\. Live on 1 of 1 validator\.$/)
          .last()
          .waitFor()
      }
    })

    test('does not wait after a change that validators do not apply', async () => {
      const stage = open()
      await stage.open('/products?new=1')
      await stage.dialog().getByRole('textbox', { name: 'Name' }).first().fill('Not waiting')
      expect(await confirm(stage, 'New product', 'POST')).toBe(false)
      await stage.page.getByText('Created the product.', { exact: true }).waitFor()
    })

    test('creates no license and no customer while a required field is empty', async () => {
      const stage = open()
      const { page } = stage
      await stage.addLicense('CALL-0000-0000-0002', 'newest@example.com')
      const before = await stage.read('/licenses?limit=1', list)
      await stage.open('/licenses/new')
      await stage.choose('Product', 'Product of CALL-0000-0000-0002')
      await stage.button('Create license').click()
      await page.getByText('is required').waitFor()
      expect(await page.getByText('Created the license.').count()).toBe(0)
      expect(await stage.read('/licenses?limit=1', list)).toEqual(before)
      await stage.open('/licenses/new')
      await page.getByRole('combobox', { name: /Customer/ }).fill('left-behind@example.com')
      await stage.button('Create license').click()
      await page.getByText('is required').waitFor()
      expect(await stage.read('/customers?email=left-behind%40example.com', list)).toEqual({ data: [] })
    })

    test('treats an empty or unknown filter of the URL as absent', async () => {
      const stage = open()
      await stage.addLicense('CALL-0000-0000-0003')
      await stage.open('/licenses?email=&status=')
      await stage.cell('CALL-0000-0000-0003').waitFor()
      expect(await stage.button('Clear the filters').count()).toBe(0)
      for (const search of ['within=never', 'within=constructor', 'constructor=x']) {
        await stage.open(`/licenses?${search}`)
        await stage.cell('CALL-0000-0000-0003').waitFor()
      }
      await stage.open('/activity?hours=constructor')
      await stage.page.getByRole('heading', { name: 'Activity' }).waitFor()
    })
  })
}

/** These tests create many products, so they run last. */
export function productSearchTests(open: () => Stage): void {
  test('offers the oldest of 60 products everywhere, and names it in lists', async () => {
    const stage = open()
    const { page } = stage
    const oldest = 'The oldest product'
    const { id: productId } = await stage.api('/products', { name: oldest }, created)
    const { id: customerId } = await stage.api('/customers', { email: 'oldest@example.com' }, created)
    const policy = { type: 'PERPETUAL' }
    await stage.api('/licenses', { productId, customerId, policy, key: 'OLDP-0000-0000-0001' }, created)
    const rule = { kind: 'BLACKLIST', type: 'HWID', value: 'of the oldest', scope: 'PRODUCT', scopeId: productId }
    await stage.api('/access-rules', rule, created)
    for (let n = 0; n < 60; n++) await stage.api('/products', { name: `Later product ${n}` }, created)
    const choose = async (path: string, within: Pick<Stage['page'], 'getByRole'> = page) => {
      if (path !== '') await stage.open(path)
      const field = within.getByRole('combobox', { name: /product/i }).first()
      await field.click()
      await field.fill('OLDEST')
      await page.getByRole('option', { name: oldest }).click()
      expect(await field.inputValue()).toBe(oldest)
    }
    await choose('/licenses/new')
    await choose('/integrate')
    await choose('/licenses')
    await stage.cell('OLDP-0000-0000-0001').waitFor()
    await stage.cell(oldest).waitFor()
    await stage.open('/rules?matches=of+the+oldest')
    await stage.link(oldest).waitFor()
    await stage.open('/rules/new')
    await page.getByText('One product', { exact: true }).click()
    await choose('')
    await stage.open('/credentials')
    await stage.button('New API key').first().click()
    await choose('', stage.dialog())
  })
}

import { readFileSync } from 'node:fs'

import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { violationsOf } from './accessibility.ts'
import { created, type Stage } from './stage.ts'

const effective = z.object({
  entitlements: z.record(z.string(), z.unknown()),
  policy: z.record(z.string(), z.unknown()),
})
const keyed = z.object({ id: z.string(), key: z.string() })

export function licenseTests(open: () => Stage): void {
  describe('licenses', () => {
    test('creates a product with entitlements and a floating trial for a new customer', async () => {
      const stage = open()
      const { page } = stage
      await stage.open('/products')
      await stage.button('New product').first().click()
      await stage.dialog().getByRole('textbox', { name: 'Name' }).first().fill('Studio')
      await stage.button('Add an entitlement').click()
      await stage.dialog().getByRole('textbox', { name: 'Name' }).nth(1).fill('export')
      await stage.button('Add an entitlement').click()
      await stage.dialog().getByRole('textbox', { name: 'Name' }).nth(2).fill('seats')
      await stage.dialog().getByRole('combobox', { name: 'Type' }).nth(1).click()
      await page.getByRole('option', { name: 'number' }).click()
      await stage.dialog().getByRole('textbox', { name: 'Value' }).fill('5')
      await stage.dialog().getByRole('button', { name: 'New product' }).click()
      await stage.done('Created the product.')
      await stage.open('/licenses')
      await stage.link('New license').first().click()
      await stage.choose('Product', 'Studio')
      await stage.page.getByRole('combobox', { name: /Customer/ }).fill('grace@example.com')
      await page.getByText('A new customer will be created.').waitFor()
      await page.getByText('Trial', { exact: true }).click()
      await page.getByText('Starts with first use').click()
      await stage.field(/^Days( \*)?$/).fill('14')
      await page.getByRole('switch', { name: 'Floating' }).click()
      await page.getByText('More options').click()
      await stage.button('Take away export').click()
      await stage.button('Override seats').click()
      await page.getByRole('textbox', { name: 'Value' }).fill('7')
      await stage.button('Create license').click()
      await stage.done('Created the license.')
      await page.getByText('14 days from first use', { exact: true }).waitFor()
      await page.getByText('floating, free after 10 minutes without a check').waitFor()
      await page.getByText('seats: 7').waitFor()
      const id = new URL(page.url()).pathname.split('/').at(-1) ?? ''
      const license = await stage.read(`/licenses/${id}`, effective)
      expect(license.entitlements).toEqual({ export: null, seats: 7 })
      expect(license.policy).toMatchObject({ type: 'TRIAL', durationDays: 14, leaseSeconds: 600, maxMachines: 1 })
    })

    test('shows an API error at the field that it concerns, and keeps the form', async () => {
      const stage = open()
      await stage.open('/licenses/new')
      await stage.choose('Product', 'Studio')
      await stage.page.getByRole('combobox', { name: /Customer/ }).fill('nobody')
      await stage.button('Create license').click()
      await stage.page.getByText('must be an e-mail address').waitFor()
      expect(await stage.page.getByRole('combobox', { name: /Customer/ }).inputValue()).toBe('nobody')
    })

    test('creates several licenses at once and shows their keys', async () => {
      const stage = open()
      await stage.open('/licenses/new')
      await stage.choose('Product', 'Studio')
      await stage.page.getByRole('combobox', { name: /Customer/ }).fill('many@example.com')
      await stage.page.getByText('More options').click()
      await stage.field('How many licenses').fill('3')
      await stage.button('Create 3 licenses').click()
      await stage.page.getByRole('heading', { name: '3 licenses created' }).waitFor()
      expect(await stage.page.locator('.keys .mono').count()).toBe(3)
    })

    test('changes the terms and the entitlements of a license, and undoes both changes', async () => {
      const stage = open()
      const { page } = stage
      const id = await stage.addLicense('EDIT-0000-0000-0001')
      await stage.open(`/licenses/${id}`)
      await stage.act('Change the terms')
      await stage.dialog().getByRole('textbox', { name: 'Machines at the same time' }).fill('8')
      await stage.dialog().getByRole('button', { name: 'Save' }).click()
      await stage.done('Saved the license.')
      await page.getByText('0 of 8 held').waitFor()
      await stage.button('Undo').click()
      await page.getByText('0 of 1 held').waitFor()
      await page.getByRole('region', { name: 'Entitlements' }).getByRole('button', { name: 'Change' }).click()
      await stage.button('Add an entitlement').click()
      await stage.dialog().getByRole('textbox', { name: 'Name' }).fill('Bad Name')
      await stage.dialog().getByRole('button', { name: 'Save' }).click()
      await stage
        .dialog()
        .getByText(/must match/)
        .waitFor()
      await stage.dialog().getByRole('textbox', { name: 'Name' }).fill('beta')
      await stage.dialog().getByRole('button', { name: 'Save' }).click()
      await stage.done('Saved the entitlements.')
      expect((await stage.read(`/licenses/${id}`, effective)).entitlements).toEqual({ beta: true })
      await stage.button('Undo').click()
      await page.getByRole('region', { name: 'Entitlements' }).getByText('No entitlements.').waitFor()
    })

    test('imports licenses from CSV, lists the invalid rows, and offers the keys for download', async () => {
      const stage = open()
      const { page } = stage
      await stage.addLicense('CSV0-0000-0000-0001')
      await stage.open('/licenses/import')
      const rows = [
        'product,email,name,key,type,expiresAt,maxMachines,order',
        'Studio,one@example.com,One,CSV0-0000-0000-0002,SUBSCRIPTION,2031-01-01,3,A-1',
        'Nothing,two@example.com,,,,,,',
        'Studio,three@example.com,,CSV0-0000-0000-0001,,,,',
        'Studio,not an address,,,,,,',
        'Studio,one@example.com,,,,,,A-2',
        'Studio,five@example.com,,,TRIAL,,,',
      ]
      await stage.field('CSV or JSON').fill(rows.join('\n'))
      await page.getByText('3 licenses to import').waitFor()
      await page.getByText(/no product has the name or id "Nothing"/).waitFor()
      await page.getByText(/must be a time for TRIAL/).waitFor()
      await page.getByText(/must be an e-mail address/).waitFor()
      await stage.button('Import 3 licenses').click()
      await page.getByText('Created 2 licenses, 1 existed.').waitFor()
      const [download] = await Promise.all([page.waitForEvent('download'), stage.button('Download the keys').click()])
      expect(download.suggestedFilename()).toBe('license-keys.csv')
      await stage.open('/licenses?email=one%40example.com')
      await page.getByRole('row').nth(2).waitFor()
      expect(await page.getByRole('row').count()).toBe(3)
    })

    test('exports all licenses that match a filter, also those that the list does not show yet', async () => {
      const stage = open()
      const { page } = stage
      const product = await stage.api('/products', { name: '=Product' }, created)
      const customer = await stage.api('/customers', { email: 'many-licenses@example.com' }, created)
      const row = { productId: product.id, customerId: customer.id, policy: { type: 'PERPETUAL' } }
      const rows = Array.from({ length: 60 }, (_, at) => ({ ...row, key: `MANY-${String(at).padStart(4, '0')}` }))
      await stage.api('/licenses/import', { licenses: rows }, z.unknown())
      await stage.open('/licenses?keyPrefix=many-')
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: 'Export CSV' }).click(),
      ])
      const [heading, ...lines] = readFileSync(await download.path(), 'utf8')
        .trim()
        .split('\r\n')
      expect(heading).toMatch(/^id,key,status,productId,/)
      expect(lines).toHaveLength(60)
      expect(lines[0]).toMatch(/^[0-9a-f-]{36},MANY-\d{4},active,/)
    })

    test('keeps filters as a view in the browser, but none that concerns one customer', async () => {
      const stage = open()
      const { page } = stage
      const views = page.getByRole('navigation', { name: 'Views' })
      await stage.open('/licenses?email=many-licenses%40example.com')
      await stage.button('Clear the filters').waitFor()
      expect(await stage.button('Save as a view').count()).toBe(0)
      await stage.open('/licenses?status=suspended&within=90')
      await stage.button('Save as a view').click()
      await stage.dialog().getByRole('textbox', { name: 'Name' }).fill('expired')
      await stage.dialog().getByRole('button', { name: 'Save' }).click()
      await stage.dialog().getByText('is the name of another view').waitFor()
      expect(await violationsOf(page)).toEqual([])
      await stage.dialog().getByRole('textbox', { name: 'Name' }).fill('Ends soon')
      await stage.dialog().getByRole('button', { name: 'Save' }).click()
      await views.getByRole('link', { name: /^Ends soon/ }).waitFor()
      await stage.open('/licenses')
      expect(await stage.button('Save as a view').count()).toBe(0)
      await views.getByRole('link', { name: /^Ends soon/ }).click()
      await page.waitForURL('**/licenses?status=suspended&within=90')
      await stage.button('Delete the view').click()
      await stage.button('Save as a view').waitFor()
      await page.reload()
      await views.getByRole('link', { name: /^Revoked/ }).waitFor()
      expect(await views.getByRole('link', { name: /^Ends soon/ }).count()).toBe(0)
    })

    test('keeps the rows of a list while the service does not respond, and reads them again by itself', async () => {
      const stage = open()
      const { page } = stage
      await stage.addLicense('LOST-0000-0000-0001')
      expect(await stage.check('LOST-0000-0000-0001', 'lost machine')).toBe('VALID')
      await stage.open('/activity')
      await page.getByRole('cell', { name: 'lost machine' }).first().waitFor()
      await page.route('**/api/v1/activity?*', (route) => route.abort())
      await page.getByText('These rows may be out of date.').waitFor()
      expect(await page.getByRole('cell', { name: 'lost machine' }).count()).toBeGreaterThan(0)
      await page.unroute('**/api/v1/activity?*')
      await page.getByText('These rows may be out of date.').waitFor({ state: 'detached' })
    })

    test('imports CSV with semicolons, and names the missing columns of a heading', async () => {
      const stage = open()
      const { page } = stage
      await stage.api('/products', { name: 'Semicolon' }, created)
      await stage.open('/licenses/import')
      const field = page.getByRole('textbox', { name: 'CSV or JSON' })
      await field.fill('product;mail\nSemicolon;a@example.com')
      await page.getByText('The heading lacks the column email. Its columns: product, mail.').waitFor()
      await field.fill('product;email\nSemicolon;semicolon@example.com')
      await stage.button('Import 1 license').click()
      await page.getByText('Created 1 license.').first().waitFor()
      expect(await page.getByText('The heading lacks').count()).toBe(0)
    })

    test('shows what a merge of two customers will move, and then merges them', async () => {
      const stage = open()
      const { page } = stage
      const license = await stage.addLicense('MERG-0000-0000-0001', 'gone@example.com')
      await stage.addLicense('MERG-0000-0000-0002', 'kept@example.com')
      const { customerId } = await stage.read(`/licenses/${license}`, z.object({ customerId: z.string() }))
      const rule = { kind: 'BLACKLIST', mode: 'MONITOR', type: 'CUSTOMER', value: customerId, scope: 'ORGANIZATION' }
      await stage.api('/access-rules', rule, created)
      await stage.api(`/customers/${customerId}`, { externalId: 'crm-1' }, created, 'PATCH')
      await stage.open(`/customers/${customerId}`)
      await stage.act('Merge into another')
      await page.getByRole('combobox', { name: 'The customer that remains' }).fill('kept@')
      await page.getByRole('option', { name: /kept@example/ }).click()
      const preview = page.getByRole('status').filter({ hasText: 'What will happen' })
      await preview.getByText(/To the remaining customer: 1 license\./).waitFor()
      await preview.getByText('To the remaining customer: 1 access rule for this customer.').waitFor()
      await preview.getByText('The remaining customer gets the external id crm-1.').waitFor()
      await stage.button('Merge into kept@example.com').click()
      await stage.done('Merged the customers.')
      await stage.cell('MERG-0000-0000-0001').waitFor()
      expect(await page.getByText('crm-1').count()).toBe(1)
      const found = await stage.read('/licenses?key=MERG-0000-0000-0001', z.object({ data: z.array(keyed) }))
      expect(found.data.map(({ id }) => id)).toEqual([license])
    })
  })
}

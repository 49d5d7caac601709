import { describe, expect, test } from 'vitest'

import { created, type Stage } from './stage.ts'

export function searchTests(open: () => Stage): void {
  describe('search', () => {
    /** Opens the search and pastes a text. */
    async function search(stage: Stage, typed: string): Promise<void> {
      await stage.page.keyboard.press('Control+k')
      // The field receives the focus a moment after it becomes visible.
      await stage.page
        .getByRole('combobox', { name: /^Paste/ })
        .and(stage.page.locator(':focus'))
        .waitFor()
      await stage.page.keyboard.insertText(typed)
    }

    test('opens a license by its pasted key in lower case, even when Enter is pressed before the results arrive', async () => {
      const stage = open()
      const id = await stage.addLicense('FIND-ME00-0000-0001')
      await stage.open('/licenses')
      await search(stage, 'find-me00-0000-0001')
      await stage.page.keyboard.press('Enter')
      await stage.page.waitForURL(`**/licenses/${id}`)
      expect(await stage.page.getByRole('heading', { level: 1 }).innerText()).toBe('FIND-ME00-0000-0001')
    })

    test('lists licenses by the beginning of the key in any case, and customers by a part of the name', async () => {
      const stage = open()
      const { page } = stage
      await stage.addLicense('PREF-IX00-0000-0001', 'prefix@example.com')
      await stage.addLicense('PREF-IX00-0000-0002', 'prefix@example.com')
      await stage.addLicense('OTHR-IX00-0000-0001')
      await stage.open('/licenses')
      await stage.field('License key or e-mail').fill('pref-ix')
      await page.keyboard.press('Enter')
      await expect.poll(() => page.getByRole('row').filter({ hasText: 'PREF-IX00' }).count()).toBe(2)
      expect(await stage.cell('OTHR-IX00-0000-0001').count()).toBe(0)
      await stage.open('/customers')
      await stage.field('E-mail, name or external id').fill('REFIX@exam')
      await page.keyboard.press('Enter')
      await page.waitForURL('**/customers?q=*')
      await expect.poll(() => page.getByRole('row').filter({ hasText: '@example.com' }).count()).toBe(2)
      await stage.field('E-mail, name or external id').fill('nobody at all')
      await page.keyboard.press('Enter')
      await page.getByText('No customer contains this text.').waitFor()
    })

    test('finds a customer by e-mail and a machine by its id, and lists recently opened resources', async () => {
      const stage = open()
      const { page } = stage
      const id = await stage.addLicense('FIND-ME00-0000-0002', 'found@example.com')
      expect(await stage.check('FIND-ME00-0000-0002', 'render-node-17')).toBe('VALID')
      await stage.open('')
      await search(stage, 'found@exam')
      await page
        .getByRole('group', { name: 'Customers' })
        .getByRole('option', { name: /found@example/ })
        .waitFor()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'found@example.com' }).waitFor()
      await search(stage, 'render-node')
      await page
        .getByRole('group', { name: 'Machines' })
        .getByRole('option', { name: /render-node-17/ })
        .waitFor()
      await page.keyboard.press('Enter')
      await page.waitForURL(`**/licenses/${id}*`)
      await page.getByRole('heading', { name: 'FIND-ME00-0000-0002', exact: true }).waitFor()
      await search(stage, '')
      const recent = page.getByRole('group', { name: 'Recent' }).getByRole('option')
      await recent.first().waitFor()
      expect((await recent.allInnerTexts()).map((offer) => offer.split('\n')[0])).toContain('found@example.com')
      await page.keyboard.press('Escape')
    })

    test('runs commands: a new license, and a rule for a pasted range', async () => {
      const stage = open()
      const { page } = stage
      await stage.open('')
      await search(stage, 'create license')
      await page.getByRole('option', { name: 'New license' }).waitFor()
      await page.keyboard.press('Enter')
      await page.waitForURL('**/licenses/new')
      await search(stage, '192.0.2.77/24')
      await page.getByRole('option', { name: 'Block 192.0.2.0/24' }).waitFor()
      await page.keyboard.press('ArrowUp')
      await page.keyboard.press('Enter')
      await page.getByText('Rejects checks from 192.0.2.0/24, for all products.').waitFor()
      expect(await stage.field('Value').inputValue()).toBe('192.0.2.0/24')
    })

    test('offers the checks of an unknown machine before the offer to block it', async () => {
      const stage = open()
      await stage.addLicense('FIND-ME00-0000-0003')
      expect(await stage.check('FIND-ME00-0000-0003', 'holder-of-the-slot')).toBe('VALID')
      expect(await stage.check('FIND-ME00-0000-0003', 'refused-machine-3')).toBe('TOO_MANY_MACHINES')
      await stage.open('')
      await search(stage, 'refused-machine-3')
      await stage.page.getByRole('option', { name: 'Block the machine refused-machine-3' }).waitFor()
      const offers = await stage.page.getByRole('option').allInnerTexts()
      expect(offers.map((offer) => offer.trim())).toEqual([
        'Checks of the machine refused-machine-3',
        'Block the machine refused-machine-3',
      ])
      await stage.page.keyboard.press('Enter')
      await stage.page.getByRole('heading', { name: 'Activity' }).waitFor()
      await stage.page.getByRole('link', { name: 'FIND-ME00-0000-0003' }).waitFor()
    })

    test('finds what a pasted sentence names', async () => {
      const stage = open()
      const id = await stage.addLicense('FIND-ME00-0000-0004', 'luca@example.com')
      await stage.open('')
      await search(stage, 'License key: FIND-ME00-0000-0004')
      await stage.page
        .getByRole('group', { name: 'Licenses' })
        .getByRole('option', { name: /FIND-ME00-0000-0004/ })
        .waitFor()
      await stage.page.keyboard.press('Escape')
      await search(stage, 'Luca Moretti <luca@example.com>')
      await stage.page.getByRole('option', { name: 'luca@example.com' }).waitFor()
      await stage.page.keyboard.press('Escape')
      await search(stage, id)
      await stage.page.getByRole('option', { name: `License with the id ${id}` }).waitFor()
      await stage.page.keyboard.press('Enter')
      await stage.page.getByRole('heading', { name: 'FIND-ME00-0000-0004' }).waitFor()
      expect(new URL(stage.page.url()).pathname).toBe(`/console/licenses/${id}`)
    })

    test('finds the access rule of a pasted address', async () => {
      const stage = open()
      const rule = { kind: 'BLACKLIST', type: 'IP', value: '198.18.0.0/15', scope: 'ORGANIZATION' }
      await stage.api('/access-rules', rule, created)
      await stage.open('')
      await search(stage, '198.19.4.4')
      await stage.page.getByRole('option', { name: /198\.18\.0\.0\/15/ }).waitFor()
      await stage.page.keyboard.press('Enter')
      await stage.cell('198.18.0.0/15').waitFor()
      expect(await stage.page.getByRole('row').count()).toBe(2)
    })
  })
}

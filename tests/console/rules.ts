import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { created, type Stage } from './stage.ts'

export function ruleTests(open: () => Stage): void {
  describe('access rules', () => {
    test("warns before a rule that blocks the member's own address, and shows the canonical form of the value", async () => {
      const stage = open()
      const { page } = stage
      await stage.open('/rules')
      await stage.link('New rule').first().click()
      await stage.field('Value').fill('127.1.2.3/8')
      await page.getByText(/contains your own address/).waitFor()
      await page.getByText('127.1.2.3/8 → 127.0.0.0/8').waitFor()
      await stage.field('Value').fill('0.0.0.0/0')
      await page.getByText('This range contains every address.').waitFor()
      await stage.field('Value').fill('203.0.113.9/24')
      await page.getByText('Rejects checks from 203.0.113.0/24, for all products.').waitFor()
      expect(await page.getByText(/contains your own address/).count()).toBe(0)
      await stage.button('Create rule').click()
      await stage.done('Created the rule. Live on 1 of 1 validator.')
      await stage.cell('203.0.113.0/24').waitFor()
      expect(await stage.cell('127.0.0.0/8').count()).toBe(0)
    })

    test('creates an exclusion for a license that is found by the beginning of its key', async () => {
      const stage = open()
      await stage.addLicense('EXCL-0000-0000-0001')
      expect(await stage.check('EXCL-0000-0000-0001', 'first')).toBe('VALID')
      expect(await stage.check('EXCL-0000-0000-0001', 'second')).toBe('TOO_MANY_MACHINES')
      await stage.open('/rules/new')
      await stage.page.getByRole('radio', { name: 'Exclusion' }).click()
      await stage.choose('What it matches', 'Machine')
      await stage.field('Value').fill('second')
      await stage.page.getByText('One license', { exact: true }).click()
      await stage.page.getByRole('combobox', { name: 'License' }).fill('excl-0000')
      await stage.page.getByRole('option', { name: 'EXCL-0000-0000-0001' }).click()
      await stage.page.getByText(/Lets checks of the machine second through, for the license EXCL-0000/).waitFor()
      await stage.button('Create rule').click()
      await stage.done('Created the rule. Live on 1 of 1 validator.')
      expect(await stage.check('EXCL-0000-0000-0001', 'second')).toBe('VALID')
    })

    test('creates a rule for one product from the screen of the product', async () => {
      const stage = open()
      const { id } = await stage.api('/products', { name: 'Guarded' }, created)
      await stage.open(`/products/${id}`)
      await stage.link('New rule').click()
      await stage.field('Value').fill('192.0.2.77')
      await stage.page.getByText(/Rejects checks from 192\.0\.2\.77, for licenses of Guarded/).waitFor()
      await stage.button('Create rule').click()
      await stage.done('Created the rule. Live on 1 of 1 validator.')
      await stage.open(`/products/${id}`)
      await stage.cell('192.0.2.77').waitFor()
      const rules = await stage.read(
        `/access-rules?scopeId=${id}`,
        z.object({ data: z.array(z.object({ value: z.string() })) }),
      )
      expect(rules.data).toEqual([{ value: '192.0.2.77' }])
    })

    test('finds the rules that match an address, deletes the selected ones, and undoes the deletion', async () => {
      const stage = open()
      const { page } = stage
      for (const value of ['198.51.100.0/24', '198.51.100.7', '192.0.2.1'])
        await stage.api('/access-rules', { kind: 'BLACKLIST', type: 'IP', value, scope: 'ORGANIZATION' }, created)
      await stage.open('/rules')
      await stage.field('Which rules match …').fill('198.51.100.7')
      await page.keyboard.press('Enter')
      await stage.cell('192.0.2.1').waitFor({ state: 'hidden' })
      await stage.cell('198.51.100.7').waitFor()
      expect(new URL(page.url()).search).toBe('?matches=198.51.100.7')
      expect(await page.getByRole('row').count()).toBe(3)
      await page.getByRole('checkbox', { name: 'Select all' }).click()
      await stage.button('Delete 2 rules').click()
      await stage.dialog().getByText('Together they have matched 0 checks.').waitFor()
      await stage.dialog().getByRole('button', { name: 'Delete 2 rules' }).click()
      await stage.done('Deleted 2 rules. Live on 1 of 1 validator.')
      await page.getByText('No access rule matches these filters.').waitFor()
      await stage.button('Undo').click()
      await stage.cell('198.51.100.0/24').waitFor()
      expect(await page.getByRole('row').count()).toBe(3)
      await stage.button('Clear the filters').click()
      await stage.cell('192.0.2.1').waitFor()
    })

    test('shows the invalid lines of a file of addresses, imports the other lines, continues on another screen, and undoes the import', async () => {
      const stage = open()
      const { page } = stage
      await stage.open('/rules')
      await stage.link('Import').click()
      const lines = Array.from({ length: 2_500 }, (_, i) => `10.1.${Math.floor(i / 250)}.${i % 250}`)
      lines[3] = '999.1.1.1'
      lines[1_700] = 'nonsense'
      lines[2_400] = '10.0.0.0/77'
      const file = { name: 'blocked.txt', mimeType: 'text/plain', buffer: Buffer.from(lines.join('\n')) }
      await page.locator('input[type=file]').setInputFiles(file)
      await page.getByText('2,497 rules to import').waitFor()
      const listed = await page.locator('main').getByRole('listitem').allInnerTexts()
      expect(listed.map((line) => line.split(':')[0])).toEqual(['Line 4', 'Line 1701', 'Line 2401'])
      await stage.button('Import 2,497 rules').click()
      await stage.link('Overview').click()
      await page.goBack()
      await page.getByText('Created 2,497 rules. 0 existed already. Live on 1 of 1 validator.').waitFor()
      expect(await page.locator('main').getByRole('listitem').count()).toBe(3)
      await stage.button('Undo').click()
      await page.getByText('Deleted 2,497 rules. Live on 1 of 1 validator.').waitFor()
    })

    test('imports rules with a kind, a scope and a note from CSV, and shows an invalid row', async () => {
      const stage = open()
      const { page } = stage
      await stage.open('/rules/import')
      const csv =
        'kind,type,value,scope,note\nEXCLUSION,HWID,csv-machine,ORGANIZATION,"from a, file"\nEXCLUSION,COUNTRY,DE,ORGANIZATION,\n'
      await stage.field('Values').fill(csv)
      await page.getByText('1 rule to import').waitFor()
      await page.getByText(/must be IP or HWID with the kind EXCLUSION/).waitFor()
      await stage.button('Import 1 rule').click()
      await page.getByText('Created 1 rule. 0 existed already.').waitFor()
      await stage.button('Import more').click()
      await stage.field('Values').fill(csv)
      await stage.button('Import 1 rule').click()
      await page.getByText('1 row exists already and is skipped:').waitFor()
      await page.getByText('Line 2: csv-machine').waitFor()
      await stage.open('/rules?matches=csv-machine')
      await page.getByText('from a, file').waitFor()
      await page.getByRole('checkbox', { name: 'csv-machine' }).check()
      await stage.button('Only monitor').click()
      await stage.dialog().getByRole('button', { name: 'Only monitor' }).click()
      await page.getByText('Monitor: 1 rule changed.').waitFor()
      await page.getByRole('checkbox', { name: 'csv-machine' }).check()
      await stage.button('Enforce together').click()
      await stage
        .dialog()
        .getByText(/They would have rejected about 0 of [\d,]+ checks since/)
        .waitFor()
      await stage.dialog().getByRole('button', { name: 'Enforce together' }).click()
      await page.getByText('Enforce: 1 rule changed.').waitFor()
      expect(await stage.cell('Allow').count()).toBe(1)
    })

    test('creates, replaces and deletes a set, with a preview of the counts and an undo', async () => {
      const stage = open()
      const { page } = stage
      await stage.open('/rules/sets')
      await stage.button('New set').first().click()
      await stage.dialog().getByRole('textbox', { name: 'Name' }).fill('50% of /feed')
      await stage.dialog().getByRole('button', { name: 'New set' }).click()
      await stage.field('Values').fill('192.0.2.10\n192.0.2.11/32\n192.0.2.12')
      await page.getByText('3 rules created').waitFor()
      await stage.button('Replace the set').click()
      await stage.done('Replaced the set.')
      await stage.cell('192.0.2.11').waitFor()
      await stage.link('Replace').click()
      await stage.field('Values').fill('192.0.2.11\n192.0.2.13\n192.0.2.13')
      const preview = page.getByRole('status').filter({ hasText: 'What will change' })
      await preview.getByText('2 rules removed').waitFor()
      const counts = await preview.getByRole('listitem').allInnerTexts()
      expect(counts).toEqual([
        '1 rule created',
        '0 rules changed',
        '1 rule unchanged',
        '2 rules removed',
        '1 row repeats an earlier row',
      ])
      await stage.button('Replace the set').click()
      await stage.done('Replaced the set. Live on 1 of 1 validator.')
      await stage.cell('192.0.2.13').waitFor()
      await stage.button('Undo').last().click()
      await stage.cell('192.0.2.12').waitFor()
      await stage.cell('192.0.2.13').waitFor({ state: 'hidden' })
      await stage.button('Delete the set').click()
      await stage.dialog().getByText('Deletes the set and its 3 rules.').waitFor()
      await stage.dialog().getByRole('button', { name: 'Delete the set' }).click()
      await page.getByText('No sets yet.').waitFor()
      await stage.button('Undo').last().click()
      await stage.link('50% of /feed').click()
      await stage.cell('192.0.2.12').waitFor()
    })

    test('changes the mode and the expiry of a rule', async () => {
      const stage = open()
      const rule = { kind: 'BLACKLIST', type: 'HWID', value: 'to change', scope: 'ORGANIZATION' }
      await stage.api('/access-rules', rule, created)
      await stage.open('/rules?matches=to+change')
      await stage.button('Change').click()
      await stage.dialog().getByText('Monitor', { exact: true }).click()
      await stage.choose('Ends', 'In 7 days', stage.dialog())
      await stage.dialog().getByRole('button', { name: 'Save' }).click()
      await stage.done('Changed the rule. Live on 1 of 1 validator.')
      await stage.cell('Would block').waitFor()
      expect(await stage.page.locator('tbody time').count()).toBe(1)
      await stage.button('Undo').click()
      await stage.cell('Block').waitFor()
      expect(await stage.page.locator('tbody time').count()).toBe(0)
      await stage.button('Delete').click()
      await stage.dialog().getByRole('button', { name: 'Delete' }).click()
      await stage.page.getByText('No access rule matches these filters.').waitFor()
      await stage.button('Undo').click()
      await stage.cell('to change').waitFor()
    })
  })
}

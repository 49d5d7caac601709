import { describe, expect, test } from 'vitest'

import { OPERATOR_TOKEN } from '../faults/support/children.ts'
import type { Stage } from './stage.ts'

export function operatorTests(open: () => Stage): void {
  describe('the operator', () => {
    test('creates an organization, invites its first owner, and sees and undoes its suspension', async () => {
      const stage = open()
      const context = await stage.browser.newContext()
      const page = await context.newPage()
      await page.goto(`${stage.origin}/console`)
      await page.getByRole('button', { name: 'Use a token' }).click()
      await page.getByLabel('Personal access token or operator token').fill(OPERATOR_TOKEN)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByRole('button', { name: 'New organization' }).click()
      await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill('Harbor Sound')
      await page.getByRole('dialog').getByRole('button', { name: 'New organization' }).click()
      await page.getByRole('textbox', { name: 'E-mail of the first owner' }).fill('owner@harbor.example')
      await page.getByRole('button', { name: 'Create the invitation' }).click()
      const link = await page.getByText(/\/console\/invitation#kwi_/).textContent()
      await page.keyboard.press('Escape')

      const visitor = await (await stage.browser.newContext()).newPage()
      await visitor.goto(link ?? '')
      await visitor.getByRole('button', { name: 'Accept the invitation' }).click()
      await visitor.getByRole('link', { name: 'Team' }).click()
      await visitor.getByRole('cell', { name: /owner@harbor\.example/ }).waitFor()
      expect(await visitor.getByRole('button', { name: 'Remove' }).count()).toBe(0)
      await visitor.context().close()

      const row = page.getByRole('row').filter({ hasText: 'Harbor Sound' })
      await row.getByText('Active', { exact: true }).waitFor()
      await row.getByRole('button', { name: 'Actions on Harbor Sound' }).click()
      expect(await page.getByRole('menuitem', { name: 'Reinstate' }).count()).toBe(0)
      await page.getByRole('menuitem', { name: 'Suspend' }).click()
      await page.getByRole('dialog').getByText('Harbor Sound', { exact: true }).waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Suspend' }).click()
      await row.getByText('Suspended', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'Undo' }).click()
      await row.getByText('Active', { exact: true }).waitFor()
      await context.close()
    })
  })
}
